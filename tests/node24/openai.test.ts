// The official `openai` package against the real default model, through `@hanzo/edge/openai`. Nothing here opens a socket.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI, { APIError, APIUserAbortError, BadRequestError, NotFoundError } from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { HanzoEdge } from '@hanzo/edge';
import type { ChatBody, ChatCompletion, ChatCompletionChunk } from '@hanzo/edge';
import { createFetch } from '@hanzo/edge/openai';

const GRAVITY = [{ role: 'user' as const, content: 'What is gravity?' }];
const GREEDY = { messages: GRAVITY, model: 'local', temperature: 0, max_completion_tokens: 16 };
let edge: HanzoEdge;
let client: OpenAI;
let wanted: string;

before(async () => {
  edge = await HanzoEdge.init({ model: process.env.HANZO_EDGE_MODEL ?? '', backend: 'cpu', threads: 1, maxContextTokens: 1024 });
  client = new OpenAI({ apiKey: 'local', baseURL: 'http://edge.invalid/v1', fetch: createFetch(edge) });
  wanted = (await edge.chat(GRAVITY, { temperature: 0, maxTokens: 16 }).result).text;
});
after(() => edge?.close());

test('our_types_are_those_of_the_official_package', () => {
  // Never run: the compiler checks both directions.
  const check = async (theirs: OpenAI.ChatCompletionCreateParamsNonStreaming, streaming: OpenAI.ChatCompletionCreateParamsStreaming, either: OpenAI.ChatCompletionCreateParams) => {
    const answer: OpenAI.ChatCompletion = await edge.chat.completions.create(theirs);
    const chunks: AsyncIterable<OpenAI.ChatCompletionChunk> = await edge.chat.completions.create(streaming);
    const body: ChatBody = either;
    const messages: OpenAI.ChatCompletionMessageParam[] = [answer.choices[0]!.message];
    return [chunks, body, messages, await edge.chat.completions.create(either)];
  };
  const whole: ChatCompletion | null = null;
  const chunk: ChatCompletionChunk | null = null;
  const mine: [OpenAI.ChatCompletion | null, OpenAI.ChatCompletionChunk | null] = [whole, chunk];
  assert.equal(typeof check, 'function');
  assert.equal(mine.length, 2);
});

test('an_answer_equals_the_engines', async () => {
  const { data, response } = await client.chat.completions.create(GREEDY).withResponse();
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(data.choices[0]?.message.content, wanted);
  assert.equal(data.choices[0]?.finish_reason, 'length');
  assert.equal(data.usage?.completion_tokens, 16);
  assert.equal(data.usage?.prompt_tokens, await edge.countTokens(GRAVITY));
  assert.ok((data.usage?.prompt_tokens_details?.cached_tokens ?? 0) > 0);
  const direct = await edge.chat.completions.create(GREEDY);
  assert.deepEqual(direct.choices, data.choices);
});

test('a_stream_joins_to_the_same_answer_and_ends_with_the_usage', async () => {
  const stream = await client.chat.completions.create({ ...GREEDY, stream: true, stream_options: { include_usage: true } });
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  assert.ok(chunks.length > 8);
  assert.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''), wanted);
  assert.deepEqual(chunks.slice(0, -2).map(({ choices }) => choices[0]?.finish_reason), chunks.slice(0, -2).map(() => null));
  assert.equal(chunks.at(-2)?.choices[0]?.finish_reason, 'length');
  assert.equal(chunks.at(-1)?.usage?.completion_tokens, 16);
  const raw = await client.chat.completions.create({ ...GREEDY, stream: true }).asResponse();
  assert.match(raw.headers.get('content-type') ?? '', /^text\/event-stream/);
  assert.match(await raw.text(), /^data: \{.*\}\n\n(data: \{.*\}\n\n)+data: \[DONE\]\n\n$/);
});

test('the_clients_stream_helper_accumulates_it', async () => {
  const runner = client.chat.completions.stream({ ...GREEDY, logprobs: true, top_logprobs: 2 });
  const heard: string[] = [];
  runner.on('content', (delta) => heard.push(delta));
  const { choices: [choice] } = await runner.finalChatCompletion();
  assert.equal(choice?.message.content, wanted);
  assert.equal(heard.join(''), wanted);
  const logprobs = choice?.logprobs?.content ?? [];
  assert.equal(logprobs.length, 16);
  assert.equal(new TextDecoder().decode(Uint8Array.from(logprobs.flatMap(({ bytes }) => bytes ?? []))), wanted);
  for (const { logprob, top_logprobs: top, token } of logprobs) {
    assert.ok(logprob <= 0 && logprob > -9999);
    // Greedy: the chosen token is the likeliest.
    assert.deepEqual([top.length, top[0]?.token, top[0]?.logprob], [2, token, logprob]);
  }
});

test('several_answers_stop_strings_and_bias', async () => {
  const { choices } = await client.chat.completions.create({ ...GREEDY, temperature: 1.5, seed: 3, n: 2, max_completion_tokens: 8 });
  const again = await edge.chat(GRAVITY, { temperature: 1.5, seed: 4, maxTokens: 8 }).result;
  assert.deepEqual(choices.map(({ index }) => index), [0, 1]);
  assert.notEqual(choices[0]?.message.content, choices[1]?.message.content);
  assert.equal(choices[1]?.message.content, again.text);
  const stop = wanted.split(' ')[3] ?? '';
  const cut = await client.chat.completions.create({ ...GREEDY, stop });
  assert.equal(cut.choices[0]?.finish_reason, 'stop');
  assert.equal(cut.choices[0]?.message.content, wanted.slice(0, wanted.indexOf(stop)));
  const [id] = await edge.tokenize(wanted);
  const biased = await client.chat.completions.create({ ...GREEDY, logit_bias: { [String(id)]: -100 }, logprobs: true, top_logprobs: 20 });
  assert.ok(!biased.choices[0]?.message.content?.startsWith(wanted.split(' ')[0] ?? '-'));
  assert.ok(JSON.stringify(biased).includes('"logprob"') && !JSON.stringify(biased.choices[0]?.logprobs).includes('null,"bytes"'));
});

const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'weather', description: 'Tells the weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string', enum: ['Paris', 'Oslo'] } }, required: ['city'], additionalProperties: false },
  },
};
const ASKED = { ...GREEDY, messages: [{ role: 'user' as const, content: 'What is the weather in Paris?' }], max_completion_tokens: 60, tools: [WEATHER] };

test('a_required_tool_is_called_whole_and_in_a_stream_and_its_result_goes_back', async () => {
  const { choices: [choice] } = await client.chat.completions.create({ ...ASKED, tool_choice: 'required' });
  assert.equal(choice?.finish_reason, 'tool_calls');
  const calls = choice?.message.tool_calls ?? [];
  assert.ok(calls.length > 0 && calls.every((call) => call.type === 'function' && call.function.name === 'weather' && /Paris|Oslo/.test((JSON.parse(call.function.arguments) as { city: string }).city)));
  const named = { type: 'function' as const, function: { name: 'weather' } };
  const runner = client.chat.completions.stream({ ...ASKED, tool_choice: named });
  const streamed = await runner.finalChatCompletion();
  assert.equal(streamed.choices[0]?.finish_reason, 'tool_calls');
  const [call] = streamed.choices[0]?.message.tool_calls ?? [];
  assert.ok(call?.type === 'function' && 'city' in (JSON.parse(call.function.arguments) as object));
  const [first] = calls;
  const back = await client.chat.completions.create({
    ...ASKED, tool_choice: 'none', max_completion_tokens: 8,
    messages: [...ASKED.messages, choice!.message, { role: 'tool', tool_call_id: first!.id, content: '{"degrees": 21}' }],
  });
  assert.ok((back.choices[0]?.message.content ?? '').length > 0);
  assert.equal(back.choices[0]?.message.tool_calls, undefined);
});

test('a_tool_call_that_is_cut_ends_with_length', async () => {
  const cut = { ...ASKED, tool_choice: 'required' as const, max_completion_tokens: 6 };
  const { choices: [choice] } = await client.chat.completions.create(cut);
  assert.equal(choice?.finish_reason, 'length');
  let text = '';
  for await (const { choices: [part] } of await client.chat.completions.create({ ...cut, stream: true })) {
    text += part?.delta.tool_calls?.[0]?.function?.arguments ?? '';
    if (part?.finish_reason) assert.equal(part.finish_reason, 'length');
  }
  const [call] = choice?.message.tool_calls ?? [];
  assert.equal(text, call?.type === 'function' ? call.function.arguments : '');
});

test('an_answer_fits_its_json_schema', async () => {
  const City = z.object({ name: z.string().max(12), inhabitants: z.number().int().min(0).max(99_999_999) });
  const { choices: [choice] } = await client.chat.completions.parse({ ...GREEDY, messages: [{ role: 'user', content: 'Name a city.' }], max_completion_tokens: 80, response_format: zodResponseFormat(City, 'city') });
  assert.ok(City.safeParse(choice?.message.parsed).success, JSON.stringify(choice));
  const { choices: [any] } = await client.chat.completions.create({ ...GREEDY, messages: [{ role: 'user', content: 'Say something as JSON.' }], max_completion_tokens: 80, response_format: { type: 'json_object' } });
  if (any?.finish_reason === 'stop') assert.equal(typeof JSON.parse(any.message.content ?? ''), 'object');
  await assert.rejects(client.chat.completions.create({ ...GREEDY, response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'nothing' } } } }),
    (error) => error instanceof BadRequestError && /response_format/.test(error.message));
});

test('leaving_a_stream_and_aborting_free_the_engine', async () => {
  for await (const _ of await client.chat.completions.create({ ...GREEDY, max_completion_tokens: 300, stream: true })) break;
  const control = new AbortController();
  const reading = (async () => {
    for await (const _ of await client.chat.completions.create({ ...GREEDY, max_completion_tokens: 300, stream: true }, { signal: control.signal })) control.abort();
  })();
  // The client ends an aborted stream without an error.
  await reading;
  const waiting = client.chat.completions.create({ ...GREEDY, max_completion_tokens: 300 }, { signal: AbortSignal.timeout(50) });
  await assert.rejects(waiting, APIUserAbortError);
  const begin = performance.now();
  assert.equal((await client.chat.completions.create({ ...GREEDY, max_completion_tokens: 2 })).usage?.completion_tokens, 2);
  assert.ok(performance.now() - begin < 2000, 'earlier answers were stopped');
});

test('errors_are_openais', async () => {
  const refuses = async (body: object, kind: abstract new (...args: never) => APIError, status: number, param: string | null, message: RegExp, code = 'invalid-argument') => {
    for (const stream of [false, true]) {
      await assert.rejects(client.chat.completions.create({ ...GREEDY, ...body, stream }), (error) => {
        assert.ok(error instanceof kind, String(error));
        assert.deepEqual([error.status, error.param, error.code, error.type], [status, param, code, 'invalid_request_error']);
        assert.match(error.message, message);
        return true;
      });
    }
  };
  await refuses({ temperature: -1 }, BadRequestError, 400, 'temperature', /temperature: expected a number from 0/);
  await refuses({ top_p: 2 }, BadRequestError, 400, 'top_p', /top_p: /);
  await refuses({ max_completion_tokens: -2 }, BadRequestError, 400, 'max_completion_tokens', /max_completion_tokens: /);
  await refuses({ audio: {} }, BadRequestError, 400, 'audio', /not supported/);
  await refuses({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] }, BadRequestError, 400, 'messages[0].content[0]', /text/);
  await refuses({ messages: [{ role: 'user', content: 'word '.repeat(3000) }] }, BadRequestError, 400, null, /1024/, 'context_length_exceeded');
  await assert.rejects(client.moderations.create({ input: 'x' }), (error) => error instanceof NotFoundError && /moderations is not served here; served: POST chat\/completions/.test(error.message));
  await assert.rejects(client.models.retrieve('another'), NotFoundError);
  const send = createFetch(edge);
  assert.equal((await send('http://edge.invalid/v1/chat/completions')).status, 405);
  assert.equal((await send('http://edge.invalid/v1/chat/completions', { method: 'POST', body: '{' })).status, 400);
  assert.equal((await client.chat.completions.create({ ...GREEDY, max_completion_tokens: 1 })).usage?.completion_tokens, 1);
});

test('the_model_is_listed', async () => {
  const { data } = await client.models.list();
  assert.deepEqual(data.map(({ id, object }) => [id, object]), [[edge.diagnostics.model, 'model']]);
  assert.match(edge.diagnostics.model, /^SmolLM2-135M-Instruct/);
  assert.equal((await client.models.retrieve(edge.diagnostics.model)).id, edge.diagnostics.model);
});

test('text_completions', async () => {
  const prompt = 'The capital of France is';
  const options = { model: 'local', temperature: 0 };
  const { text: sixteen } = await edge.complete(prompt, { temperature: 0, maxTokens: 16 }).result;
  const whole = await client.completions.create({ ...options, prompt, logprobs: 1 });
  assert.equal(whole.choices[0]?.text, sixteen);
  assert.equal(whole.choices[0]?.logprobs?.tokens?.join(''), sixteen);
  assert.deepEqual(whole.choices[0]?.logprobs?.text_offset?.slice(0, 2), [0, whole.choices[0]?.logprobs?.tokens?.[0]?.length]);
  let streamed = '';
  for await (const { choices } of await client.completions.create({ ...options, prompt, stream: true })) streamed += choices[0]?.text ?? '';
  assert.equal(streamed, sixteen);
  const two = await client.completions.create({ ...options, prompt: [prompt, 'One, two,'], max_tokens: 1 });
  const { text: next } = await edge.complete('One, two,', { temperature: 0, maxTokens: 1 }).result;
  assert.deepEqual(two.choices.map(({ text, index }) => [text, index]), [[' Paris', 0], [next, 1]]);
  assert.equal(two.usage?.completion_tokens, 2);
  await assert.rejects(client.completions.create({ ...options, prompt, echo: true }), BadRequestError);
});

test('a_closed_engine_answers_503_at_once', async () => {
  const other = await HanzoEdge.init({ model: process.env.HANZO_EDGE_MODEL ?? '', backend: 'cpu', threads: 1, maxContextTokens: 64 });
  await other.close();
  const gone = new OpenAI({ apiKey: 'local', baseURL: 'http://edge.invalid/v1', fetch: createFetch(other) });
  await assert.rejects(gone.chat.completions.create(GREEDY), (error) => error instanceof APIError && error.status === 503 && error.code === 'closed');
});

test('embeddings_are_the_engines_in_both_formats', async () => {
  const input = ['A river carries sand to the sea.', 'hello'];
  const vectors = (await edge.embed(input)).map((vector) => [...vector]);
  // The client asks for base64 by itself, and decodes it.
  const list: OpenAI.CreateEmbeddingResponse = await client.embeddings.create({ model: 'mine', input });
  assert.deepEqual(list.data.map(({ embedding }) => embedding), vectors);
  assert.deepEqual(list.data.map(({ object, index }) => [object, index]), [['embedding', 0], ['embedding', 1]]);
  assert.deepEqual([list.object, list.model], ['list', 'mine']);
  const ids = await Promise.all(input.map(async (text) => [...(await edge.tokenize(text))]));
  const tokens = ids.flat().length;
  assert.deepEqual(list.usage, { prompt_tokens: tokens, total_tokens: tokens });
  const floats = await client.embeddings.create({ model: 'mine', input, encoding_format: 'float' });
  assert.deepEqual(floats.data, list.data);
  const one = await client.embeddings.create({ model: 'mine', input: input[1] ?? '', dimensions: 32 });
  assert.deepEqual(one.data[0]?.embedding, [...((await edge.embed('hello', { dimensions: 32 }))[0] ?? [])]);
  // Token ids, in both of OpenAI's forms.
  assert.deepEqual((await client.embeddings.create({ model: 'mine', input: ids })).data, list.data);
  assert.deepEqual((await client.embeddings.create({ model: 'mine', input: ids[0] ?? [] })).data[0]?.embedding, vectors[0]);
  const raw = await createFetch(edge)('http://edge.invalid/v1/embeddings', { method: 'POST', body: JSON.stringify({ input: 'hello', encoding_format: 'base64' }) });
  const { data: [encoded] } = await raw.json() as { data: { embedding: string }[] };
  assert.deepEqual([...new Float32Array(Uint8Array.from(Buffer.from(encoded?.embedding ?? '', 'base64')).buffer)], vectors[1]);
});

test('wrong_embedding_requests_are_the_clients_errors', async () => {
  const refuses = async (body: object, param: string | null, message: RegExp, code = 'invalid-argument') => {
    await assert.rejects(client.embeddings.create({ model: 'mine', input: 'a', ...body }), (error) => {
      assert.ok(error instanceof BadRequestError, String(error));
      assert.deepEqual([error.param, error.code], [param, code]);
      assert.match(error.message, message);
      return true;
    });
  };
  await refuses({ input: [] }, 'input', /at least one/);
  await refuses({ input: null }, 'input', /a text, token ids/);
  await refuses({ input: '' }, 'input[0]', /empty/);
  await refuses({ input: ['a', 5] }, 'input[1]', /a text or a list of token ids, found 5/);
  await refuses({ input: [1, 99_999] }, 'input[0]', /found 99999/);
  await refuses({ input: 'word '.repeat(2000) }, 'input[0]', /at most 1024 tokens/, 'context_length_exceeded');
  await refuses({ encoding_format: 'int8' }, 'encoding_format', /'float' or 'base64'/);
  await refuses({ dimensions: 9999 }, 'dimensions', /1 to 576, found 9999/);
  await refuses({ dimension: 5 }, 'dimension', /not supported; supported: input/);
  // Options that are not OpenAI's arrive too.
  const { data } = await client.embeddings.create({ model: 'mine', input: 'hello', ...{ pooling: 'mean', normalize: false, truncate: true } });
  assert.deepEqual(data[0]?.embedding, [...((await edge.embed('hello', { pooling: 'mean', normalize: false }))[0] ?? [])]);
});
