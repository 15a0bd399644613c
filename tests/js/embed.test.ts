// `edge.embed` in Node, on the CPU: against an independent engine, with every option, beside chats, and what it refuses.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EdgeError, HanzoEdge } from '@hanzo/edge';
import type { EmbedInput, EmbedOptions, Progress } from '@hanzo/edge';
import { EMBEDDED, cosine } from './oracle.js';
import { tinyModel } from './tiny.js';

const MODEL = process.env.HANZO_EDGE_MODEL ?? '';
const TEXTS = ['A river carries sand to the sea.', 'hello', 'The clock of the town hall stopped in the war.'];
const GRAVITY = [{ role: 'user' as const, content: 'What is gravity?' }];
let edge: HanzoEdge;

before(async () => { edge = await HanzoEdge.init({ model: MODEL, backend: 'cpu', maxContextTokens: 512 }); });
after(() => edge?.close());

const tiny = (contextLength?: number) => HanzoEdge.init({ model: tinyModel(1, contextLength), backend: 'cpu', threads: 1 });
const length = (vector: Float32Array) => Math.hypot(...vector);
const one = async (input: EmbedInput, options?: EmbedOptions) => (await edge.embed(input, options))[0] ?? new Float32Array();
const fails = (code: string, path: string | undefined, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EdgeError, String(error));
  assert.deepEqual([error.code, error.path], [code, path], error.message);
  assert.match(error.message, message);
  return true;
};

test('vectors_are_those_of_an_independent_engine', async () => {
  assert.ok(EMBEDDED.length >= 4);
  const found: number[] = [];
  for (const { text, pooling, vector } of EMBEDDED) found.push(cosine(await one(text, { pooling }), vector));
  console.log(`# cosines with the recorded vectors in Node on the CPU: ${found.map((value) => value.toFixed(5)).join(', ')}`);
  assert.ok(found.every((value) => value > 0.999), found.join());
});

test('many_texts_in_one_call_are_as_each_alone', async () => {
  const together = await edge.embed(TEXTS);
  assert.deepEqual(together.map((vector) => [vector.constructor, vector.length]), TEXTS.map(() => [Float32Array, 576]));
  for (const [i, text] of TEXTS.entries()) assert.deepEqual(await one(text), together[i]);
  assert.ok(together.every((vector) => Math.abs(length(vector) - 1) < 1e-6));
  // What was given out is the caller's: later calls change nothing of it.
  const copy = Float32Array.from(together[0] ?? []);
  await edge.embed(TEXTS.map((text) => `${text} Again.`));
  assert.deepEqual(together[0], copy);
  assert.deepEqual(await edge.embed([]), []);
});

test('token_ids_are_taken_as_they_are', async () => {
  const ids = await edge.tokenize(TEXTS[0] ?? '');
  assert.deepEqual(await edge.embed([ids, TEXTS[0] ?? '']), [await one(ids), await one(TEXTS[0] ?? '')]);
  assert.deepEqual(await one(ids), await one(TEXTS[0] ?? ''));
});

test('pooling_length_and_dimensions', async () => {
  const ids = await edge.tokenize(TEXTS[0] ?? '');
  const states = await one(ids, { pooling: 'none', normalize: false });
  assert.equal(states.length, ids.length * 576);
  const row = (index: number) => states.slice(index * 576, (index + 1) * 576);
  assert.deepEqual(await one(ids, { pooling: 'cls', normalize: false }), row(0));
  assert.deepEqual(await one(ids, { pooling: 'last', normalize: false }), row(ids.length - 1));
  assert.deepEqual(await one(ids, { normalize: false }), row(ids.length - 1), 'a file that says nothing');
  const mean = row(0).map((_, column) => [...ids.keys()].reduce((sum, index) => sum + (row(index)[column] ?? 0), 0) / ids.length);
  assert.ok(cosine(await one(ids, { pooling: 'mean' }), mean) > 0.999_999);
  const raw = await one('hello', { normalize: false });
  assert.ok(Math.abs(length(raw) - 1) > 0.1);
  const cut = await one('hello', { dimensions: 64 });
  assert.ok(cut.length === 64 && Math.abs(length(cut) - 1) < 1e-6 && cosine(cut, raw.slice(0, 64)) > 0.999_999);
  assert.deepEqual(await one('hello', { dimensions: 64, normalize: false }), raw.slice(0, 64));
});

test('progress_counts_the_tokens_of_all_texts', async () => {
  const news: Progress[] = [];
  await edge.embed([TEXTS[0] ?? '', 'word '.repeat(300)], { onProgress: (progress) => news.push(progress) });
  const total = (await edge.tokenize(TEXTS[0] ?? '')).length + (await edge.tokenize('word '.repeat(300))).length;
  assert.ok(news.length >= 3 && news.every((progress) => progress.phase === 'prompt' && progress.total === total));
  assert.deepEqual([news.map(({ loaded }) => loaded), news.at(-1)?.loaded], [news.map(({ loaded }) => loaded).sort((a, b) => a - b), total]);
});

test('what_is_wrong_is_one_clear_error_and_the_engine_stays_usable', async () => {
  const other = await tiny();
  const wrong = (input: unknown, options: unknown, ...expected: Parameters<typeof fails>) => assert.rejects(other.embed(input as string, options as EmbedOptions), fails(...expected));
  await wrong(5, {}, 'invalid-argument', 'input', /a string or a list of strings, found 5/);
  await wrong(['a', 5], {}, 'invalid-argument', 'input[1]', /found number/);
  await wrong('', {}, 'invalid-argument', 'input[0]', /at least one token, found an empty input/);
  await wrong(['a', ''], {}, 'invalid-argument', 'input[1]', /at least one token/);
  await wrong([Uint32Array.of(1, 60_000)], {}, 'invalid-argument', 'input[0]', /ids below 288, found 60000/);
  await wrong('a', { pooling: 'max' }, 'invalid-argument', 'pooling', /none, mean, cls, last, found "max"/);
  await wrong('a', { normalize: 1 }, 'invalid-argument', 'normalize', /true or false/);
  await wrong('a', { dimensions: 0 }, 'invalid-argument', 'dimensions', /from 1/);
  await wrong('a', { dimensions: 65 }, 'invalid-argument', 'dimensions', /dimensions: expected 1 to 64, found 65/);
  await wrong('a', { dims: 3 }, 'invalid-argument', 'dims', /unknown option dims; known: pooling/);
  await wrong(['a', 'z'.repeat(600)], {}, 'context-overflow', 'input[1]', /at most 512 tokens, which the context holds, found 600/);
  const [cut, begin] = await other.embed(['z'.repeat(600), 'z'.repeat(512)], { truncate: true });
  assert.deepEqual(cut, begin);
  await other.close();
});

test('a_signal_ends_it_at_once_wherever_it_is', async () => {
  await assert.rejects(edge.embed('a', { signal: AbortSignal.abort('before') }), (reason) => reason === 'before');
  const long = Array.from({ length: 200 }, () => 'word '.repeat(100));
  const control = new AbortController();
  let steps = 0;
  const begin = performance.now();
  const running = edge.embed(long, { signal: control.signal, onProgress: () => { if ((steps += 1) === 3) control.abort('enough'); } });
  const waiting = new AbortController();
  const queued = edge.embed(TEXTS, { signal: waiting.signal });
  waiting.abort('not yet');
  await assert.rejects(queued, (reason) => reason === 'not yet');
  await assert.rejects(running, (reason) => reason === 'enough');
  assert.deepEqual(await one('hello'), (await edge.embed(TEXTS))[1]);
  assert.ok(performance.now() - begin < 60_000, 'the rest of the texts was not run');
});

test('chats_and_embeddings_take_turns_and_do_not_disturb_each_other', async () => {
  const greedy = { temperature: 0, maxTokens: 16 };
  const alone = await edge.chat(GRAVITY, greedy).result;
  const vectors = await edge.embed(TEXTS);
  const order: string[] = [];
  const many = edge.embed([...TEXTS, ...TEXTS, ...TEXTS, ...TEXTS]).then((all) => { order.push('embed'); return all; });
  const answers = await Promise.all([0, 1].map(async () => {
    const result = await edge.chat(GRAVITY, greedy).result;
    order.push('chat');
    return result;
  }));
  assert.deepEqual((await many).slice(3, 6), vectors);
  assert.deepEqual(order, ['chat', 'chat', 'embed'], 'an answer does not wait for all texts');
  assert.ok(answers.every(({ text }) => text === alone.text));
  // The conversation is still in the prefix cache.
  const next = await edge.chat([...GRAVITY, { role: 'assistant', content: alone.text }, { role: 'user', content: 'Why?' }], greedy).result;
  assert.ok(next.usage.cachedTokens > 20, `${next.usage.cachedTokens} of ${next.usage.promptTokens}`);
});

test('a_closed_engine_says_so_also_to_those_who_wait', async () => {
  const other = await tiny();
  assert.equal((await other.embed('hello'))[0]?.length, 64);
  const waiting = assert.rejects(other.embed(Array.from({ length: 500 }, () => 'hello')), fails('closed', undefined, /closed/));
  await new Promise((resolve) => { setTimeout(resolve, 5); });
  await other.close();
  await waiting;
  await assert.rejects(other.embed([]), fails('closed', undefined, /closed/));
});

test('many_calls_leave_the_memory_as_it_was', async () => {
  const other = await tiny();
  const run = async () => { for (let i = 0; i < 200; i += 1) await other.embed(['hello world', 'hello']); };
  await run();
  const before = (await other.memory()).wasmBytes;
  await run();
  assert.equal((await other.memory()).wasmBytes, before);
  await other.close();
});
