// The WASM modules in headless Chromium: which one a page gets with and without cross-origin isolation, that each computes
// the same, that threads end, and that the page is never blocked.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MODEL_PATH, startSite } from './browser.js';
import type { Site, TestPage } from './browser.js';
import { callIn, value } from './calls.js';
import type { PlainOptions } from './calls.js';

const OPTIONS = { model: MODEL_PATH, maxContextTokens: 512, backend: 'cpu' } as const;
const GREEDY = { temperature: 0, maxTokens: 16 };

let isolated: Site;
let plain: Site;
let opened: TestPage;
before(async () => {
  isolated = await startSite();
  plain = await startSite({}, { isolated: false });
  opened = await isolated.open();
});
after(async () => {
  await opened?.close();
  await isolated?.close();
  await plain?.close();
});

/** A greedy answer, with an engine of its own. */
async function answer(options: PlainOptions, page = opened.page) {
  const { engine, diagnostics } = value(await callIn(page, 'init', { ...OPTIONS, ...options }));
  const workers = page.workers().length;
  const { tokens, text, stats } = value(await callIn(page, 'chat', engine, GREEDY));
  value(await callIn(page, 'close', engine));
  assert.deepEqual(diagnostics.selfTest.filter(({ ok }) => !ok), []);
  assert.equal(stats.threads, diagnostics.threads);
  assert.match(text, /^Gravity/);
  const { wasmModule, wasmReason, threads } = diagnostics;
  return { tokens, module: wasmModule, reason: wasmReason, threads, workers };
}

async function assertNoWorkerIsLeft() {
  for (const end = performance.now() + 5000; opened.page.workers().length > 0 && performance.now() < end;) await opened.page.waitForTimeout(20);
  assert.equal(opened.page.workers().length, 0, 'workers that were left');
}

test('an_isolated_page_gets_threads_and_relaxed_simd', async () => {
  const processors = await opened.page.evaluate(() => navigator.hardwareConcurrency);
  const { module, threads, reason } = await answer({});
  assert.equal(threads, Math.min(Math.max(Math.ceil(processors / 2), Math.min(processors, 2)), 8));
  assert.equal(module, threads > 1 ? 'hanzo-edge-relaxed-threads.wasm' : 'hanzo-edge-relaxed.wasm');
  assert.match(reason, /relaxed SIMD; .*processor/);
  const one = await answer({ threads: 1 });
  assert.deepEqual([one.module, one.threads], ['hanzo-edge-relaxed.wasm', 1]);
  assert.match(one.reason, /threads: 1 was asked for/);
});

test('a_page_that_is_not_isolated_gets_relaxed_simd_on_one_thread', async () => {
  const page = await plain.open();
  const { module, threads, reason } = await answer({ threads: 4 }, page.page);
  assert.deepEqual([module, threads], ['hanzo-edge-relaxed.wasm', 1]);
  assert.match(reason, /not cross-origin isolated/);
  const { error } = await callIn(page.page, 'init', { ...OPTIONS, wasmUrl: '/dist/hanzo-edge-threads.wasm' });
  assert.ok(error?.code === 'invalid-argument' && /not cross-origin isolated/.test(error.message), JSON.stringify(error));
  await page.close();
});

test('a_page_isolated_by_leaving_out_credentials_gets_threads', async () => {
  const site = await startSite({}, { headers: { 'cross-origin-embedder-policy': 'credentialless' } });
  const page = await site.open();
  const { module, threads } = await answer({ threads: 2 }, page.page);
  assert.deepEqual([module, threads], ['hanzo-edge-relaxed-threads.wasm', 2]);
  await page.close();
  await site.close();
});

test('a_frame_of_another_origin_gets_one_thread', async () => {
  // The page's own policy would keep the frame out.
  const page = await plain.open('test/', { bypassCSP: true });
  await page.page.evaluate((src) => { document.body.append(Object.assign(document.createElement('iframe'), { src })); }, `${isolated.url}test/`);
  const frame = (await (await page.page.waitForSelector('iframe')).contentFrame()) ?? assert.fail('the frame did not open');
  const { engine, diagnostics } = value(await callIn(frame, 'init', { ...OPTIONS, threads: 2 }));
  assert.deepEqual([diagnostics.wasmModule, diagnostics.threads], ['hanzo-edge-relaxed.wasm', 1]);
  assert.match(diagnostics.wasmReason, /not cross-origin isolated/);
  assert.match(value(await callIn(frame, 'chat', engine, GREEDY)).text, /^Gravity/);
  value(await callIn(frame, 'close', engine));
  await page.close();
});

test('without_a_worker_the_page_gets_no_threads', async () => {
  const { module, threads, reason } = await answer({ worker: false, threads: 2 });
  assert.deepEqual([module, threads], ['hanzo-edge-relaxed.wasm', 1]);
  assert.match(reason, /in the page, which must not wait/);
});

for (const stem of ['hanzo-edge', 'hanzo-edge-relaxed']) {
  test(`${stem}_computes_the_same_in_the_browser_on_one_thread_and_on_several_and_all_end`, async () => {
    const alone = await answer({ wasmUrl: `/dist/${stem}.wasm`, threads: 2 });
    assert.deepEqual([alone.module, alone.threads], [`${stem}.wasm`, 1]);
    for (const threads of [2, 3]) {
      const shared = await answer({ wasmUrl: `/dist/${stem}-threads.wasm`, threads });
      assert.deepEqual([shared.module, shared.threads], [`${stem}-threads.wasm`, threads]);
      assert.deepEqual(shared.tokens, alone.tokens);
    }
    await assertNoWorkerIsLeft();
  });
}

// Chromium kept a worker in one close of ten when it was ended together with its threads.
test('every_engine_on_several_threads_ends_with_all_its_workers', async () => {
  for (let round = 0; round < 12; round += 1) {
    const { engine, diagnostics } = value(await callIn(opened.page, 'init', { ...OPTIONS, threads: 3 }));
    assert.equal(diagnostics.threads, 3);
    value(await callIn(opened.page, 'close', engine));
    await assertNoWorkerIsLeft();
  }
});

test('a_gpu_works_in_a_module_with_threads_too', async () => {
  const wasmUrl = '/dist/hanzo-edge-relaxed-threads.wasm';
  const { engine, diagnostics } = value(await callIn(opened.page, 'init', { ...OPTIONS, backend: 'webgpu', wasmUrl }));
  assert.deepEqual([diagnostics.backend, diagnostics.wasmModule], ['webgpu', 'hanzo-edge-relaxed-threads.wasm']);
  assert.match(value(await callIn(opened.page, 'chat', engine, { temperature: 0, maxTokens: 2 })).text, /^Gravity/);
  await callIn(opened.page, 'close', engine);
});

test('threads_never_block_the_page', async () => {
  const { engine, diagnostics } = value(await callIn(opened.page, 'init', { ...OPTIONS, threads: 2 }));
  assert.equal(diagnostics.threads, 2);
  const { ms, ticks, longestGapMs } = value(await callIn(opened.page, 'responsiveness', engine, { temperature: 0, maxTokens: 64 }));
  console.log(`# ${ms.toFixed(0)} ms of work, the page ran ${ticks} times, at most ${longestGapMs.toFixed(0)} ms apart`);
  await callIn(opened.page, 'close', engine);
  assert.ok(ms > 4 * longestGapMs && longestGapMs < 300, `${longestGapMs} ms without the page in ${ms} ms`);
});
