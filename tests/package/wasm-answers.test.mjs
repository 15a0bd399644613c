// Servers that answer the request for the WASM module wrongly: each gives one clear error that says what came from where,
// and the same page loads the module from a good address afterwards.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launchChromium } from '../../scripts/lib/chromium.mjs';
import { INSTALLED, expectedAnswer, makeProject } from './lib/install.mjs';
import { outcomesOf, servePages } from './lib/pages.mjs';

const MODULE = readFileSync(join(INSTALLED, 'dist', 'hanzo-edge.wasm'));
/** A sound module that has nothing of what this package wants. */
const OTHER = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
const PAGE = '<!DOCTYPE html><title>The page of everything unknown</title>';
const WASM = { 'content-type': 'application/wasm' };

/** Each wrong answer: what is sent, the error's code, and what its message says. */
const WRONG = {
  missing: { send: (response) => response.writeHead(404).end('not found'), code: 'not-found', says: /HTTP status 404/ },
  'page-with-200': { send: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE), code: 'not-found', says: /no WASM module \(text\/html, beginning "<!DOCTYPE html>/ },
  'page-called-wasm': { send: (response) => response.writeHead(200, WASM).end(PAGE), code: 'not-found', says: /no WASM module \(application\/wasm, beginning "<!DOCTYPE html>/ },
  empty: { send: (response) => response.writeHead(200, WASM).end(), code: 'not-found', says: /no WASM module/ },
  truncated: { send: (response) => response.writeHead(200, WASM).end(MODULE.subarray(0, 100_000)), code: 'integrity', says: /could not be compiled: .*\(100000 bytes\)/ },
  'another-module': { send: (response) => response.writeHead(200, WASM).end(OTHER), code: 'integrity', says: /does not fit this version/ },
  'slow-then-reset': { send: slowThenReset, code: 'network', says: /could not be fetched/ },
};
/** Unusual answers that are right. */
const RIGHT = {
  'wrong-type': (response) => response.writeHead(200, { 'content-type': 'text/plain' }).end(MODULE),
  'called-a-page': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(MODULE),
  'no-type': (response) => response.writeHead(200).end(MODULE),
};

function slowThenReset(response) {
  response.writeHead(200, { ...WASM, 'content-length': MODULE.length });
  response.write(MODULE.subarray(0, 50_000));
  setTimeout(() => response.destroy(), 200);
}

let browser;
let answers;
let folder;
before(async () => {
  browser = await launchChromium();
  answers = createServer((request, response) => {
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('cross-origin-resource-policy', 'cross-origin');
    const name = request.url.split('/')[1];
    (WRONG[name]?.send ?? RIGHT[name])(response);
  });
  await new Promise((resolve) => { answers.listen(0, '127.0.0.1', resolve); });
  folder = makeProject('wasm-answers', 'app', 'import-map');
  const index = join(folder, 'index.html');
  writeFileSync(index, readFileSync(index, 'utf8').replace('PACKAGE', './node_modules/@hanzo/edge/dist'));
});
after(async () => {
  await browser?.close();
  answers?.close();
  answers?.closeAllConnections();
});

const urlOf = (name) => `http://127.0.0.1:${answers.address().port}/${name}/hanzo-edge.wasm`;
const GOOD = './node_modules/@hanzo/edge/dist/hanzo-edge.wasm';

for (const worker of [true, false]) {
  test(`a_wrong_answer_for_the_module_is_one_clear_error_and_a_later_load_works_${worker ? 'in_a_worker' : 'in_the_page'}`, async (context) => {
    const site = await servePages(context, folder);
    const runs = Object.keys(WRONG).flatMap((name) => [{ worker, wasmUrl: urlOf(name) }, { worker, wasmUrl: GOOD }]);
    const { outcomes } = await outcomesOf(browser, site.url, worker ? runs : [...runs.filter((_, index) => index % 2 === 0), runs.at(-1)]);
    const failed = outcomes.filter(({ error }) => error);
    assert.equal(failed.length, Object.keys(WRONG).length, JSON.stringify(outcomes));
    for (const [index, [name, { code, says }]] of Object.entries(WRONG).entries()) {
      assert.equal(failed[index].error.code, code, `${name}: ${JSON.stringify(failed[index])}`);
      assert.match(failed[index].error.message, says, name);
      // What was fetched is named, except where only the instance knows.
      if (name !== 'another-module') assert.ok(failed[index].error.message.includes(urlOf(name)), name);
    }
    for (const { text, error } of outcomes) if (!error) assert.equal(text, await expectedAnswer());
    assert.ok(!outcomes.at(-1).error);
  });
}

test('right_bytes_load_whatever_their_type_is_called', async (context) => {
  const site = await servePages(context, folder);
  const { outcomes } = await outcomesOf(browser, site.url, Object.keys(RIGHT).map((name) => ({ wasmUrl: urlOf(name) })));
  for (const outcome of outcomes) assert.equal(outcome.text, await expectedAnswer(), JSON.stringify(outcome));
});

test('two_loads_at_once_in_the_page_share_one_module_and_both_answer', async (context) => {
  const site = await servePages(context, folder);
  const requested = [];
  const { outcomes: [both] } = await outcomesOf({ newPage: async () => {
    const page = await browser.newPage();
    page.on('request', (request) => { if (request.url().endsWith('.wasm')) requested.push(request.url()); });
    return page;
  } }, site.url, [[{ worker: false }, { worker: false }]]);
  for (const outcome of both) assert.equal(outcome.text, await expectedAnswer(), JSON.stringify(outcome));
  assert.equal(requested.length, 1);
});
