// The demo page: every view loads without faults and does its work on the CPU backend, in both colour schemes and on a phone.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { startSite } from './browser.js';
import type { Site, TestPage } from './browser.js';

const WIDE = { colorScheme: 'light', viewport: { width: 1200, height: 820 } } as const;
const VIEWS = [
  { name: 'light', options: WIDE },
  { name: 'dark', options: { colorScheme: 'dark', viewport: { width: 1200, height: 820 } } },
  { name: 'phone', options: { colorScheme: 'light', viewport: { width: 360, height: 740 } } },
] as const;
const LIMIT = { timeout: 60_000 };

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

/** Keeps a screenshot of what is shown, and asserts that it is something and that nothing sticks out sideways. */
async function look(page: Page, name: string): Promise<void> {
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(overflow, 0, `${name}: nothing sticks out sideways`);
  const png = await page.screenshot();
  assert.ok(distinctBytes(png) > 40, `${name}: the screenshot is not blank`);
  mkdirSync('target-js/screenshots', { recursive: true });
  writeFileSync(`target-js/screenshots/${name}.png`, png);
}

/** Fills fields of the settings sheet. */
async function settle(page: Page, fields: Record<string, string>): Promise<void> {
  await page.click('#open-settings');
  for (const [name, value] of Object.entries(fields)) await page.fill(`[name="${name}"]`, value);
  await page.keyboard.press('Escape');
}

/** Opens a view with the model loaded. Answers take the likeliest token, so that a run tells what the next one will. */
async function openLoaded(view: string, options: Parameters<Site['open']>[1] = WIDE): Promise<TestPage> {
  const opened = await site.open(`?backend=cpu#${view}`, options);
  await settle(opened.page, { temperature: '0' });
  await opened.page.waitForSelector('#model option', { state: 'attached' });
  await opened.page.click('#load');
  await opened.page.waitForSelector('#chip:not([hidden])', LIMIT);
  return opened;
}

/** Asks for a short answer and waits for its end. */
async function ask(page: Page, text: string): Promise<void> {
  const answers = await page.locator('.answer').count();
  await page.fill('#input', text);
  await page.press('#input', 'Enter');
  await page.waitForFunction((count) => document.querySelectorAll('.answer:not(.writing)').length > count, answers, LIMIT);
}

/** What the page hands out as a file when the button is pressed. */
async function savedBy(page: Page, selector: string): Promise<{ name: string; value: unknown }> {
  const [download] = await Promise.all([page.waitForEvent('download', LIMIT), page.click(selector)]);
  return { name: download.suggestedFilename(), value: JSON.parse(readFileSync(await download.path(), 'utf8')) };
}

for (const { name, options } of VIEWS) {
  test(`the_chat_loads_answers_and_stops_in_the_${name}_view`, async () => {
    const opened = await openLoaded('chat', options);
    const { page } = opened;
    assert.match(await page.textContent('#chip-text') ?? '', /^CPU/);
    await page.fill('#input', 'Tell me a long story');
    await page.press('#input', 'Shift+Enter');
    assert.equal(await page.inputValue('#input'), 'Tell me a long story\n');
    await page.press('#input', 'Enter');
    await page.waitForFunction(() => (document.querySelector('.answer .text')?.textContent ?? '').length > 20, null, LIMIT);
    await page.keyboard.press('Escape');
    await page.waitForSelector('.answer:not(.writing) .meta span');
    assert.match(await page.textContent('.answer .meta span') ?? '', /tokens\/s/);
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'input');
    await look(page, name);
    await opened.close();
  });
}

test('conversations_are_kept_renamed_exported_deleted_and_brought_back', async () => {
  const opened = await openLoaded('chat');
  const { page } = opened;
  await settle(page, { maxTokens: '6' });
  await ask(page, 'First question');
  await page.click('#new-chat');
  await page.waitForSelector('#messages:empty', { state: 'attached' });
  await ask(page, 'Second question');
  assert.deepEqual(await page.locator('.chat-title').allTextContents(), ['Second question', 'First question']);

  await page.click('.chat-title >> text=First question');
  await page.waitForSelector('.current >> text=First question');
  assert.equal(await page.textContent('#messages .user'), 'First question');
  assert.match(await page.textContent('.answer .meta span') ?? '', /6 tokens/);
  await page.click('.chat-actions >> text=Rename');
  await page.fill('.current input', 'Renamed');
  await page.keyboard.press('Enter');
  assert.deepEqual(await page.locator('.chat-title').allTextContents(), ['Second question', 'Renamed']);

  const { name, value } = await savedBy(page, '.chat-actions >> text=Export');
  assert.equal(name, 'Renamed.json');
  const { title, messages } = value as { title: string; messages: { role: string; content: string }[] };
  assert.equal(title, 'Renamed');
  assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant']);
  assert.equal(messages[0]?.content, 'First question');

  await page.click('.chat-actions >> text=Delete');
  await page.waitForSelector('#undo:focus');
  assert.deepEqual(await page.locator('.chat-title').allTextContents(), ['Second question']);
  assert.equal(await page.locator('#messages li').count(), 0);
  await page.click('#undo');
  await page.waitForSelector('#messages .user');
  assert.equal(await page.textContent('#messages .user'), 'First question');
  await look(page, 'conversations');

  await page.reload();
  assert.deepEqual((await page.locator('.chat-title').allTextContents()).sort(), ['Renamed', 'Second question']);
  await opened.close();
});

test('leaving_a_conversation_stops_its_answer_and_keeps_what_came', async () => {
  const opened = await openLoaded('chat');
  const { page } = opened;
  await page.fill('#input', 'Tell me a long story');
  await page.press('#input', 'Enter');
  await page.waitForFunction(() => (document.querySelector('.answer .text')?.textContent ?? '').length > 20, null, LIMIT);
  await page.click('#new-chat');
  await page.waitForSelector('#messages:empty', { state: 'attached' });
  assert.equal(await page.isVisible('#stop'), false);
  await page.click('.chat-title >> text=Tell me a long story');
  await page.waitForSelector('.answer .text');
  assert.ok((await page.textContent('.answer .text') ?? '').length > 20, 'the part of the answer was kept');
  await opened.close();
});

test('a_function_is_called_with_arguments_that_parse_and_its_result_is_shown', async () => {
  const opened = await openLoaded('tools');
  const { page } = opened;
  assert.equal(await page.locator('#tools-list li').count(), 3);
  await page.click('#tools-run');
  await page.waitForSelector('.call-result', LIMIT);
  const name = await page.textContent('.call-name') ?? '';
  assert.match(name, /^(get_time|add_numbers|roll_dice)$/);
  const given: unknown = JSON.parse(await page.textContent('.call > code') ?? '');
  assert.ok(typeof given === 'object' && given !== null && Object.keys(given).length > 0);
  const result = await page.textContent('.call-result code') ?? '';
  assert.doesNotMatch(result, /"error"/);
  await look(page, 'tools');
  // What the model makes of the result may take long; it can be stopped.
  if (await page.isVisible('#tools-stop')) await page.click('#tools-stop');
  await page.waitForSelector('#tools-run:not([hidden])', LIMIT);
  assert.equal(await page.isVisible('#tools-fault'), false);
  await opened.close();
});

test('an_answer_in_json_fits_its_schema', async () => {
  const opened = await openLoaded('json');
  const { page } = opened;
  await page.fill('#json-schema', '{');
  await page.click('#json-run');
  assert.match(await page.textContent('#json-fault') ?? '', /The schema is no JSON/);
  await page.selectOption('#json-example', { index: 1 });
  await page.selectOption('#json-example', { index: 0 });
  await page.click('#json-run');
  await page.waitForFunction(() => /Parsed as JSON/.test(document.querySelector('#json-note')?.textContent ?? ''), null, LIMIT);
  const person = JSON.parse(await page.textContent('#json-output') ?? '') as Record<string, unknown>;
  assert.deepEqual(Object.keys(person), ['name', 'birth_year', 'city', 'occupation']);
  assert.ok(Number.isInteger(person.birth_year) && (person.birth_year as number) >= 1000 && (person.birth_year as number) <= 2100);
  await look(page, 'json');
  await opened.close();
});

test('the_bench_plots_its_runs_and_exports_them', async () => {
  const opened = await openLoaded('bench');
  const { page } = opened;
  await page.selectOption('#bench-prompt', '16');
  await page.selectOption('#bench-decode', '32');
  await page.selectOption('#bench-runs', '3');
  await page.click('#bench-run');
  await page.waitForFunction(() => document.querySelector('#bench-state')?.textContent === 'Done.', null, LIMIT);
  assert.match(await page.getAttribute('.plot', 'aria-label') ?? '', /Tokens per second over time: the latest run from [\d.]+ to [\d.]+/);
  const labels = await page.locator('.plot text').allTextContents();
  assert.ok(labels.includes('tokens per second, decoding') && labels.includes('seconds since the start of a run'), labels.join(' | '));
  assert.equal(await page.locator('.plot .line').count(), 3);
  assert.equal(await page.locator('#bench-rows tr').count(), 4, 'a row for each run, and the medians');
  await look(page, 'bench');

  const { value } = await savedBy(page, '#bench-export');
  const report = value as { backend: string; model: string; runs: { usage: { promptTokens: number; completionTokens: number; cachedTokens: number }; overTime: { ms: number; tokensPerSecond: number }[] }[]; medians: { decodeTokensPerSecond: number } };
  assert.equal(report.backend, 'cpu');
  assert.match(report.model, /SmolLM2/);
  assert.equal(report.runs.length, 3);
  for (const { usage, overTime } of report.runs) {
    assert.ok(Math.abs(usage.promptTokens - 16) <= 3, `a prompt of ${usage.promptTokens} tokens`);
    assert.ok(usage.cachedTokens < 4, `${usage.cachedTokens} tokens of the prompt were cached`);
    assert.ok(overTime.length > 1 && overTime.every(({ tokensPerSecond }) => tokensPerSecond > 0));
  }
  assert.ok(report.medians.decodeTokensPerSecond > 0);
  await opened.close();
});

test('the_models_view_shows_what_runs_the_model_and_lets_it_go', async () => {
  const opened = await openLoaded('models');
  const { page } = opened;
  await page.waitForSelector('#memory dd');
  const facts = await page.textContent('#facts') ?? '';
  for (const wanted of [/CPU \(backend: 'cpu' was asked for\)/, /hanzo-edge[\w-]*\.wasm/, /4096 tokens/, /a worker/]) assert.match(facts, wanted);
  assert.match(await page.textContent('#memory') ?? '', /Weights9\d MB/);
  await look(page, 'models');
  await page.click('#unload');
  await page.waitForSelector('#choosing:not([hidden])');
  assert.equal(await page.isVisible('#chip'), false);
  await opened.close();
});

test('the_memory_plan_is_there_before_the_download_and_stored_models_can_be_deleted', async () => {
  const opened = await site.open('?backend=cpu#models', WIDE);
  const { page } = opened;
  await page.waitForSelector('#plan-facts dd', LIMIT);
  const plan = await page.textContent('#plan-facts') ?? '';
  for (const wanted of [/Download98 MB/, /weights 9\d MB, context \d+ MB/, /on CPU, .*4096 tokens of context/]) assert.match(plan, wanted);
  assert.equal(await page.isVisible('#stored-empty'), true);
  await page.click('#load');
  await page.waitForSelector('#chip:not([hidden])', LIMIT);
  await page.waitForSelector('#stored-list li', LIMIT);
  assert.match(await page.textContent('#stored-list') ?? '', /SmolLM2.*98 MB · in private files/);
  await look(page, 'stored');
  await page.click('#unload');
  await page.click('#stored-list button');
  await page.waitForSelector('#stored-empty:not([hidden])', LIMIT);
  await opened.close();
});

test('a_link_that_leads_nowhere_is_one_clear_fault', async () => {
  const opened = await site.open('?backend=cpu#models', WIDE);
  const { page } = opened;
  await page.waitForSelector('#model option', { state: 'attached' });
  await page.selectOption('#model', 'other');
  assert.equal(await page.isDisabled('#load'), true);
  await page.fill('#link', 'no-such-model');
  await page.press('#link', 'Tab');
  await page.click('#load');
  await page.waitForSelector('#load-fault:not([hidden])', LIMIT);
  assert.match(await page.textContent('#load-fault') ?? '', /no-such-model.*\(not-found\)/);
  assert.equal(await page.isDisabled('#load'), false);
  await opened.close();
});

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
