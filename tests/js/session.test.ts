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

test('messages_of_the_prompt_api_are_taken_and_a_prefix_is_continued', async () => {
  const model = engine();
  const seen: (string | undefined)[] = [];
  const { chat } = model;
  Object.assign(model, { chat: ((messages, options) => { seen.push(options?.prefill); return chat(messages, options); }) as SessionEngine['chat'] });
  const session = new Session(model, { initialPrompts: [{ role: 'system', content: [{ type: 'text', value: 'be brief' }] }] });
  await session.prompt([
    { role: 'user', content: [{ type: 'text', value: 'one' }, { type: 'text', value: ' two' }] },
    { role: 'assistant', content: 'Well, ', prefix: true },
  ]);
  assert.deepEqual([model.asked, seen], [[['system: be brief', 'user: one two']], ['Well, ']]);
  await session.prompt('three');
  assert.deepEqual(model.asked.at(-1), ['system: be brief', 'user: one two', 'assistant: Well, ok', 'user: three']);
  for (const bad of [
    [{ role: 'assistant', content: 'x', prefix: true }, { role: 'user', content: 'y' }],
    [{ role: 'user', content: 'y', prefix: true }],
    [{ role: 'user', content: [{ type: 'image', value: 'y' }] }],
    [], null, 7, [null],
  ]) {
    await assert.rejects(session.prompt(bad as unknown as string), (error) => error instanceof EdgeError && error.code === 'invalid-argument', JSON.stringify(bad));
  }
});

test('what_does_not_fit_is_not_appended', async () => {
  const session = new Session(engine(6), {});
  await session.append('a b c');
  await assert.rejects(session.append('d e f g'), (error) => error instanceof EdgeError && error.code === 'context-overflow' && /7 tokens.*6/.test(error.message));
  assert.equal(session.contextUsage, 3);
  await session.append('d');
  assert.equal(session.contextUsage, 4);
});

test('a_window_that_slides_forgets_turns_and_goes_on', async () => {
  // Its answers fill the context.
  const model = engine(16);
  const asked: { turns: number; prefill: string; maxTokens?: number }[] = [];
  const chat: SessionEngine['chat'] = (messages, { prefill = '', maxTokens } = {}) => {
    asked.push({ turns: messages.length, prefill, ...(maxTokens === undefined ? {} : { maxTokens }) });
    const isLast = asked.length === 3;
    const text = isLast ? ' end' : ' word word word word';
    const usage = { promptTokens: 9, completionTokens: text.split(' ').length - 1, cachedTokens: 0 };
    const source = new TokenStreamSource(() => {});
    source.push(text);
    source.finish({ text, tokens: new Uint32Array(usage.completionTokens), finishReason: isLast ? 'stop' : 'context', usage, stats: { decodeMs: 1 } } as GenerateResult);
    return source.stream;
  };
  Object.assign(model, { chat });
  const session = new Session(model, { overflow: 'slide', maxTokens: 30 });
  let events = 0;
  session.oncontextoverflow = () => { events += 1; };
  await session.append([{ role: 'user', content: 'a b c d e' }, { role: 'assistant', content: 'f' }]);
  const stream = session.promptStreaming('g h i j');
  const pieces: string[] = [];
  for await (const piece of stream) pieces.push(piece);
  const { text, usage, tokens, finishReason } = await stream.result;
  assert.deepEqual([pieces.join(''), text, finishReason, tokens.length], [' word word word word word word word word end', ' word word word word word word word word end', 'stop', 9]);
  assert.deepEqual([usage.completionTokens, usage.promptTokens], [9, 9]);
  assert.deepEqual(asked.map(({ turns, maxTokens }) => [turns, maxTokens]), [[3, 30], [1, 26], [1, 22]]);
  assert.equal(asked[1]?.prefill, ' word word word word');
  assert.ok(events >= 1);
});
