// Serves what a project built and opens it in headless Chromium: every fault that the page tells of is kept.

import assert from 'node:assert/strict';
import { serve } from '../../../scripts/lib/serve.mjs';
import { MODEL, expectedAnswer } from './install.mjs';

const ANSWER_MS = 60_000;

/**
 * Serves a folder under `base` until the test ends, with the tiny model beside its page; `loaded` holds the paths of the
 * files that were sent.
 */
export async function servePages(context, folder, { base = '/', routes = {}, ...options } = {}) {
  const loaded = new Set();
  const site = await serve({ [base]: `${folder}/`, [`${base}tiny.gguf`]: MODEL, ...routes }, { ...options, onFile: (file) => loaded.add(file) });
  context.after(() => site.close());
  return { url: new URL(base, site.url).href, loaded };
}

/** Opens the page, has it ask with each of the options, and answers the outcomes and the page's faults. */
export async function outcomesOf(browser, url, runs = [{}]) {
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) faults.push(message.text()); });
  page.on('requestfailed', (request) => faults.push(`${request.url()}: ${request.failure()?.errorText}`));
  try {
    await page.goto(`${url}?runs=${encodeURIComponent(JSON.stringify(runs))}`);
    await page.waitForFunction(() => 'outcomes' in globalThis, null, { timeout: ANSWER_MS }).catch((error) => { throw new Error(`${error.message}\n${faults.join('\n')}`); });
    return { outcomes: await page.evaluate(() => globalThis.outcomes), faults };
  } finally {
    await page.close();
  }
}

/** Opens the page, whose answers must be the expected one without any fault; answers the outcomes. */
export async function rightOutcomes(browser, url, runs) {
  const { outcomes, faults } = await outcomesOf(browser, url, runs);
  assert.deepEqual(faults, []);
  for (const outcome of outcomes) assert.equal(outcome.text, await expectedAnswer(), JSON.stringify(outcome));
  return outcomes;
}
