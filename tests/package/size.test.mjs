// What a page that only chats loads: all the JavaScript of the page and its workers, and the WASM module, gzipped.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { launchChromium } from '../../scripts/lib/chromium.mjs';
import { must } from '../../scripts/lib/shell.mjs';
import { GZIP_BUDGET_BYTES } from '../../scripts/lib/wasm.mjs';
import { makeProject } from './lib/install.mjs';
import { rightOutcomes, servePages } from './lib/pages.mjs';

/** All the JavaScript, the modules' glue included. */
const SCRIPT_BUDGET_BYTES = 40_000;

let browser;
let folder;
before(async () => {
  browser = await launchChromium();
  folder = makeProject('size', 'app', 'esbuild');
  await must('building', process.execPath, ['build.mjs'], { cwd: folder, quiet: true });
});
after(async () => { await browser?.close(); });

for (const [name, options, isolated] of [
  ['a_page_that_only_chats', {}, false],
  ['a_page_that_only_chats_on_threads', { threads: 2 }, true],
]) {
  test(`${name}_keeps_to_its_budget`, async (context) => {
    const site = await servePages(context, join(folder, 'dist'), { isolated });
    const [{ wasmModule }] = await rightOutcomes(browser, site.url, [options]);
    const sizes = [...site.loaded].map((file) => ({ name: basename(file), type: extname(file), bytes: gzipSync(readFileSync(file), { level: 9 }).length }));
    const sum = (type) => sizes.filter((file) => file.type === type).reduce((total, { bytes }) => total + bytes, 0);
    console.log(`# ${name}: ${sum('.js')} bytes of JavaScript, ${sum('.wasm')} of WASM: ${sizes.map((file) => `${file.name} ${file.bytes}`).join(', ')}`);
    assert.deepEqual(sizes.filter(({ type }) => type === '.wasm').map((file) => file.name), [wasmModule], 'one module is loaded');
    assert.ok(sum('.js') > 10_000, 'the worker is counted');
    assert.ok(sum('.js') <= SCRIPT_BUDGET_BYTES, `${sum('.js')} bytes of JavaScript where ${SCRIPT_BUDGET_BYTES} are allowed`);
    assert.ok(sum('.wasm') <= GZIP_BUDGET_BYTES);
  });
}
