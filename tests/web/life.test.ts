// The life of an engine in headless Chromium: lost devices, workers that die, reloads, conversations that alternate on a
// GPU, engines side by side, and a page that is never blocked.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { MemoryReport } from '@hanzo/edge';
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
  writeFileSync(`${TINY}/model.gguf`, tinyModel(2));
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
  loseDevices: { lost: Record<string, Timed>; texts: string[]; devices: number };
  reload: { text: string; gpuBytes: number; wasmBytes: number }[];
  alternate: { usages: Usage[]; texts: string[]; expected: string[]; fresh: MemoryReport; memory: MemoryReport; sizes: number[]; reasons: string[] };
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

test('a_lost_device_is_told_in_time_and_the_next_answer_is_the_same', async () => {
  const { lost, texts, devices } = await call('loseDevices', GPU);
  for (const [point, { error, ms }] of Object.entries(lost)) {
    assert.deepEqual([error?.isEdgeError, error?.code], [true, 'device-lost'], `${point}: ${JSON.stringify(lost[point])}`);
    if (point !== 'load') assert.ok(ms < 2000, `${point}: ${ms} ms`);
  }
  assert.deepEqual([Object.keys(lost), devices], [['prefill', 'decode', 'load'], 5]);
  assert.ok(texts[0]);
  assert.deepEqual(texts, Array.from(texts, () => texts[0]));
});

test('gpu_engines_that_come_and_go_leave_nothing_behind', { skip: process.env.HANZO_EDGE_FULL ? false : 'fifty loads of a software GPU take minutes: HANZO_EDGE_FULL=1 runs them' }, async () => {
  const rows = await call('reload', 50, GPU);
  const [first] = rows;
  assert.ok(first && first.gpuBytes > 0);
  assert.ok(rows.every(({ text, gpuBytes }) => text === first.text && gpuBytes === first.gpuBytes), JSON.stringify(rows));
  assert.equal(rows.at(-1)?.wasmBytes, rows[9]?.wasmBytes, JSON.stringify(rows.map(({ wasmBytes }) => wasmBytes)));
});

test('fifty_engines_in_a_page_take_no_more_memory_than_ten', async () => {
  const rows = await call('reload', 50, { ...GPU, backend: 'cpu' });
  assert.equal(rows.at(-1)?.wasmBytes, rows[9]?.wasmBytes, JSON.stringify(rows.map(({ wasmBytes }) => wasmBytes)));
  assert.equal(new Set(rows.map(({ text }) => text)).size, 1);
});

test('conversations_that_alternate_on_a_gpu_are_copied_there_and_nothing_is_left_behind', async () => {
  const { usages, texts, expected, fresh, memory, sizes, reasons } = await call('alternate', GPU);
  // All of the prompt before; of its answer perhaps not, since its bytes need not be the tokens that its text has.
  assert.ok(usages.slice(2).every(({ cachedTokens }, index) => cachedTokens >= (usages[index]?.promptTokens ?? 0) - 4), JSON.stringify(usages));
  assert.deepEqual(texts, expected);
  assert.equal(memory.gpuBytes - fresh.gpuBytes, memory.kvBytes - fresh.kvBytes, JSON.stringify({ fresh, memory }));
  assert.ok(memory.kvBytes > fresh.kvBytes && memory.kvBytes <= 2 * fresh.kvBytes);
  // A second engine has what the first one had, and both devices are gone in the end.
  assert.deepEqual([sizes[1], reasons], [sizes[0], ['destroyed', 'destroyed']]);
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
  assert.ok(tokens > 20, `${tokens} tokens`);
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
