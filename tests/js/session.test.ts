// Sessions over an engine that answers at once: turns, room, order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EdgeError } from '../../js/errors.js';
import { Session } from '../../js/session.js';
import type { SessionEngine } from '../../js/session.js';
import { TokenStreamSource } from '../../js/stream.js';
import type { ChatMessage, Diagnostics, GenerateResult } from '../../js/types.js';

/** An engine whose tokens are words and whose answer is `ok`; it records the conversations it was given. */
function engine(contextTokens = 20): SessionEngine & { asked: string[][] } {
  const words = (messages: readonly ChatMessage[]) => messages.flatMap(({ content }) => String(content).split(' ')).length;
  const asked: string[][] = [];
  return {
    asked,
    diagnostics: { contextTokens } as Diagnostics,
    countTokens: async (messages) => words(messages),
    chat: (messages) => {
      asked.push(messages.map(({ role, content }) => `${role}: ${String(content)}`));
      const result = { text: 'ok', finishReason: 'stop', usage: { promptTokens: words(messages), completionTokens: 1, cachedTokens: 0 } } as GenerateResult;
      const source = new TokenStreamSource(() => source.finish({ ...result, text: 'o', finishReason: 'abort' }));
      setTimeout(() => source.push('o'), 5);
      setTimeout(() => { source.push('k'); source.finish(result); }, 25);
      return source.stream;
    },
  };
}

test('calls_of_one_session_follow_each_other', async () => {
  const model = engine();
  const session = new Session(model, { initialPrompts: [{ role: 'system', content: 'be brief' }] });
  const answers = await Promise.all([session.prompt('one'), session.append('two'), session.prompt('three')]);
  assert.deepEqual(answers, ['ok', undefined, 'ok']);
  assert.deepEqual(model.asked, [
    ['system: be brief', 'user: one'],
    ['system: be brief', 'user: one', 'assistant: ok', 'user: two', 'user: three'],
  ]);
  assert.equal(session.contextUsage, 7);
});

test('the_oldest_turns_go_first_and_the_initial_prompts_stay', async () => {
  const model = engine(12);
  const session = new Session(model, { overflow: 'drop-oldest', initialPrompts: [{ role: 'system', content: 'be brief' }] });
  let events = 0;
  session.addEventListener('contextoverflow', () => { events += 1; });
  await session.prompt('a b c');
  await session.prompt('d e');
  assert.equal(events, 0);
  await session.prompt('f g h');
  assert.equal(events, 1);
  assert.deepEqual(model.asked.at(-1), ['system: be brief', 'user: d e', 'assistant: ok', 'user: f g h']);
});

test('a_reader_who_leaves_keeps_the_partial_answer_as_a_turn', async () => {
  const model = engine();
  const session = new Session(model, {});
  const stream = session.promptStreaming('one');
  for await (const piece of stream) {
    assert.equal(piece, 'o');
    break;
  }
  assert.equal((await stream.result).finishReason, 'abort');
  await session.prompt('two');
  assert.deepEqual(model.asked.at(-1)?.slice(0, 1), ['user: one']);
});

test('a_clone_goes_its_own_way', async () => {
  const model = engine();
  const session = new Session(model, {});
  await session.prompt('one');
  const clone = await session.clone();
  await session.prompt('two');
  await clone.prompt('three');
  assert.deepEqual(model.asked.at(-1), ['user: one', 'assistant: ok', 'user: three']);
  session.destroy();
  await assert.rejects(session.append('x'), (error) => error instanceof EdgeError && error.code === 'closed');
  assert.equal(await clone.prompt('four'), 'ok');
});

test('an_abort_while_waiting_for_an_earlier_call_rejects_at_once', async () => {
  const model = engine();
  const session = new Session(model, {});
  let isFirstOver = false;
  const first = session.prompt('one').then(() => { isFirstOver = true; });
  const control = new AbortController();
  const second = session.prompt('two', { signal: control.signal });
  setTimeout(() => control.abort('enough'), 1);
  await assert.rejects(second, (reason) => reason === 'enough');
  assert.equal(isFirstOver, false);
  await first;
  await session.prompt('three');
  assert.deepEqual(model.asked, [['user: one'], ['user: one', 'assistant: ok', 'user: three']]);
});

test('destroying_a_session_stops_the_answer_it_computes_and_rejects_those_that_wait', async () => {
  const session = new Session(engine(), {});
  const stream = session.promptStreaming('one');
  const waiting = session.prompt('two');
  setTimeout(() => session.destroy(), 10);
  const [{ finishReason, text }] = await Promise.all([
    stream.result,
    assert.rejects(waiting, (error) => error instanceof EdgeError && error.code === 'closed'),
  ]);
  assert.deepEqual([finishReason, text], ['abort', 'o']);
});

test('a_failed_call_does_not_block_the_next_one', async () => {
  const session = new Session(engine(), {});
  const bad = session.prompt([{ role: 'robot' as 'user', content: 'x' }]);
  const good = session.prompt('one');
  await assert.rejects(bad, (error) => error instanceof EdgeError && error.code === 'invalid-argument');
  assert.equal(await good, 'ok');
});
