// The demo page: loads without faults, answers, stops, and looks like something in both colour schemes and on a phone.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import { after, before, test } from 'node:test';
import { startSite } from './browser.js';
import type { Site } from './browser.js';

const VIEWS = [
  { name: 'light', options: { colorScheme: 'light', viewport: { width: 1200, height: 820 } } },
  { name: 'dark', options: { colorScheme: 'dark', viewport: { width: 1200, height: 820 } } },
  { name: 'phone', options: { colorScheme: 'light', viewport: { width: 360, height: 740 } } },
] as const;

let site: Site;
before(async () => { site = await startSite(); });
after(async () => { await site?.close(); });

/** How many different byte values the pixels of a PNG have; a blank page has very few. */
function distinctBytes(png: Buffer): number {
  const data: Buffer[] = [];
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  return new Set(inflateSync(Buffer.concat(data))).size;
}

for (const { name, options } of VIEWS) {
  test(`the_page_loads_answers_and_stops_in_the_${name}_view`, async () => {
    const opened = await site.open('?backend=cpu', options);
    const { page } = opened;
    await page.waitForSelector('#model option', { state: 'attached' });
    await page.click('#load');
    await page.waitForSelector('#chip:not([hidden])', { timeout: 60_000 });
    assert.match(await page.textContent('#chip-text') ?? '', /^CPU/);
    await page.fill('#input', 'Tell me a long story');
    await page.press('#input', 'Shift+Enter');
    assert.equal(await page.inputValue('#input'), 'Tell me a long story\n');
    await page.press('#input', 'Enter');
    await page.waitForFunction(() => (document.querySelector('.answer .text')?.textContent ?? '').length > 20, null, { timeout: 60_000 });
    await page.keyboard.press('Escape');
    await page.waitForSelector('.answer:not(.writing) .meta span');
    assert.match(await page.textContent('.answer .meta span') ?? '', /tokens\/s/);
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'input');
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(overflow, 0, 'nothing sticks out sideways');
    const png = await page.screenshot();
    assert.ok(distinctBytes(png) > 40, 'the screenshot is not blank');
    mkdirSync('target-js/screenshots', { recursive: true });
    writeFileSync(`target-js/screenshots/${name}.png`, png);
    await opened.close();
  });
}

test('every_control_has_a_name_and_the_settings_close_with_escape', async () => {
  const opened = await site.open('');
  const { page } = opened;
  const unnamed = await page.evaluate(() => [...document.querySelectorAll('button, input:not([type="file"]), select, textarea')]
    .filter((element) => !(element.getAttribute('aria-label') || element.textContent?.trim() || (element as HTMLInputElement).labels?.length))
    .map((element) => element.outerHTML.slice(0, 80)));
  assert.deepEqual(unnamed, []);
  await page.click('#open-settings');
  await page.fill('#settings textarea', 'Answer in French.');
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => (document.querySelector('#settings') as HTMLDialogElement).open), false);
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'open-settings');
  await page.reload();
  assert.equal(await page.inputValue('#settings textarea'), 'Answer in French.');
  await opened.close();
});
