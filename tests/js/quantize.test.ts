// Quantization while loading, with the real default model, whose matrices have 5 bits and whose table 8: what is held, and
// that it answers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HanzoEdge } from '@hanzo/edge';
import type { EdgeOptions } from '@hanzo/edge';

const MODEL = process.env.HANZO_EDGE_MODEL ?? '';

async function held(options: EdgeOptions): Promise<{ weights: HanzoEdge['diagnostics']['weights']; bytes: number; kv: number; text: string }> {
  const edge = await HanzoEdge.init({ model: MODEL, backend: 'cpu', maxContextTokens: 256, ...options });
  const answer = edge.chat([{ role: 'user', content: 'What is gravity?' }], { temperature: 0, maxTokens: 12 });
  const { text } = await answer.result;
  const { weightsBytes, kvBytes } = await edge.memory();
  const { weights } = edge.diagnostics;
  await edge.close();
  return { weights, bytes: weightsBytes, kv: kvBytes, text };
}

test('weights_are_quantized_while_they_load_where_that_makes_them_smaller', async () => {
  const kept = await held({});
  assert.equal(kept.weights.quantization, 'none');
  const all = Object.values(kept.weights.matrices).reduce((sum, { count }) => sum + count, 0);
  const smaller = await held({ quantization: 'afq-4' });
  assert.equal(smaller.weights.quantization, 'afq-4');
  const { b4g64a, b6g64a } = smaller.weights.matrices;
  assert.deepEqual([b4g64a?.count, b6g64a?.count], [all - 1, 1], JSON.stringify(smaller.weights));
  assert.ok(smaller.bytes < kept.bytes - 5_000_000, `${smaller.bytes} of ${kept.bytes}`);
  assert.match(smaller.text, /fundamental concept in physics/);
  const larger = await held({ quantization: 'afq-8' });
  assert.match(larger.weights.reason, new RegExp(`${all} of ${all} matrices are kept`));
  assert.deepEqual([larger.bytes, larger.text], [kept.bytes, kept.text], 'nothing gets larger');
});

test('auto_takes_the_most_bits_that_fit_the_memory', async () => {
  const kept = await held({ quantization: 'none' });
  const room = kept.weights.bytes + kept.kv;
  assert.equal((await held({ maxMemoryBytes: room })).weights.quantization, 'none');
  const fitted = await held({ maxMemoryBytes: room - 1 });
  assert.equal(fitted.weights.quantization, 'afq-6');
  assert.match(fitted.weights.reason, /do not fit the memory; \d+ of \d+ matrices are kept/, 'only the table gets smaller');
  assert.ok(fitted.bytes < kept.bytes);
  assert.match(fitted.text, /Gravity/);
});
