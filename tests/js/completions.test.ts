// `edge.chat.completions` over answers that are made up: OpenAI's shapes, what is taken, refused and ignored.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chatCompletions } from '../../js/completions.js';
import { EdgeError } from '../../js/errors.js';
import type { ChatBody, ChatCompletionChunk } from '../../js/openai-types.js';
import { TokenStreamSource } from '../../js/stream.js';
import type { ChatMessage, ChatOptions, FinishReason, GenerateResult, TokenLogprob, ToolCall, ToolCallDelta } from '../../js/types.js';

const MESSAGES = [{ role: 'user', content: 'Hello' }];

interface Script {
  pieces?: string[];
  finishReason?: FinishReason;
  logprobs?: TokenLogprob[];
  thoughts?: string[];
  calls?: ToolCallDelta[];
  failure?: unknown;
}

/** Completions of an engine that says `pieces`; `asked` records what it was asked. */
function scripted({ pieces = ['Hi', ' there'], finishReason = 'stop', logprobs, thoughts, calls = [], failure }: Script = {}) {
  const asked: { messages: readonly ChatMessage[]; options: ChatOptions }[] = [];
  const cancelled: number[] = [];
  const completions = chatCompletions((messages, { onReasoning, onToolCallDelta, onLogprob, ...options } = {}) => {
    asked.push({ messages, options });
    const toolCalls = callsOf(calls);
    const result = {
      text: pieces.join(''), finishReason, tokens: new Uint32Array(pieces.length), ...(logprobs ? { logprobs } : {}),
      ...(thoughts ? { reasoning: thoughts.join('') } : {}), ...(toolCalls.length > 0 ? { toolCalls } : {}),
      usage: { promptTokens: 7, completionTokens: pieces.length, cachedTokens: 3 },
    } as unknown as GenerateResult;
    const number = asked.length;
    const source: TokenStreamSource = new TokenStreamSource(() => { cancelled.push(number); source.finish({ ...result, finishReason: 'abort' }); });
    options.signal?.addEventListener('abort', () => source.fail(options.signal?.reason, true));
    void (async () => {
      await null;
      if (failure) return source.fail(failure);
      for (const thought of thoughts ?? []) onReasoning?.(thought);
      for (const [index, piece] of pieces.entries()) {
        if (logprobs?.[index]) onLogprob?.(logprobs[index]);
        source.push(piece);
        await new Promise((resolve) => { setTimeout(resolve, 2); });
      }
      for (const delta of calls) onToolCallDelta?.(delta);
      return source.finish(result);
    })();
    return source.stream;
  }, () => 'tiny');
  return { completions, asked, cancelled };
}

function callsOf(deltas: readonly ToolCallDelta[]): ToolCall[] {
  const calls: ToolCall[] = [];
  for (const { index, id = '', name = '', argumentsDelta } of deltas) {
    const call = (calls[index] ??= { id, type: 'function', function: { name, arguments: '' } });
    call.function.arguments += argumentsDelta;
  }
  return calls;
}

async function chunksOf(body: Partial<ChatBody>, script: Script = {}): Promise<ChatCompletionChunk[]> {
  const chunks: ChatCompletionChunk[] = [];
  for await (const chunk of await scripted(script).completions.create({ messages: MESSAGES, ...body, stream: true })) chunks.push(chunk);
  return chunks;
}

async function refuses(body: object, pattern: RegExp): Promise<void> {
  const { completions, asked } = scripted();
  await assert.rejects(completions.create({ messages: MESSAGES, ...body }), (error) => {
    assert.ok(error instanceof EdgeError && error.code === 'invalid-argument', String(error));
    assert.match(error.message, pattern);
    return true;
  });
  assert.equal(asked.length, 0);
}

test('an_answer_has_the_shape_of_openais', async () => {
  const answer = await scripted().completions.create({ messages: MESSAGES, model: 'any' });
  assert.match(answer.id, /^chatcmpl-[0-9a-f]{24}$/);
  assert.ok(Math.abs(answer.created - Date.now() / 1000) < 5);
  assert.deepEqual({ ...answer, id: '', created: 0 }, {
    id: '', object: 'chat.completion', created: 0, model: 'any',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi there', refusal: null }, logprobs: null, finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9, prompt_tokens_details: { cached_tokens: 3 } },
  });
  assert.equal((await scripted().completions.create({ messages: MESSAGES })).model, 'tiny');
});

test('chunks_come_as_the_official_client_expects_them', async () => {
  const chunks = await chunksOf({ stream_options: { include_usage: true } });
  assert.deepEqual(chunks.map(({ choices, usage }) => ({ choices, usage })), [
    { choices: [{ index: 0, delta: { role: 'assistant', content: '', refusal: null }, logprobs: null, finish_reason: null }], usage: null },
    { choices: [{ index: 0, delta: { content: 'Hi' }, logprobs: null, finish_reason: null }], usage: null },
    { choices: [{ index: 0, delta: { content: ' there' }, logprobs: null, finish_reason: null }], usage: null },
    { choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }], usage: null },
    { choices: [], usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9, prompt_tokens_details: { cached_tokens: 3 } } },
  ]);
  assert.equal(new Set(chunks.map(({ id, created, model, object }) => [id, created, model, object].join())).size, 1);
  assert.equal(chunks[0]?.object, 'chat.completion.chunk');
  assert.ok((await chunksOf({})).every((chunk) => !('usage' in chunk)));
});

test('every_end_has_one_finish_reason_and_only_the_last_chunk_of_an_answer_names_it', async () => {
  const cases: [Script, string, string][] = [
    [{ finishReason: 'length' }, 'length', 'Hi there'],
    [{ finishReason: 'context' }, 'length', 'Hi there'],
    [{ pieces: [] }, 'stop', ''],
  ];
  for (const [script, reason, text] of cases) {
    const answer = await scripted(script).completions.create({ messages: MESSAGES });
    assert.deepEqual([answer.choices[0]?.finish_reason, answer.choices[0]?.message.content], [reason, text]);
    const chunks = await chunksOf({}, script);
    assert.deepEqual(chunks.map(({ choices }) => choices[0]?.finish_reason), [...chunks.slice(1).map(() => null), reason]);
    assert.equal(chunks[0]?.choices[0]?.delta.role, 'assistant');
  }
});

test('several_answers_follow_each_other_with_seeds_of_their_own_and_the_prompt_counts_once', async () => {
  const { completions, asked } = scripted();
  const answer = await completions.create({ messages: MESSAGES, n: 3, seed: 5 });
  assert.deepEqual(asked.map(({ options }) => options.seed), [5, 6, 7]);
  assert.deepEqual(answer.choices.map(({ index }) => index), [0, 1, 2]);
  assert.deepEqual(answer.usage, { prompt_tokens: 7, completion_tokens: 6, total_tokens: 13, prompt_tokens_details: { cached_tokens: 3 } });
  const chunks = await chunksOf({ n: 2 });
  assert.deepEqual(chunks.map(({ choices }) => choices[0]?.index), [0, 0, 0, 0, 1, 1, 1, 1]);
  assert.equal(chunks.filter(({ choices }) => choices[0]?.delta.role === 'assistant').length, 2);
});

const TOOL = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };
const CALL = { id: 'call00001', type: 'function', function: { name: 'weather', arguments: '{}' } };

test('every_field_arrives_as_its_option', async () => {
  const { completions, asked } = scripted();
  const control = new AbortController();
  await completions.create({
    messages: [
      { role: 'developer', content: [{ type: 'text', text: 'Be' }, { type: 'text', text: ' brief' }] }, { role: 'user', content: 'Hi', name: 'Ada' },
      { role: 'assistant', content: null }, { role: 'assistant', content: null, tool_calls: [CALL] }, { role: 'tool', content: '21', tool_call_id: 'call00001' },
    ],
    tools: [TOOL], tool_choice: 'auto', response_format: { type: 'json_object' }, temperature: 0, top_p: 0.5, top_k: 3, min_p: 0.1, repeat_penalty: 1.1, frequency_penalty: 0.2, presence_penalty: 0.3, seed: 1, stop: ['x'],
    logprobs: true, top_logprobs: 2, logit_bias: { 7: -1 }, max_tokens: 9, max_completion_tokens: 8, chat_template_kwargs: { enable_thinking: false },
  }, { signal: control.signal });
  assert.deepEqual(asked, [{
    messages: [{ role: 'system', content: [{ type: 'text', text: 'Be' }, { type: 'text', text: ' brief' }] }, { role: 'user', content: 'Hi', name: 'Ada' },
      { role: 'assistant', content: '' }, { role: 'assistant', content: null, tool_calls: [CALL] }, { role: 'tool', content: '21', tool_call_id: 'call00001' }],
    options: {
      tools: [TOOL], toolChoice: 'auto', responseFormat: { type: 'json_object' }, temperature: 0, topP: 0.5, topK: 3, minP: 0.1, repeatPenalty: 1.1, frequencyPenalty: 0.2, presencePenalty: 0.3, seed: 1, stop: ['x'],
      logprobs: true, topLogprobs: 2, logitBias: { 7: -1 }, maxTokens: 8, chatTemplateKwargs: { enable_thinking: false }, signal: control.signal,
    },
  }]);
});

test('harmless_fields_are_ignored_and_null_counts_as_absent', async () => {
  const { completions, asked } = scripted();
  await completions.create({
    messages: MESSAGES, user: 'u', store: true, metadata: { a: 'b' }, service_tier: 'auto', temperature: null, top_p: null, stop: null, seed: null,
    n: null, stream: null, max_tokens: null, logit_bias: null, logprobs: null, modalities: ['text'], audio: null, functions: undefined,
  } as ChatBody);
  assert.deepEqual(asked.map(({ options }) => options), [{}]);
});

test('what_would_change_the_answer_and_is_not_supported_is_refused_by_name', async () => {
  await refuses({ audio: { voice: 'x' } }, /^audio: .*not supported; supported: temperature/);
  await refuses({ functions: [] }, /^functions: /);
  await refuses({ reasoning_effort: 'high' }, /^reasoning_effort: /);
  await refuses({ temprature: 1 }, /^temprature: this field is unknown/);
  await refuses({ modalities: ['text', 'audio'] }, /^modalities: expected \['text'\]/);
  await refuses({ n: 0 }, /^n: expected a whole number from 1 to 128, found 0/);
  await refuses({ n: 1.5 }, /^n: /);
  await refuses({ stream: 'yes' }, /^stream: /);
  await refuses({ messages: 'Hello' }, /^messages: expected a list/);
  await refuses({ messages: [null] }, /^messages\[0\]: expected/);
  await refuses({ messages: [{ role: 'assistant', content: null, function_call: { name: 'f', arguments: '' } }] }, /^messages\[0\]\.function_call: /);
});

test('errors_of_the_engine_name_the_field_and_a_stream_with_one_does_not_begin', async () => {
  const failure = new EdgeError('invalid-argument', 'maxTokens: expected a whole number, found -1');
  for (const stream of [true, false]) {
    await assert.rejects(scripted({ failure }).completions.create({ messages: MESSAGES, max_completion_tokens: -1, stream } as ChatBody),
      (error) => error instanceof EdgeError && error.message === 'max_completion_tokens: expected a whole number, found -1' && error.path === 'max_completion_tokens');
  }
  const other = new EdgeError('context-overflow', 'the prompt has 9 tokens');
  await assert.rejects(scripted({ failure: other }).completions.create({ messages: MESSAGES, stream: true }), (error) => error === other);
});

const CALLS: ToolCallDelta[] = [
  { index: 0, id: 'call00001', name: 'weather', argumentsDelta: '' }, { index: 0, argumentsDelta: '{"city":' }, { index: 0, argumentsDelta: '"Oslo"}' },
  { index: 1, id: 'call00002', name: 'time', argumentsDelta: '{}' },
];

test('calls_of_tools_are_told_whole_and_as_deltas', async () => {
  const script: Script = { pieces: [], calls: CALLS, finishReason: 'tool_calls' };
  const { choices: [choice] } = await scripted(script).completions.create({ messages: MESSAGES, tools: [] });
  assert.deepEqual(choice, {
    index: 0, logprobs: null, finish_reason: 'tool_calls',
    message: { role: 'assistant', content: null, refusal: null, tool_calls: [
      { id: 'call00001', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
      { id: 'call00002', type: 'function', function: { name: 'time', arguments: '{}' } },
    ] },
  });
  assert.deepEqual((await chunksOf({}, script)).flatMap(({ choices: [part] }) => part?.delta.tool_calls ?? []), [
    { index: 0, id: 'call00001', type: 'function', function: { name: 'weather', arguments: '' } },
    { index: 0, function: { arguments: '{"city":' } },
    { index: 0, function: { arguments: '"Oslo"}' } },
    { index: 1, id: 'call00002', type: 'function', function: { name: 'time', arguments: '{}' } },
  ]);
  const { choices: [cut] } = await scripted({ ...script, finishReason: 'length', pieces: ['Well'] }).completions.create({ messages: MESSAGES });
  assert.deepEqual([cut?.finish_reason, cut?.message.content, cut?.message.tool_calls?.length], ['length', 'Well', 2]);
});

test('without_parallel_calls_an_answer_ends_after_its_first_call', async () => {
  const script: Script = { pieces: [], calls: CALLS, finishReason: 'tool_calls' };
  const { completions, cancelled } = scripted(script);
  const { choices: [choice] } = await completions.create({ messages: MESSAGES, parallel_tool_calls: false });
  assert.deepEqual([choice?.finish_reason, choice?.message.tool_calls?.map(({ id }) => id), cancelled], ['tool_calls', ['call00001'], [1]]);
  const deltas = (await chunksOf({ parallel_tool_calls: false }, script)).map(({ choices: [part] }) => part);
  assert.deepEqual(deltas.flatMap((part) => part?.delta.tool_calls?.map(({ index }) => index) ?? []), [0, 0, 0]);
  assert.equal(deltas.at(-1)?.finish_reason, 'tool_calls');
});

test('thoughts_come_before_the_answer_and_apart_from_it', async () => {
  const script: Script = { thoughts: ['Let', ' me'] };
  const { choices: [choice] } = await scripted(script).completions.create({ messages: MESSAGES });
  assert.deepEqual([choice?.message.reasoning_content, choice?.message.content], ['Let me', 'Hi there']);
  const deltas = (await chunksOf({}, script)).map(({ choices: [part] }) => part?.delta);
  assert.deepEqual(deltas.slice(1, 4), [{ reasoning_content: 'Let' }, { reasoning_content: ' me' }, { content: 'Hi' }]);
});

test('log_probabilities_are_listed_for_every_token_and_finite', async () => {
  const entry = (token: string, logprob: number) => ({ id: 1, token, bytes: [...new TextEncoder().encode(token)], logprob });
  const logprobs = [{ ...entry('Hi', -0.5), topLogprobs: [entry('Hi', -0.5), entry('Ha', -9999)] }, entry(' there', -0.25)];
  const expected = { content: [
    { token: 'Hi', bytes: [72, 105], logprob: -0.5, top_logprobs: [{ token: 'Hi', bytes: [72, 105], logprob: -0.5 }, { token: 'Ha', bytes: [72, 97], logprob: -9999 }] },
    { token: ' there', bytes: [32, 116, 104, 101, 114, 101], logprob: -0.25, top_logprobs: [] },
  ], refusal: null };
  const answer = await scripted({ logprobs }).completions.create({ messages: MESSAGES, logprobs: true, top_logprobs: 2 });
  assert.deepEqual(answer.choices[0]?.logprobs, expected);
  const chunks = await chunksOf({ logprobs: true }, { logprobs });
  assert.deepEqual(chunks.map(({ choices }) => choices[0]?.logprobs?.content ?? []), [[], [expected.content[0]], [expected.content[1]], []]);
});

test('leaving_a_stream_stops_the_answer_and_starts_no_other', async () => {
  const { completions, asked, cancelled } = scripted({ pieces: Array.from('abcdefgh') });
  for await (const { choices } of await completions.create({ messages: MESSAGES, stream: true, n: 2 })) if (choices[0]?.delta.content === 'b') break;
  assert.deepEqual([asked.length, cancelled], [1, [1]]);
  const chunks = (await completions.create({ messages: MESSAGES, stream: true }))[Symbol.asyncIterator]();
  await chunks.next();
  await chunks.next();
  // The reader leaves while it waits for a chunk.
  const waiting = chunks.next();
  await chunks.return?.();
  await waiting;
  assert.deepEqual(await chunks.next(), { value: undefined, done: true });
  assert.deepEqual(cancelled, [1, 2]);
});

test('a_signal_rejects_the_request_or_the_reading_with_its_reason', async () => {
  for (const stream of [true, false]) {
    const control = new AbortController();
    const { completions } = scripted({ pieces: Array.from('abcdefgh') });
    const reading = (async () => {
      const answer = await completions.create({ messages: MESSAGES, stream } as ChatBody, { signal: control.signal });
      if (Symbol.asyncIterator in answer) for await (const _ of answer) control.abort('enough');
    })();
    if (!stream) setTimeout(() => control.abort('enough'), 3);
    await assert.rejects(reading, (reason) => reason === 'enough');
  }
});
