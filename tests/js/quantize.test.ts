// Quantization while loading, with the real default model, whose weights have 5 bits: what is held, and that it answers.

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
  const [layout = ''] = Object.keys(kept.weights.matrices);
  const all = kept.weights.matrices[layout]?.count ?? 0;
  const smaller = await held({ quantization: 'afq-4' });
  assert.equal(smaller.weights.quantization, 'afq-4');
  assert.match(smaller.weights.reason, /1 of \d+ matrices are kept/, 'the table would take 6 bits');
  assert.equal(smaller.weights.matrices['b4g64a']?.count, all - 1, JSON.stringify(smaller.weights));
  assert.ok(smaller.bytes < kept.bytes - 5_000_000, `${smaller.bytes} of ${kept.bytes}`);
  assert.match(smaller.text, /fundamental concept in physics/);
  const larger = await held({ quantization: 'afq-8' });
  assert.deepEqual([larger.bytes, larger.text], [kept.bytes, kept.text], 'nothing gets larger');
});

test('auto_takes_the_most_bits_that_fit_the_memory', async () => {
  const kept = await held({ quantization: 'none' });
  const room = kept.weights.bytes + kept.kv;
  assert.equal((await held({ maxMemoryBytes: room })).weights.quantization, 'none');
  const fitted = await held({ maxMemoryBytes: room - 1 });
  assert.equal(fitted.weights.quantization, 'afq-4');
  assert.match(fitted.weights.reason, /do not fit/);
  assert.match(fitted.text, /fundamental concept in physics/);
});
