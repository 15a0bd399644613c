// What a page that only chats loads: all the JavaScript of the page and its workers, and the WASM module, gzipped.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { launchChromium } from '../../scripts/lib/chromium.mjs';
import { must } from '../../scripts/lib/shell.mjs';
import { GZIP_BUDGET_BYTES } from '../../scripts/lib/wasm.mjs';
import { TOOLS, makeProject } from './lib/install.mjs';
import { rightOutcomes, servePages } from './lib/pages.mjs';

/** What all the JavaScript of a page may take, the modules' glue included. */
const BUDGET_BYTES = 40_000;

/** Pages, by who builds them and whether they have threads. */
const PAGES = [
  { name: 'a_page_of_vite_that_only_chats', folders: ['app'], command: [join(TOOLS, 'vite', 'bin', 'vite.js'), 'build'], isolated: false },
  { name: 'a_page_of_esbuild_that_only_chats', folders: ['app', 'esbuild'], command: ['build.mjs'], isolated: false },
  { name: 'a_page_of_esbuild_that_only_chats_on_threads', folders: ['app', 'esbuild'], command: ['build.mjs'], isolated: true },
];

let browser;
before(async () => { browser = await launchChromium(); });
after(async () => { await browser?.close(); });

for (const { name, folders, command, isolated } of PAGES) {
  test(`${name}_keeps_to_its_budget`, async (context) => {
    const folder = makeProject('size', ...folders);
    await must('building', process.execPath, command, { cwd: folder, quiet: true });
    const site = await servePages(context, join(folder, 'dist'), { isolated });
    const [{ wasmModule }] = await rightOutcomes(browser, site.url, [{ threads: 2 }]);
    const sizes = [...site.loaded].map((file) => ({ name: basename(file), type: extname(file), bytes: gzipSync(readFileSync(file), { level: 9 }).length }));
    const sum = (type) => sizes.filter((file) => file.type === type).reduce((total, { bytes }) => total + bytes, 0);
    console.log(`# ${name}: ${sum('.js')} bytes of JavaScript, ${sum('.wasm')} of WASM: ${sizes.map((file) => `${file.name} ${file.bytes}`).join(', ')}`);
    const modules = sizes.filter(({ type }) => type === '.wasm');
    assert.equal(modules.length, 1, 'one module is loaded');
    assert.ok(modules[0].name.startsWith(wasmModule.replace('.wasm', '')), modules[0].name);
    assert.ok(sum('.js') > 10_000, 'the worker is counted');
    assert.ok(sum('.js') <= BUDGET_BYTES, `${sum('.js')} bytes of JavaScript where ${BUDGET_BYTES} are allowed`);
    assert.ok(sum('.wasm') <= GZIP_BUDGET_BYTES);
  });
}
