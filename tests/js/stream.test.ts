// The stream of an answer: read once, left early, failed, unobserved.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EdgeError } from '../../js/errors.js';
import { TokenStreamSource } from '../../js/stream.js';
import type { GenerateResult } from '../../js/types.js';

function result(text: string, finishReason: GenerateResult['finishReason'] = 'stop'): GenerateResult {
  return {
    text, finishReason, tokens: new Uint32Array(),
    usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0 },
    stats: { timeToFirstTokenMs: 0, promptMs: 0, decodeMs: 0, promptTokensPerSecond: 0, decodeTokensPerSecond: 0, backend: 'cpu' },
  };
}

/** A source that finishes with 'abort' when it is cancelled, as the engine does. */
function makeSource(): { source: TokenStreamSource; cancelled: () => number } {
  let cancels = 0;
  const source: TokenStreamSource = new TokenStreamSource(() => {
    cancels += 1;
    queueMicrotask(() => source.finish(result('partial', 'abort')));
  });
  return { source, cancelled: () => cancels };
}

test('pieces_arrive_in_order_whether_buffered_or_awaited', async () => {
  const { source } = makeSource();
  source.push('a');
  source.push('');
  source.push('b');
  const read: string[] = [];
  const reading = (async () => { for await (const piece of source.stream) read.push(piece); })();
  await new Promise((resolve) => setTimeout(resolve, 1));
  source.push('c');
  source.finish(result('abc'));
  await reading;
  assert.deepEqual(read, ['a', 'b', 'c']);
  assert.equal((await source.stream.result).text, 'abc');
});

test('the_result_needs_no_reading', async () => {
  const { source } = makeSource();
  source.push('a');
  source.finish(result('a'));
  assert.equal((await source.stream.result).text, 'a');
});

test('a_stream_is_read_once', async () => {
  const { source } = makeSource();
  source.finish(result(''));
  source.stream[Symbol.asyncIterator]();
  assert.throws(() => source.stream[Symbol.asyncIterator](), (error) => error instanceof EdgeError && error.code === 'invalid-argument');
  assert.throws(() => source.stream.readable, EdgeError);
});

test('breaking_out_cancels_once_and_resolves_with_abort', async () => {
  const { source, cancelled } = makeSource();
  source.push('a');
  source.push('b');
  for await (const piece of source.stream) {
    assert.equal(piece, 'a');
    break;
  }
  source.stream.cancel();
  assert.equal(cancelled(), 1);
  const { finishReason, text } = await source.stream.result;
  assert.deepEqual([finishReason, text], ['abort', 'partial']);
});

test('throwing_in_the_loop_cancels_and_keeps_the_error', async () => {
  const { source, cancelled } = makeSource();
  source.push('a');
  await assert.rejects(async () => { for await (const _ of source.stream) throw new Error('mine'); }, /mine/);
  assert.equal(cancelled(), 1);
});

test('cancel_ends_a_waiting_reader', async () => {
  const { source } = makeSource();
  const iterator = source.stream[Symbol.asyncIterator]();
  const waiting = iterator.next();
  source.stream.cancel();
  assert.deepEqual(await waiting, { value: undefined, done: true });
  assert.deepEqual(await iterator.next(), { value: undefined, done: true });
});

test('cancel_after_the_end_changes_nothing', async () => {
  const { source, cancelled } = makeSource();
  source.finish(result('all'));
  source.stream.cancel();
  assert.equal(cancelled(), 0);
  assert.equal((await source.stream.result).finishReason, 'stop');
});

test('an_abort_rejects_reader_and_result_with_the_very_reason', async () => {
  const { source } = makeSource();
  const reason = { why: 'user left' };
  const iterator = source.stream[Symbol.asyncIterator]();
  const waiting = iterator.next();
  source.fail(reason, true);
  await assert.rejects(waiting, (error) => error === reason);
  await assert.rejects(source.stream.result, (error) => error === reason);
  assert.equal((await iterator.next()).done, true);
});

test('a_failure_comes_after_the_pieces_before_it', async () => {
  const { source } = makeSource();
  source.push('a');
  source.fail({ code: 'device-lost', message: 'gone' });
  const iterator = source.stream[Symbol.asyncIterator]();
  assert.equal((await iterator.next()).value, 'a');
  await assert.rejects(iterator.next(), (error) => error instanceof EdgeError && error.code === 'device-lost');
});

test('an_unobserved_rejected_result_is_no_unhandled_rejection', async () => {
  const seen: unknown[] = [];
  const listener = (reason: unknown) => { seen.push(reason); };
  process.on('unhandledRejection', listener);
  makeSource().source.fail(new Error('nobody looks'));
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.off('unhandledRejection', listener);
  assert.deepEqual(seen, []);
});

test('readable_delivers_the_pieces_and_its_cancel_stops_the_work', async () => {
  const { source, cancelled } = makeSource();
  source.push('a');
  const reader = source.stream.readable.getReader();
  assert.deepEqual(await reader.read(), { value: 'a', done: false });
  await reader.cancel();
  assert.equal(cancelled(), 1);
});
