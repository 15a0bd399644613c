// The demo page without a network: the service worker has the page and the package, the private files have the model.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { launchChromium } from '#scripts/chromium.mjs';
import { serveSite } from '#scripts/site.mjs';

const LIMIT = { timeout: 60_000 };

test('a_page_that_was_loaded_once_answers_when_the_server_is_gone', async () => {
  const site = await serveSite({});
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const load = async () => {
      await page.waitForSelector('#model option', { state: 'attached' });
      await page.click('#load');
      await page.waitForSelector('#chip:not([hidden])', LIMIT);
    };
    await page.goto(`${site.url}?backend=cpu`);
    await page.evaluate(async () => {
      await navigator.serviceWorker.ready;
      if (!navigator.serviceWorker.controller) await new Promise((resolve) => navigator.serviceWorker.addEventListener('controllerchange', resolve, { once: true }));
    });
    // What was fetched before the service worker took over is kept at this visit.
    await page.reload();
    await load();

    await site.close();
    await page.reload();
    assert.equal(await page.evaluate(() => crossOriginIsolated), true, 'the kept page is still isolated');
    await load();
    await page.click('.views a[href="#models"]');
    assert.match(await page.textContent('#facts') ?? '', /this browser’s storage \(opfs\)/);
    await page.click('.views a[href="#chat"]');
    await page.fill('#input', 'What is gravity?');
    await page.press('#input', 'Enter');
    await page.waitForFunction(() => (document.querySelector('.answer .text')?.textContent ?? '').length > 10, null, LIMIT);
  } finally {
    await browser.close();
    await site.close().catch(() => {});
  }
});
