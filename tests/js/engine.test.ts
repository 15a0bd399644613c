// The package in Node, on the CPU, with the real default model: from end to end.

import assert from 'node:assert/strict';
import { openSync, readSync } from 'node:fs';
import { createServer } from 'node:http';
import { createReadStream, statSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { EdgeError, HanzoEdge } from '@hanzo/edge';
import type { Progress } from '@hanzo/edge';
import { Connection } from '#dist/connection.js';
import { loadOptions } from '#dist/options.js';
import { gguf } from './gguf.js';
import { hostileFiles } from './hostile.js';
import { RECORDINGS, TOKENIZED, agreement } from './oracle.js';

const MODEL = process.env.HANZO_EDGE_MODEL ?? '';
const GRAVITY = [{ role: 'user' as const, content: 'What is gravity?' }];
let edge: HanzoEdge;

before(async () => {
  assert.ok(MODEL, 'HANZO_EDGE_MODEL must name the default model file: run `npm test`');
  edge = await HanzoEdge.init({ model: MODEL, backend: 'cpu', maxContextTokens: 512 });
});
after(() => edge?.close());

const answer = (maxTokens: number) => edge.chat(GRAVITY, { temperature: 0, maxTokens });

test('ids_equal_the_recorded_ones', async () => {
  assert.ok(TOKENIZED.length >= 30);
  for (const { text, ids } of TOKENIZED) assert.deepEqual([...(await edge.tokenize(text))], ids, JSON.stringify(text));
});

test('forced_decoding_agrees_with_the_recorded_engine', async () => {
  const connection = new Connection(false, null);
  await connection.call('load', loadOptions({ model: MODEL, backend: 'cpu', maxContextTokens: 512 }, () => 0)).answer;
  const { positions, agreeing, clearMisses } = await agreement(async (ids) => connection.call('score', Uint32Array.from(ids)).answer);
  await connection.close(new EdgeError('closed', 'done'));
  console.log(`# agreement in Node on the CPU: ${agreeing} of ${positions}`);
  assert.ok(positions > 200, `${positions} positions`);
  assert.deepEqual(clearMisses, []);
  assert.ok(agreeing / positions >= 0.96, `${agreeing} of ${positions}`);
});

test('a_chat_streams_whole_pieces_that_join_to_the_result', async () => {
  const stream = answer(24);
  const pieces: string[] = [];
  for await (const piece of stream) pieces.push(piece);
  const result = await stream.result;
  assert.equal(pieces.join(''), result.text);
  assert.ok(pieces.length > 5 && result.text.length > 20, result.text);
  assert.equal(result.finishReason, 'length');
  assert.equal(result.tokens.length, 24);
  assert.deepEqual([result.usage.completionTokens, result.stats.backend], [24, 'cpu']);
  const { prompt_ids } = RECORDINGS.find(({ prompt }) => prompt.includes('What is gravity?')) ?? { prompt_ids: [] };
  assert.equal(await edge.countTokens(GRAVITY), prompt_ids.length);
  assert.equal(result.usage.promptTokens, prompt_ids.length);
});

test('a_completion_continues_raw_text', async () => {
  const { text } = await edge.complete('The capital of France is', { temperature: 0, maxTokens: 1 }).result;
  assert.equal(text, ' Paris');
});

test('the_same_seed_gives_the_same_answer', async () => {
  const draw = (seed: number) => edge.chat(GRAVITY, { temperature: 1.5, seed, maxTokens: 12 }).result;
  const [a, b, c] = [await draw(1), await draw(1), await draw(2)];
  assert.equal(a.text, b.text);
  assert.notEqual(a.text, c.text);
});

test('a_stop_string_ends_the_answer_before_it', async () => {
  const { text } = await answer(24).result;
  const stop = text.split(' ').slice(3, 5).join(' ');
  const { text: cut, finishReason } = await edge.chat(GRAVITY, { temperature: 0, maxTokens: 24, stop }).result;
  assert.equal(finishReason, 'stop');
  assert.ok(text.startsWith(cut) && !cut.includes(stop), cut);
});

test('leaving_a_stream_in_any_way_keeps_the_engine_right', async () => {
  const wanted = (await answer(8).result).text;
  const ways: (() => Promise<void>)[] = [
    async () => { for await (const _ of answer(200)) break; },
    async () => { const stream = answer(200); stream.cancel(); assert.equal((await stream.result).finishReason, 'abort'); },
    async () => { const stream = answer(200); for await (const _ of stream) stream.cancel(); assert.equal((await stream.result).finishReason, 'abort'); },
    async () => { await assert.rejects(async () => { for await (const _ of answer(200)) throw new Error('mine'); }, /mine/); },
    async () => { await answer(6).readable.cancel(); },
    async () => { await answer(6)[Symbol.asyncIterator]().next(); },
  ];
  for (const [index, way] of ways.entries()) {
    await way();
    assert.equal((await answer(8).result).text, wanted, `after way ${index}`);
  }
});

test('an_abort_signal_rejects_with_its_reason_before_and_during', async () => {
  const early = AbortSignal.abort('too early');
  await assert.rejects(edge.chat(GRAVITY, { signal: early }).result, (reason) => reason === 'too early');
  const control = new AbortController();
  const stream = edge.chat(GRAVITY, { temperature: 0, signal: control.signal });
  await assert.rejects(async () => { for await (const _ of stream) control.abort('enough'); }, (reason) => reason === 'enough');
  await assert.rejects(stream.result, (reason) => reason === 'enough');
  assert.equal((await answer(1).result).finishReason, 'length');
});

test('calls_at_once_are_answered_in_turn', async () => {
  const [a, b, ids] = await Promise.all([answer(8).result, answer(8).result, edge.tokenize('Hello world')]);
  assert.equal(a.text, b.text);
  assert.ok(b.usage.cachedTokens > 0, 'the second prompt reuses the first one');
  assert.equal(ids.length, 2);
});

test('a_prompt_that_does_not_fit_is_a_context_overflow', async () => {
  const long = 'word '.repeat(2000);
  await assert.rejects(edge.complete(long).result, (error) => error instanceof EdgeError && error.code === 'context-overflow' && /512/.test(error.message));
  assert.equal((await answer(1).result).finishReason, 'length');
});

test('wrong_options_reject_the_stream_and_name_themselves', async () => {
  for (const options of [{ temperature: -1 }, { topP: 2 }, { maxTokens: -5 }, { stop: [''] }, { logitBias: { 999_999_999: 1 } }]) {
    const name = Object.keys(options)[0] ?? '';
    await assert.rejects(edge.chat(GRAVITY, options).result, (error) => error instanceof EdgeError && error.code === 'invalid-argument' && error.message.includes(name));
  }
});

test('a_session_remembers_its_turns_and_reuses_them', async () => {
  const session = await edge.session({ initialPrompts: [{ role: 'system', content: 'Answer briefly.' }], temperature: 0, maxTokens: 12 });
  const before = session.contextUsage;
  assert.ok(before > 0 && session.contextWindow === 512);
  const first = await session.prompt('My name is Ada.');
  assert.ok(first.length > 0 && session.contextUsage > before);
  const clone = await session.clone();
  const stream = session.promptStreaming('What is my name?');
  const { usage } = await stream.result;
  assert.ok(usage.cachedTokens > before, `${usage.cachedTokens} tokens reused`);
  assert.ok(clone.contextUsage < session.contextUsage);
  assert.ok((await clone.measureContextUsage('Hello')) > 1);
  session.destroy();
  await assert.rejects(session.prompt('x'), (error) => error instanceof EdgeError && error.code === 'closed');
});

test('a_session_that_drops_its_oldest_turns_goes_on', async () => {
  const session = await edge.session({ overflow: 'drop-oldest', temperature: 0, maxTokens: 4 });
  let overflows = 0;
  session.oncontextoverflow = () => { overflows += 1; };
  await session.append([{ role: 'user', content: 'word '.repeat(300) }, { role: 'assistant', content: 'Yes.' }]);
  const { usage } = await session.promptStreaming('word '.repeat(200)).result;
  assert.equal(overflows, 1);
  assert.ok(usage.promptTokens < 300, 'the first turn is forgotten');
});

test('hostile_files_give_one_clear_error_and_a_good_one_loads_after', async () => {
  const good = new Uint8Array(3_000_000);
  readSync(openSync(MODEL, 'r'), good, 0, good.length, 0);
  for (const { name, bytes } of hostileFiles(good)) {
    const started = performance.now();
    await assert.rejects(HanzoEdge.init({ model: bytes, backend: 'cpu' }), (error) => {
      assert.ok(error instanceof EdgeError, `${name}: ${String(error)}`);
      assert.ok(['malformed-file', 'unsupported-model', 'out-of-memory', 'not-found'].includes(error.code), `${name}: ${error.code}: ${error.message}`);
      assert.ok(error.message.length > 10, `${name}: ${error.message}`);
      return true;
    });
    assert.ok(performance.now() - started < 10_000, `${name} took too long`);
  }
  assert.equal((await answer(1).result).finishReason, 'length');
});

test('bytes_blobs_and_streams_load_like_files', async () => {
  const unusable = new Uint8Array(gguf({}));
  for (const model of [unusable, new Blob([unusable]), new Blob([unusable]).stream()]) {
    await assert.rejects(HanzoEdge.init({ model, backend: 'cpu' }), (error) => error instanceof EdgeError && error.code !== 'internal');
  }
});

test('the_callers_own_fetch_makes_the_requests_with_the_callers_headers', async () => {
  const seen: string[] = [];
  const own = (async (url: string, init: RequestInit) => {
    seen.push(url, new Headers(init.headers).get('authorization') ?? '');
    return new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } });
  }) as typeof fetch;
  const load = HanzoEdge.init({ model: 'https://nowhere.invalid/m.gguf', backend: 'cpu', cache: 'none', fetch: own, headers: { authorization: 'Bearer x' } });
  await assert.rejects(load, (error) => error instanceof EdgeError && error.code === 'malformed-file' && /web page/.test(error.message));
  assert.deepEqual(seen, ['https://nowhere.invalid/m.gguf', 'Bearer x']);
});

test('a_model_loads_over_http_with_honest_progress', async () => {
  const size = statSync(MODEL).size;
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-length': size });
    createReadStream(MODEL).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const seen: Progress[] = [];
  const other = await HanzoEdge.init({
    model: `http://127.0.0.1:${(server.address() as AddressInfo).port}/m.gguf`, backend: 'cpu', cache: 'none', maxContextTokens: 256,
    onProgress: (progress) => { seen.push(progress); throw new Error('a faulty progress bar'); },
  });
  server.close();
  assert.equal((await other.chat(GRAVITY, { maxTokens: 2 }).result).tokens.length, 2);
  await other.close();
  const downloads = seen.filter(({ phase }) => phase === 'download');
  assert.ok(downloads.length > 1 && downloads.every(({ total }) => total === size));
  assert.ok(downloads.every(({ loaded }, i) => loaded >= (downloads[i - 1]?.loaded ?? 0)), 'progress never falls');
  assert.equal(downloads.filter(({ loaded }) => loaded === size).length, 1);
});

test('a_closed_engine_says_so', async () => {
  const other = await HanzoEdge.init({ model: MODEL, backend: 'cpu', maxContextTokens: 256 });
  const stream = other.chat(GRAVITY);
  await other.close();
  await other.close();
  const isClosed = (error: unknown) => error instanceof EdgeError && error.code === 'closed';
  await assert.rejects(stream.result, isClosed);
  await assert.rejects(other.tokenize('x'), isClosed);
  await assert.rejects(other.chat(GRAVITY).result, isClosed);
});

test('loads_that_cannot_work_say_why', async () => {
  const cases: [Parameters<typeof HanzoEdge.init>[0], string, RegExp][] = [
    [{ model: 'no-such-model' }, 'not-found', /known: smollm2-135m-instruct/],
    [{ model: './no/such/file.gguf' }, 'not-found', /there is no model file/],
    [{ model: MODEL, backend: 'webgpu' }, 'not-found', /no usable GPU: navigator\.gpu/],
    [{ model: MODEL, maxContextTokens: 1_000_000 }, 'invalid-argument', /maxContextTokens/],
    [{ model: MODEL, maxMemoryBytes: 1000 }, 'out-of-memory', /maxMemoryBytes/],
    [{ model: MODEL, signal: AbortSignal.timeout(0) }, '', /./],
  ];
  for (const [options, code, pattern] of cases) {
    await assert.rejects(HanzoEdge.init(options), (error) => {
      assert.equal((error as EdgeError).code === code || code === '', true, String(error));
      assert.match((error as Error).message, pattern);
      return true;
    });
  }
});
