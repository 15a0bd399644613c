// The life of an engine in headless Chromium: lost devices, workers that die, reloads, conversations that alternate on a
// GPU, engines side by side, and a page that is never blocked.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { tinyModel } from '../js/tiny.js';
import { MODEL_PATH, startSite } from './browser.js';
import type { Site, TestPage } from './browser.js';

const TINY = 'target-js/tiny';
const GPU = { model: '/tiny/model.gguf', backend: 'webgpu', maxContextTokens: 256 };
const CPU = { model: MODEL_PATH, backend: 'cpu', maxContextTokens: 512 };

let site: Site;
let opened: TestPage;
before(async () => {
  mkdirSync(TINY, { recursive: true });
  writeFileSync(`${TINY}/model.gguf`, tinyModel());
  site = await startSite({ '/tiny/': `${TINY}/` });
  opened = await site.open('test/life.html');
});
after(async () => {
  await opened?.close();
  await site?.close();
});

interface Timed { value?: unknown; error?: { isEdgeError: boolean; code?: string; message: string }; ms: number }
interface Usage { promptTokens: number; cachedTokens: number }
interface PageTests {
  loseDevice: { lost: Timed | null; text: string; expected: string; devices: number };
  reload: { rows: { text: string; gpuBytes: number; wasmBytes: number }[]; devices: number; isGone: boolean };
  alternate: { usages: Usage[]; texts: string[]; expected: string[]; kvBytes: [number, number]; gpuBytes: number };
  two: { texts: string[]; closed: { code?: string } | null };
  longTasks: { tasks: number[]; tokens: number };
  workerDies: { lost: Timed; queued: Timed; text: string; expected: string; workers: number };
}

/** Calls a function of the page. */
async function call<Name extends keyof PageTests>(name: Name, ...args: unknown[]): Promise<PageTests[Name]> {
  await opened.page.waitForFunction(() => 'tests' in globalThis);
  return opened.page.evaluate(
    ([key, values]) => (globalThis as unknown as { tests: Record<string, (...all: unknown[]) => unknown> }).tests[key as string]?.(...(values as unknown[])),
    [name, args] as const,
  ) as Promise<PageTests[Name]>;
}

for (const point of ['load', 'idle', 'prefill', 'decode'] as const) {
  test(`a_device_lost_during_${point}_is_told_in_time_and_the_next_answer_is_the_same`, async () => {
    const { lost, text, expected, devices } = await call('loseDevice', point, GPU);
    if (lost) {
      assert.deepEqual([lost.error?.isEdgeError, lost.error?.code], [true, 'device-lost'], JSON.stringify(lost));
      if (point !== 'load') assert.ok(lost.ms < 2000, `${lost.ms} ms`);
    }
    assert.ok(expected.length > 0);
    assert.deepEqual([text, devices], [expected, 2]);
  });
}

test('gpu_engines_that_come_and_go_leave_nothing_behind', async () => {
  const times = process.env.HANZO_EDGE_FULL ? 50 : 8;
  const { rows, devices, isGone } = await call('reload', times, GPU);
  assert.deepEqual([devices, isGone], [times, true], 'every device was destroyed');
  const [first] = rows;
  assert.ok(first && first.gpuBytes > 0);
  assert.ok(rows.every(({ text, gpuBytes }) => text === first.text && gpuBytes === first.gpuBytes), JSON.stringify(rows));
  assert.equal(rows.at(-1)?.wasmBytes, rows[3]?.wasmBytes, JSON.stringify(rows.map(({ wasmBytes }) => wasmBytes)));
});

test('fifty_engines_in_a_page_take_no_more_memory_than_ten', async () => {
  const { rows } = await call('reload', 50, { ...GPU, backend: 'cpu' });
  assert.equal(rows.at(-1)?.wasmBytes, rows[9]?.wasmBytes, JSON.stringify(rows.map(({ wasmBytes }) => wasmBytes)));
  assert.equal(new Set(rows.map(({ text }) => text)).size, 1);
});

test('conversations_that_alternate_on_a_gpu_are_copied_there', async () => {
  const { usages, texts, expected, kvBytes, gpuBytes } = await call('alternate', GPU);
  assert.ok(usages.slice(2).every(({ promptTokens, cachedTokens }) => promptTokens - cachedTokens < 40), JSON.stringify(usages));
  assert.deepEqual(texts, expected);
  assert.ok(kvBytes[1] > kvBytes[0] && gpuBytes > kvBytes[1], JSON.stringify({ kvBytes, gpuBytes }));
});

test('two_engines_in_one_page_answer_at_the_same_time', async () => {
  const { texts, closed } = await call('two', CPU);
  assert.match(texts[0] ?? '', /^Gravity/);
  assert.equal(new Set(texts).size, 1, JSON.stringify(texts));
  assert.equal(closed?.code, 'closed');
});

test('a_page_is_never_blocked_while_an_engine_loads_and_answers', async () => {
  const { tasks, tokens } = await call('longTasks', CPU);
  console.log(`# long tasks, ms: ${tasks.map((ms) => ms.toFixed(0)).join(', ')} (the last is the test's own)`);
  assert.equal(tokens, 64);
  assert.ok((tasks.at(-1) ?? 0) >= 100, 'the observer works');
  assert.deepEqual(tasks.slice(0, -1), []);
});

test('a_worker_that_dies_in_an_answer_rejects_all_and_the_next_call_gets_a_new_one', async () => {
  const { lost, queued, text, expected, workers } = await call('workerDies', CPU);
  for (const { error, ms } of [lost, queued]) {
    assert.deepEqual([error?.isEdgeError, error?.code], [true, 'internal']);
    assert.ok(ms < 5000, `${ms} ms`);
  }
  assert.deepEqual([text, workers], [expected, 2]);
});
