// Structured output in headless Chromium: the grammar engine's module is fetched when it is first needed, once, by the
// worker, from where the options say; and a GPU's answer keeps to its grammar too.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MODEL_PATH, startSite } from './browser.js';
import type { Site, TestPage } from './browser.js';
import { callIn, value } from './calls.js';

const OPTIONS = { model: MODEL_PATH, maxContextTokens: 512, threads: 1 };
const SCHEMA = { type: 'object', properties: { ok: { type: 'boolean' }, n: { type: 'integer', minimum: 0, maximum: 99 } }, required: ['ok', 'n'] };
const JSON_ANSWER = { responseFormat: { type: 'json_schema', schema: SCHEMA }, temperature: 0, maxTokens: 40 } as const;

let site: Site;
let opened: TestPage;
/** Requests of the page and its workers for the grammar module. */
const requests: string[] = [];
before(async () => {
  site = await startSite();
  opened = await site.open();
  opened.page.context().on('request', (request) => { if (request.url().includes('hanzo-edge-grammar.wasm')) requests.push(request.url()); });
});
after(async () => {
  await opened?.close();
  await site?.close();
});

function check(text: string): void {
  const { ok, n, ...rest } = JSON.parse(text) as { ok: unknown; n: unknown };
  assert.ok(typeof ok === 'boolean' && Number.isInteger(n) && Object.keys(rest).length === 0, text);
}

test('the_grammar_module_is_fetched_on_first_use_only_and_once', async () => {
  const { engine } = value(await callIn(opened.page, 'init', { ...OPTIONS, backend: 'cpu' }));
  value(await callIn(opened.page, 'chat', engine, { temperature: 0, maxTokens: 2 }));
  assert.deepEqual(requests, [], 'an answer in free text needs no grammar');
  for (const _ of [1, 2]) {
    const { text, pieces, finishReason } = value(await callIn(opened.page, 'chat', engine, JSON_ANSWER));
    check(text);
    assert.deepEqual([pieces.join(''), finishReason], [text, 'stop']);
  }
  assert.equal(requests.length, 1, requests.join());
  value(await callIn(opened.page, 'close', engine));
});

test('the_grammar_module_comes_from_where_the_options_say', async () => {
  const { engine } = value(await callIn(opened.page, 'init', { ...OPTIONS, backend: 'cpu', grammarWasmUrl: '/no/hanzo-edge-grammar.wasm' }));
  const bad = await callIn(opened.page, 'chat', engine, JSON_ANSWER);
  assert.ok(bad.error?.code === 'not-found' && /no\/hanzo-edge-grammar\.wasm.*grammarWasmUrl/.test(bad.error.message), JSON.stringify(bad));
  assert.match(value(await callIn(opened.page, 'chat', engine, { temperature: 0, maxTokens: 2 })).text, /^Gravity/);
  value(await callIn(opened.page, 'close', engine));
  opened.faults.splice(0, opened.faults.length, ...opened.faults.filter((fault) => !fault.includes('404')));
  const folder = value(await callIn(opened.page, 'init', { ...OPTIONS, backend: 'cpu', wasmUrl: '/dist/' }));
  check(value(await callIn(opened.page, 'chat', folder.engine, JSON_ANSWER)).text);
  value(await callIn(opened.page, 'close', folder.engine));
});

test('a_gpus_answer_keeps_to_its_grammar', async () => {
  const { engine, diagnostics } = value(await callIn(opened.page, 'init', { ...OPTIONS, backend: 'webgpu' }));
  assert.equal(diagnostics.backend, 'webgpu');
  check(value(await callIn(opened.page, 'chat', engine, JSON_ANSWER)).text);
  value(await callIn(opened.page, 'close', engine));
});
