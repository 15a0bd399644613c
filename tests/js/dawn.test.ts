// The package in Node on WebGPU (Dawn, which Chrome's WebGPU is made of), with the real default model.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HanzoEdge } from '@hanzo/edge';
import { provideGpu } from '#scripts/dawn.mjs';
import { RECORDINGS } from './oracle.js';

const MODEL = process.env.HANZO_EDGE_MODEL ?? '';
const TOKENS = 6;
let edge: HanzoEdge;

before(async () => {
  assert.ok(MODEL, 'HANZO_EDGE_MODEL must name the default model file: run `npm test`');
  await provideGpu();
  edge = await HanzoEdge.init({ model: MODEL, backend: 'webgpu', maxContextTokens: 128 });
});
after(() => edge?.close());

test('the_gpu_is_found_without_a_page', () => {
  const { backend, adapter, selfTest, worker } = edge.diagnostics;
  assert.equal(backend, 'webgpu');
  assert.ok(adapter, 'no adapter in the diagnostics');
  assert.ok(selfTest.length > 0 && selfTest.every(({ ok }) => ok), JSON.stringify(selfTest));
  assert.equal(worker.used, false);
});

test('kernels_are_measured_when_asked', async () => {
  const measured = await edge.complete('Gravity is', { temperature: 0, maxTokens: 2, profile: true }).result;
  const kernels = measured.stats.kernels ?? [];
  assert.ok(kernels.some(({ kernel, calls, us }) => kernel.startsWith('attention_decode') && calls === 60 && us >= 0), JSON.stringify(kernels));
  const plain = await edge.complete('Gravity is', { temperature: 0, maxTokens: 2 }).result;
  assert.equal(plain.stats.kernels, undefined);
  assert.deepEqual(plain.tokens, measured.tokens);
});

test('an_answer_begins_as_the_recorded_one', async () => {
  const recorded = RECORDINGS.find(({ prompt }) => prompt.includes('What is gravity?'));
  assert.ok(recorded);
  const { tokens, stats } = await edge.chat([{ role: 'user', content: 'What is gravity?' }], { temperature: 0, maxTokens: TOKENS }).result;
  assert.deepEqual([...tokens], recorded.greedy_ids.slice(0, TOKENS));
  assert.equal(stats.backend, 'webgpu');
  const { gpuBytes } = await edge.memory();
  assert.ok(gpuBytes > 50e6, `${gpuBytes} bytes on the GPU`);
});
