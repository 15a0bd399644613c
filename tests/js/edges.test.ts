// Requests at the edges, through the public API on a tiny model: templates that refuse, limits of tokens, sampling that keeps
// everything or one token. Each is followed by an ordinary request that works.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EdgeError, HanzoEdge } from '@hanzo/edge';
import type { ChatMessage, EdgeErrorCode, EdgeOptions } from '@hanzo/edge';
import { END_ID, tinyModel } from './tiny.js';

const load = (options: EdgeOptions = {}) => HanzoEdge.init({ model: tinyModel(5), backend: 'cpu', threads: 1, ...options });
const fails = (work: Promise<unknown>, code: EdgeErrorCode, pattern: RegExp) =>
  assert.rejects(work, (error) => error instanceof EdgeError && error.code === code && pattern.test(error.message));
const user = (content: string): ChatMessage => ({ role: 'user', content });

let edge: HanzoEdge;
before(async () => { edge = await load(); });
after(() => edge?.close());

test('a_template_that_refuses_says_so_in_its_own_words_and_the_engine_goes_on', async () => {
  const strict = await load({
    chatTemplate: `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}{{ m.role }}: {{ m.content }}\n{% endfor %}`,
  });
  const ask = (messages: ChatMessage[]) => strict.chat(messages, { temperature: 0, maxTokens: 4 }).result;
  const good = (await ask([user('hello')])).text;
  for (const [messages, words] of [
    [[{ role: 'system', content: 'Be brief.' }, user('hello')], /System role not supported/],
    [[user('a'), user('b')], /Roles must alternate/],
    [[{ role: 'assistant', content: 'a' }], /Roles must alternate/],
    [[user('a'), { role: 'assistant', content: 'b' }, { role: 'tool', content: 'c' }, user('d')], /Roles must alternate/],
  ] as [ChatMessage[], RegExp][]) {
    await fails(ask(messages), 'template', words);
    await fails(strict.countTokens(messages), 'template', words);
    await fails(strict.chat.completions.create({ messages: messages as never }), 'template', words);
    assert.equal((await ask([user('hello')])).text, good);
  }
  await fails(ask([]), 'invalid-argument', /messages/);
  await fails(ask([{ role: 'moon' as 'user', content: 'x' }]), 'invalid-argument', /role/);
  await strict.close();
});

test('no_content_beside_calls_is_as_an_empty_one_and_an_image_is_refused', async () => {
  const calls = [{ id: 'call_1', type: 'function' as const, function: { name: 'f', arguments: '{}' } }];
  const count = (content: string | null | undefined) => edge.countTokens([user('x'), { role: 'assistant', content, tool_calls: calls } as ChatMessage]);
  const empty = await count('');
  assert.equal(await count(null), empty);
  assert.equal(await count(undefined), empty);
  assert.ok((await count('None')) > empty);
  const image = { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] } as unknown as ChatMessage;
  await fails(edge.countTokens([image]), 'invalid-argument', /content/);
});

test('exactly_as_many_tokens_come_as_were_asked_for', async () => {
  const bias = { [END_ID]: -100 };
  for (const maxTokens of [1, 2, 3, 17]) {
    const { tokens, finishReason, usage } = await edge.complete('hello', { temperature: 0, maxTokens, logitBias: bias }).result;
    assert.deepEqual([tokens.length, usage.completionTokens, finishReason], [maxTokens, maxTokens, 'length']);
  }
  const none = await edge.complete('hello', { maxTokens: 0 }).result;
  assert.deepEqual([none.text, none.tokens.length, none.finishReason], ['', 0, 'length']);
  const whole = await edge.complete('hello', { temperature: 0, maxTokens: 2 ** 31, logitBias: bias }).result;
  assert.deepEqual([whole.finishReason, whole.usage.promptTokens + whole.tokens.length], ['context', edge.diagnostics.contextTokens]);
  const ended = await edge.complete('hello', { temperature: 0, maxTokens: 1, logitBias: { [END_ID]: 100 } }).result;
  assert.deepEqual([ended.text, ended.tokens.length, ended.finishReason], ['', 0, 'stop']);
  for (const maxTokens of [-1, -2, 1.5, '10', Number.NaN, Number.POSITIVE_INFINITY]) {
    await fails(edge.complete('hello', { maxTokens: maxTokens as number }).result, 'invalid-argument', /maxTokens/);
  }
});

test('filters_of_sampling_at_their_edges_keep_everything_or_the_best', async () => {
  const hot = { temperature: 3, maxTokens: 24, topP: 1, minP: 0, seed: 11 };
  const answer = async (options: object) => (await edge.complete('hello', { ...hot, ...options }).result).tokens.join();
  const greedy = await answer({ temperature: 0 });
  for (const one of [{ topK: 1 }, { topP: 0, topK: 0 }, { minP: 1, topK: 0 }]) assert.equal(await answer(one), greedy, JSON.stringify(one));
  const all = await answer({ topK: 0 });
  assert.notEqual(all, greedy);
  assert.equal(await answer({ topK: 1e9 }), all);
  assert.notEqual(await answer({ topK: 2 }), all);
  for (const bad of [{ topP: -0.1 }, { topP: 1.1 }, { minP: 2 }, { temperature: -1 }, { repeatPenalty: 0 }, { topK: 1.5 }]) {
    const [[name]] = Object.entries(bad) as [[string, number]];
    await fails(edge.complete('hello', { ...hot, ...bad }).result, 'invalid-argument', new RegExp(name));
  }
  assert.equal(await answer({ topK: 0 }), all);
});
