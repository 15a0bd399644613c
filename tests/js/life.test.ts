// The life of an engine in Node, with a tiny model: calls that queue, are left, called off and fail at any point; copies of
// conversations; guesses ahead; loads and unloads. After everything the engine answers as a fresh one does.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { EdgeError, HanzoEdge } from '@hanzo/edge';
import type { EdgeOptions, GenerateOptions, GenerateResult, TokenStream } from '@hanzo/edge';
import { END_ID, splitmix, tinyModel } from './tiny.js';

const MODEL = tinyModel(2);
const GREEDY = { temperature: 0, maxTokens: 8 };
const load = (options: EdgeOptions = {}) => HanzoEdge.init({ model: MODEL, backend: 'cpu', threads: 1, ...options });
const hasCode = (code: string) => (error: unknown) => error instanceof EdgeError && error.code === code;

let edge: HanzoEdge;
before(async () => { edge = await load(); });
after(() => edge?.close());

/** A long prompt that no other number begins like. */
const prompt = (number: number, words = 30) => `${number} ${'hello world the '.repeat(words / 3)}`;

/** The greedy answer of an engine that did nothing before. */
async function freshAnswer(text: string, options: GenerateOptions = GREEDY): Promise<string> {
  const fresh = await load();
  const result = await fresh.complete(text, options).result;
  await fresh.close();
  return result.text;
}

test('three_hundred_departures_at_random_points_leave_the_engine_right', async () => {
  const seed = Number(process.env.HANZO_EDGE_SEED ?? Date.now() % 1e6);
  console.log(`# seed ${seed} (HANZO_EDGE_SEED=${seed} repeats it)`);
  const signed = splitmix(seed);
  const random = () => (signed() + 1) / 2;
  const below = (n: number) => Math.floor(random() * n);
  const prompts = Array.from({ length: 6 }, (_, index) => prompt(index, 3 + 60 * (index % 3)));
  const expected = new Map<string, string>();
  for (const text of prompts) expected.set(text, await freshAnswer(text));
  const any = () => prompts[below(prompts.length)] ?? '';
  const mayBe = (): GenerateOptions => ({
    maxTokens: 1 + below(60),
    ...(below(2) ? { temperature: 0 } : { seed: below(1000) }),
    ...(below(2) ? { speculative: true } : {}),
    ...(below(4) ? {} : { repeatPenalty: 1.1 }),
  });
  const counts: Record<string, number> = {};
  for (let run = 0; run < 300; run += 1) {
    const names = Object.keys(departures);
    const name = names[below(names.length)] ?? '';
    counts[name] = (counts[name] ?? 0) + 1;
    const others = Array.from({ length: below(3) }, () => edge.complete(any(), mayBe()));
    await departures[name]?.({ edge, text: any(), options: mayBe(), pieces: below(12), ms: random() * 8 });
    if (below(2)) for (const other of others) other.cancel();
    const text = any();
    const { text: found } = await edge.complete(text, GREEDY).result;
    assert.equal(found, expected.get(text), `after run ${run}, ${name}, seed ${seed}`);
    await Promise.all(others.map(({ result }) => result));
  }
  assert.equal(Object.keys(counts).length, Object.keys(departures).length, JSON.stringify(counts));
  // Nothing is left waiting.
  assert.equal((await edge.complete(prompts[0] ?? '', GREEDY).result).text, expected.get(prompts[0] ?? ''));
});

interface Departure { edge: HanzoEdge; text: string; options: GenerateOptions; pieces: number; ms: number }

const pause = (ms: number) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** Reads some pieces, then does as told; answers whether the stream had so many. */
async function readThen(stream: TokenStream, pieces: number, act: () => void): Promise<void> {
  let count = 0;
  for await (const _ of stream) {
    if (count >= pieces) act();
    count += 1;
  }
}

/** The ways to leave an answer, a session or a load. */
const departures: Record<string, (where: Departure) => Promise<void>> = {
  async signalAfterPieces({ edge: engine, text, options, pieces }) {
    const control = new AbortController();
    const stream = engine.complete(text, { ...options, signal: control.signal });
    await readThen(stream, pieces, () => control.abort('enough')).catch((reason: unknown) => assert.equal(reason, 'enough'));
  },
  async signalAfterTime({ edge: engine, text, options, ms }) {
    const control = new AbortController();
    const stream = engine.complete(text, { ...options, signal: control.signal });
    setTimeout(() => control.abort('late'), ms);
    await stream.result.catch((reason: unknown) => assert.equal(reason, 'late'));
  },
  async signalBefore({ edge: engine, text, options }) {
    await assert.rejects(engine.complete(text, { ...options, signal: AbortSignal.abort('never') }).result, (reason) => reason === 'never');
  },
  async signalDuringThePrompt({ edge: engine, options }) {
    const control = new AbortController();
    const stream = engine.complete(prompt(77, 60), { ...options, signal: control.signal, onProgress: () => control.abort('prompt') });
    await assert.rejects(stream.result, (reason) => reason === 'prompt');
  },
  async embeddingUntilLate({ edge: engine, text, ms }) {
    const control = new AbortController();
    setTimeout(() => control.abort('late'), ms);
    const vectors = await engine.embed([text, prompt(55, 90), text], { signal: control.signal }).catch((reason: unknown) => assert.equal(reason, 'late'));
    if (vectors) assert.deepEqual(vectors[2], vectors[0]);
  },
  async embeddingOutOfOrder({ edge: engine, text, pieces }) {
    const control = new AbortController();
    let count = 0;
    const running = engine.embed([text, text, text], { signal: control.signal, onProgress: () => { if ((count += 1) === 2) control.abort('enough'); } });
    const answer = await engine.complete(text, { maxTokens: pieces + 1 }).result;
    assert.ok(answer.tokens.length <= pieces + 1);
    await assert.rejects(running, (reason) => reason === 'enough');
  },
  async leavingTheLoop({ edge: engine, text, options, pieces }) {
    let count = 0;
    const stream = engine.complete(text, options);
    for await (const _ of stream) if ((count += 1) > pieces) break;
  },
  async throwingThroughTheLoop({ edge: engine, text, options }) {
    const run = async () => { for await (const _ of engine.complete(text, options)) throw new Error('mine'); };
    // Some answers have no pieces at all.
    await run().catch((error: Error) => assert.equal(error.message, 'mine'));
  },
  async cancellingAfterTime({ edge: engine, text, options, ms }) {
    const stream = engine.complete(text, options);
    await pause(ms);
    stream.cancel();
    assert.ok(['abort', 'stop', 'length'].includes((await stream.result).finishReason));
  },
  async cancellingTwiceAtOnce({ edge: engine, text, options }) {
    const stream = engine.complete(text, options);
    stream.cancel();
    stream.cancel();
    assert.equal((await stream.result).finishReason, 'abort');
  },
  async droppingTheIterator({ edge: engine, text, options }) {
    await engine.complete(text, options)[Symbol.asyncIterator]().next();
  },
  async cancellingTheReadable({ edge: engine, text, options }) {
    const reader = engine.complete(text, options).readable.getReader();
    await reader.read();
    await reader.cancel();
  },
  async destroyingASession({ edge: engine, text, options, ms }) {
    const session = await engine.session(options);
    // Looked at from the start: the second may overflow the context before the session is destroyed.
    const answers = Promise.allSettled([session.prompt(text), session.prompt('again')]);
    await pause(ms);
    session.destroy();
    await answers;
  },
  async abortingALoad({ ms }) {
    const control = new AbortController();
    const slow = (async () => new Response(slowly(MODEL, ms / 8), { headers: { 'content-length': String(MODEL.length) } })) as unknown as typeof fetch;
    const loading = load({ model: 'http://nowhere.invalid/m.gguf', cache: 'none', fetch: slow, signal: control.signal });
    setTimeout(() => control.abort('no more'), ms);
    await loading.then((engine) => engine.close(), (reason: unknown) => assert.equal(reason, 'no more'));
  },
  async closingAnotherEngine({ text, options, ms }) {
    const other = await load();
    const { result } = other.complete(text, options);
    await pause(ms);
    await other.close();
    await result.catch((error: unknown) => assert.ok(hasCode('closed')(error), String(error)));
  },
  async aBadRequest({ edge: engine, text }) {
    await assert.rejects(engine.complete(text, { temperature: -1 }).result, hasCode('invalid-argument'));
    await assert.rejects(engine.complete('word '.repeat(1000)).result, hasCode('context-overflow'));
  },
};

/** The bytes in a few parts, with a pause after each. */
function slowly(bytes: Uint8Array, ms: number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      await pause(ms);
      const end = at + Math.ceil(bytes.length / 6);
      controller.enqueue(bytes.slice(at, end));
      at = end;
      if (at >= bytes.length) controller.close();
    },
  }, { highWaterMark: 0 });
}

test('fifty_loads_and_unloads_take_no_more_memory_than_ten', async () => {
  const sizes: number[] = [];
  const expected = await freshAnswer(prompt(1));
  for (let round = 0; round < 50; round += 1) {
    const engine = await load();
    assert.equal((await engine.complete(prompt(1), GREEDY).result).text, expected);
    await engine.complete(prompt(2), GREEDY).result;
    sizes.push((await engine.memory()).wasmBytes);
    await engine.close();
  }
  assert.equal(sizes.at(-1), sizes[9], sizes.join());
});

test('conversations_that_alternate_run_only_what_is_new', async () => {
  // Together they stay within the context's number of tokens, and so within the memory for copies.
  const engine = await load();
  const before = await engine.memory();
  const sessions = await Promise.all([1, 2].map((number) => engine.session({ ...GREEDY, initialPrompts: [{ role: 'system', content: prompt(number, 21) }] })));
  const alone = await load();
  const last = [0, 0];
  for (let round = 0; round < 3; round += 1) {
    for (const [index, session] of sessions.entries()) {
      const { usage } = await session.promptStreaming(`question ${round}`).result;
      // All of the prompt before; of its answer perhaps not, since its bytes need not be the tokens that its text has.
      if (round === 0) assert.ok(usage.cachedTokens < 20, JSON.stringify(usage));
      else assert.ok(usage.cachedTokens >= (last[index] ?? 0) - 4, `session ${index}, round ${round}: ${JSON.stringify(usage)} after ${last[index]}`);
      last[index] = usage.promptTokens;
    }
  }
  const held = await engine.memory();
  assert.ok(held.kvBytes > before.kvBytes && held.kvBytes <= 2 * before.kvBytes, `${before.kvBytes} ${held.kvBytes}`);
  // The answers are those of an engine that has only one conversation.
  const [first] = sessions;
  const other = await alone.session({ ...GREEDY, initialPrompts: [{ role: 'system', content: prompt(1, 21) }] });
  for (let round = 0; round < 3; round += 1) await other.prompt(`question ${round}`);
  assert.equal(await first?.prompt('and now?'), await other.prompt('and now?'));
  await Promise.all([engine.close(), alone.close()]);
});

test('without_memory_to_spare_nothing_is_copied', async () => {
  const roomy = await load();
  const { weightsBytes, kvBytes } = await roomy.memory();
  await roomy.close();
  const engine = await load({ maxMemoryBytes: weightsBytes + kvBytes, maxContextTokens: 512 });
  for (const number of [1, 2, 1, 2]) {
    const { usage } = await engine.complete(prompt(number), GREEDY).result;
    assert.ok(usage.cachedTokens < 5, JSON.stringify(usage));
  }
  assert.equal((await engine.memory()).kvBytes, kvBytes);
  await engine.close();
});

test('the_memory_for_copies_is_what_the_option_says', async () => {
  const cachedWith = async (prefixCacheBytes?: number) => {
    const engine = await load({ maxContextTokens: 512, ...(prefixCacheBytes === undefined ? {} : { prefixCacheBytes }) });
    const empty = (await engine.memory()).kvBytes;
    await engine.complete(prompt(1), GREEDY).result;
    await engine.complete(prompt(2), GREEDY).result;
    const { cachedTokens } = (await engine.complete(prompt(1), GREEDY).result).usage;
    const { kvBytes } = await engine.memory();
    await engine.close();
    return { cachedTokens, copyBytes: kvBytes - empty, empty };
  };
  const usual = await cachedWith();
  assert.ok(usual.cachedTokens > 5 && usual.copyBytes > 0 && usual.copyBytes <= usual.empty, JSON.stringify(usual));
  const none = await cachedWith(0);
  assert.ok(none.cachedTokens < 5 && none.copyBytes === 0, JSON.stringify(none));
  const tight = await cachedWith(Math.floor(usual.copyBytes / 2));
  assert.ok(tight.copyBytes <= usual.copyBytes / 2, JSON.stringify([tight, usual]));
  for (const wrong of [-1, 0.5, '1']) await assert.rejects(load({ prefixCacheBytes: wrong as number }), hasCode('invalid-argument'));
});

test('a_clone_reuses_what_its_session_ran_and_the_session_goes_on_as_well', async () => {
  const session = await edge.session({ ...GREEDY, initialPrompts: [{ role: 'system', content: prompt(8) }] });
  await session.prompt('one');
  const clone = await session.clone();
  const usage = async (of: typeof session, text: string) => (await of.promptStreaming(text).result).usage;
  const base = session.contextUsage;
  for (const [of, text] of [[session, 'two'], [clone, 'three'], [session, 'four'], [clone, 'five']] as const) {
    const { cachedTokens } = await usage(of, text);
    // An answer's bytes need not be the tokens that its text has.
    assert.ok(cachedTokens >= base - 12, `${text}: ${cachedTokens} of ${base}`);
  }
});

test('calls_are_answered_in_order_and_one_that_is_left_or_wrong_does_not_wait', async () => {
  const order: string[] = [];
  const note = (name: string, stream: TokenStream) => stream.result.then((result) => { order.push(name); return result; }, (error: unknown) => { order.push(name); throw error; });
  const long = { temperature: 0, maxTokens: 120 };
  const streams = [1, 2, 3, 4].map((number) => edge.complete(prompt(number), long));
  const results = streams.map((stream, index) => note(String(index + 1), stream));
  const wrong = note('wrong', edge.complete('word '.repeat(1000)));
  streams[2]?.cancel();
  await assert.rejects(wrong, hasCode('context-overflow'));
  const left = await results[2];
  assert.deepEqual([left?.finishReason, left?.text, left?.tokens.length], ['abort', '', 0]);
  const answers = await Promise.all(results);
  assert.deepEqual(order.slice().sort(), ['1', '2', '3', '4', 'wrong']);
  assert.deepEqual(order.filter((name) => ['1', '2', '4'].includes(name)), ['1', '2', '4']);
  assert.ok(order.indexOf('3') < order.indexOf('1') && order.indexOf('wrong') < order.indexOf('1'), order.join());
  assert.ok(answers[3] && answers[3].tokens.length > 0);
});

test('other_calls_are_answered_while_a_long_answer_is_written', async () => {
  const stream = edge.complete(prompt(5), { temperature: 0, maxTokens: 200 });
  let isOver = false;
  const result = stream.result.then((value: GenerateResult) => { isOver = true; return value; });
  assert.ok((await edge.tokenize('hello world')).length > 0);
  assert.ok((await edge.memory()).kvBytes > 0);
  assert.equal(isOver, false);
  stream.cancel();
  await result;
});

test('an_iterator_that_is_dropped_stops_the_work_once_it_is_collected', async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const engine = await load({ model: tinyModel(1, 4096) });
  const stream = engine.complete(prompt(6), { temperature: 0, maxTokens: 3900, logitBias: { [END_ID]: -100 } });
  const readOnce = async () => { await stream[Symbol.asyncIterator]().next(); };
  await readOnce();
  for (let round = 0; round < 5; round += 1) {
    gc();
    await pause(2);
  }
  const { finishReason, tokens } = await stream.result;
  assert.equal(finishReason, 'abort', `${tokens.length} tokens`);
  await engine.close();
});

test('a_stream_whose_result_is_awaited_goes_on_without_its_iterator', async () => {
  const gc = runInNewContext('gc') as () => void;
  const stream = edge.complete(prompt(6), { temperature: 0, maxTokens: 60 });
  await stream[Symbol.asyncIterator]().next();
  const { result } = stream;
  for (let round = 0; round < 5; round += 1) {
    gc();
    await pause(1);
  }
  assert.notEqual((await result).finishReason, 'abort');
});

test('guessing_ahead_gives_the_same_answers', async () => {
  for (const options of [{ temperature: 0 }, { temperature: 1, seed: 3 }, { temperature: 0.7, seed: 4, repeatPenalty: 1.1 }, { temperature: 0, stop: 'o' }]) {
    for (const number of [1, 2, 3]) {
      const base = { ...options, maxTokens: 80 };
      const plain = await edge.complete(prompt(number), base).result;
      assert.equal(plain.stats.draftedTokens, undefined);
      for (const speculative of [true, { maxTokens: 3 }]) {
        const guessed = await edge.complete(prompt(number), { ...base, speculative }).result;
        assert.deepEqual([guessed.text, [...guessed.tokens], guessed.finishReason], [plain.text, [...plain.tokens], plain.finishReason]);
        assert.ok((guessed.stats.acceptedTokens ?? -1) <= (guessed.stats.draftedTokens ?? -1));
      }
    }
  }
  for (const speculative of [7, 'yes', null, { maxTokens: -1 }, { maxTokens: 33 }, { most: 3 }]) {
    await assert.rejects(edge.complete('x', { speculative: speculative as unknown as boolean }).result, hasCode('invalid-argument'));
  }
});

test('a_bias_rules_tokens_in_and_out', async () => {
  const [first] = (await edge.complete(prompt(1), { ...GREEDY, maxTokens: 1 }).result).tokens;
  const [other] = (await edge.complete(prompt(1), { ...GREEDY, maxTokens: 1, logitBias: { [first ?? 0]: -100 } }).result).tokens;
  assert.notEqual(other, first);
  const { tokens } = await edge.complete(prompt(1), { ...GREEDY, maxTokens: 3, logitBias: { 72: 100 } }).result;
  assert.deepEqual([...tokens], [72, 72, 72]);
});

test('prompts_at_the_edge_of_the_context_fit_or_say_both_numbers', async () => {
  const engine = await load({ maxContextTokens: 64 });
  // A byte that merges with nothing is a token.
  for (const [count, maxTokens, expected] of [
    [62, 1, 'length 1'], [62, 100, 'context 2'], [63, 1, 'length 1'], [63, 100, 'context 1'], [64, 1, ''], [65, 100, ''], [1_000_000, 1, ''],
  ] as const) {
    const answer = engine.complete('x'.repeat(count), { temperature: 0, maxTokens, logitBias: { 87: 100 } }).result;
    if (expected) {
      const { finishReason, tokens } = await answer;
      assert.equal(`${finishReason} ${tokens.length}`, expected, `${count} ${maxTokens}`);
    } else {
      await assert.rejects(answer, (error) => hasCode('context-overflow')(error) && (error as Error).message.includes(String(count)) && (error as Error).message.includes('64'));
    }
    assert.equal((await engine.complete('x', { temperature: 0, maxTokens: 1 }).result).tokens.length, 1);
  }
  await engine.close();
  for (const maxContextTokens of [0, -1, 1.5, NaN, 100_000]) {
    await assert.rejects(load({ maxContextTokens }), hasCode('invalid-argument'), String(maxContextTokens));
  }
});

test('five_turns_until_the_context_is_full', async () => {
  const engine = await load({ maxContextTokens: 128 });
  const session = await engine.session({ temperature: 0, maxTokens: 6 });
  let failure: unknown;
  let turns = 0;
  for (; failure === undefined && turns < 20; turns += 1) {
    failure = await session.prompt('hello the world').then(() => undefined, (error: unknown) => error);
  }
  assert.ok(hasCode('context-overflow')(failure), String(failure));
  assert.ok(turns > 2, String(turns));
  const usage = session.contextUsage;
  await assert.rejects(session.append('x'.repeat(120)), hasCode('context-overflow'));
  assert.equal(session.contextUsage, usage, 'a failed append leaves the session as it was');
  assert.equal((await engine.complete('x', { temperature: 0, maxTokens: 1 }).result).tokens.length, 1);
  await engine.close();
});

test('a_window_that_slides_lets_an_answer_go_on_beyond_the_context', async () => {
  const engine = await load({ maxContextTokens: 128 });
  // Greedy, and without the token that ends a turn.
  const options = { temperature: 0, maxTokens: 300, logitBias: { [END_ID]: -100 }, overflow: 'slide' } as const;
  const session = await engine.session({ ...options, initialPrompts: [{ role: 'system', content: 'be' }] });
  let events = 0;
  session.oncontextoverflow = () => { events += 1; };
  await session.append([{ role: 'user', content: 'x'.repeat(20) }, { role: 'assistant', content: 'y'.repeat(20) }]);
  const stream = session.promptStreaming('go on');
  let text = '';
  for await (const piece of stream) text += piece;
  const result = await stream.result;
  assert.deepEqual([result.finishReason, result.tokens.length, result.text], ['length', 300, text]);
  assert.ok(events > 1 && session.contextUsage <= 128, `${events} ${session.contextUsage}`);
  assert.equal(result.usage.completionTokens, 300);
  // Another prompt works: the oldest turns, that long answer among them, are forgotten.
  assert.ok((await session.promptStreaming('and?', { maxTokens: 5 }).result).tokens.length > 0);
  await engine.close();
});

test('what_a_call_returned_stays_when_the_memory_grows', async () => {
  const ids = await edge.tokenize('hello world');
  const copy = [...ids];
  const { tokens } = await edge.complete(prompt(1), GREEDY).result;
  const answer = [...tokens];
  const other = await load({ maxContextTokens: 512 });
  await edge.complete('z'.repeat(400), GREEDY).result;
  assert.deepEqual([[...ids], [...tokens]], [copy, answer]);
  await other.close();
});

test('engines_in_one_thread_do_not_disturb_each_other', async () => {
  const models = [tinyModel(1), tinyModel(2)];
  const engines = await Promise.all(models.map((model) => load({ model })));
  const alone = await Promise.all(engines.map((engine) => engine.complete(prompt(1), GREEDY).result));
  assert.notEqual(alone[0]?.text, alone[1]?.text);
  const together = await Promise.all([0, 1, 0, 1].map((index) => engines[index]?.complete(prompt(1), GREEDY).result));
  assert.deepEqual(together.map((result) => result?.text), [0, 1, 0, 1].map((index) => alone[index]?.text));
  await engines[0]?.close();
  assert.equal((await engines[1]?.complete(prompt(1), GREEDY).result)?.text, alone[1]?.text);
  await engines[1]?.close();
});
