// The package in projects of every bundler: each builds without a warning, and its pages answer in a worker, with threads
// and in the page, without a fault.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launchChromium } from '../../scripts/lib/chromium.mjs';
import { run } from '../../scripts/lib/shell.mjs';
import { MODEL, TOOLS, makeProject } from './lib/install.mjs';
import { outcomesOf, rightOutcomes, servePages } from './lib/pages.mjs';

const ISOLATION = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };
const BUILD_MS = 120_000;

/** Every bundler: the folders its project is made of, and the program with arguments that builds it into dist/. */
const BUNDLERS = [
  { name: 'vite-8', folders: ['app'], command: [join(TOOLS, 'vite', 'bin', 'vite.js'), 'build', '--logLevel', 'warn'] },
  { name: 'vite-5', folders: ['app', 'vite-5'], command: [join(TOOLS, 'vite-5', 'bin', 'vite.js'), 'build', '--logLevel', 'warn'] },
  { name: 'webpack', folders: ['app', 'webpack'], command: ['build.mjs'] },
  { name: 'esbuild', folders: ['app', 'esbuild'], command: ['build.mjs'] },
  { name: 'rollup', folders: ['app', 'rollup'], command: [join(TOOLS, 'rollup', 'dist', 'bin', 'rollup'), '--config', '--silent'] },
];

let browser;
before(async () => { browser = await launchChromium(); });
after(async () => { await browser?.close(); });

/** What a page must say: threads where it may have them, one where it runs the engine itself or asked for one. */
function checkPlaces([first, inPage, single], isolated) {
  const threads = isolated ? Math.min(2, availableParallelism()) : 1;
  assert.deepEqual([first.threads, first.worker.used], [threads, true], JSON.stringify(first));
  assert.equal(first.wasmModule, threads > 1 ? 'hanzo-edge-relaxed-threads.wasm' : 'hanzo-edge-relaxed.wasm');
  assert.deepEqual([inPage.threads, inPage.worker.used], [1, false], JSON.stringify(inPage));
  assert.deepEqual([single.threads, single.worker.used], [1, true], JSON.stringify(single));
}

/** The grammar engine is found too, and only loaded when it is needed. */
async function checkGrammar({ url, loaded }) {
  const modules = () => [...loaded].filter((file) => file.endsWith('.wasm')).length;
  const before = modules();
  const { outcomes: [outcome], faults } = await outcomesOf(browser, url, [{ threads: 1, pattern: 'yes|no' }]);
  assert.deepEqual(faults, []);
  assert.match(outcome.text ?? JSON.stringify(outcome), /^(yes|no)$/);
  assert.equal(modules(), before + 1);
}

const RUNS = [{ threads: 2 }, { worker: false }, { threads: 1 }];

for (const { name, folders, command } of BUNDLERS) {
  test(`${name}_builds_a_page_that_answers_in_every_place`, async (context) => {
    const folder = makeProject(name, ...folders);
    const { code, output } = await run(process.execPath, command, { cwd: folder, quiet: true, timeoutMs: BUILD_MS });
    // How long Rolldown's plugins took is news on a busy machine, not a warning.
    const said = output.replace(/\[PLUGIN_TIMINGS\][\s\S]*?bundlertimings\s*/, '').trim();
    assert.deepEqual([code, said], [0, '']);
    for (const isolated of [true, false]) {
      const site = await servePages(context, join(folder, 'dist'), { isolated });
      checkPlaces(await rightOutcomes(browser, site.url, RUNS), isolated);
      await checkGrammar(site);
    }
  });
}

for (const [name, tool, folders] of [['vite-8', 'vite', ['app']], ['vite-5', 'vite-5', ['app', 'vite-5']]]) {
  test(`the_dev_server_of_${name}_serves_a_page_that_answers_in_every_place`, async (context) => {
    const folder = makeProject(`${name}-dev`, ...folders);
    const { createServer } = await import(tool);
    const warnings = [];
    const customLogger = { info() {}, warn: (text) => warnings.push(text), warnOnce: (text) => warnings.push(text), error: (text) => warnings.push(text), clearScreen() {}, hasErrorLogged: () => false, hasWarned: false };
    const serveModel = { name: 'model', configureServer: ({ middlewares }) => void middlewares.use('/tiny.gguf', (_request, response) => response.end(readFileSync(MODEL))) };
    const server = await createServer({ root: folder, customLogger, plugins: [serveModel], server: { port: 0, host: '127.0.0.1', headers: ISOLATION, hmr: false } });
    try {
      await server.listen();
      checkPlaces(await rightOutcomes(browser, server.resolvedUrls.local[0], RUNS), true);
      assert.deepEqual(warnings, []);
    } finally {
      await server.close();
    }
  });
}
