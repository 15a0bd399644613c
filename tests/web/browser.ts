// What the browser tests share: one site, one headless Chromium, and pages that report their faults.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '#scripts/chromium.mjs';
import type { Route } from '#scripts/serve.mjs';
import { serveSite } from '#scripts/site.mjs';

/** A running site with a browser. */
export interface Site {
  url: string;
  browser: Browser;
  /** Opens a page of the tests' own, whose faults `close` asserts to be none. */
  open(path?: string, options?: Parameters<Browser['newPage']>[0]): Promise<TestPage>;
  close(): Promise<void>;
}

/** A page and what went wrong in it. */
export interface TestPage {
  page: Page;
  faults: string[];
  close(): Promise<void>;
}

/** The default model's address on the site. */
export const MODEL_PATH = '/models/SmolLM2-135M-Instruct.Q4_1.gguf';

/** Starts the site and the browser. `extra` adds routes; pages are cross-origin isolated unless `isolated` is false; `headers` go with every answer. */
export async function startSite(extra: Record<string, Route> = {}, options: { isolated?: boolean; headers?: Record<string, string> } = {}): Promise<Site> {
  const site = await serveSite({ ...options, extra: { '/test/': join('tests', 'web', 'pages') + '/', ...extra } });
  const browser = await launchChromium();
  return {
    url: site.url,
    browser,
    async open(path = 'test/', options = {}) {
      const page = await browser.newPage(options);
      const faults: string[] = [];
      page.on('pageerror', (error) => faults.push(error.message));
      page.on('console', (message) => { if (message.type() === 'error') faults.push(message.text()); });
      await page.goto(site.url + path);
      return {
        page,
        faults,
        async close() {
          await page.close();
          assert.deepEqual(faults, []);
        },
      };
    },
    async close() {
      await browser.close();
      await site.close();
    },
  };
}
