// The Vercel AI SDK (the package `ai`) against the real default model, through `@hanzo/edge/ai-sdk`.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { LanguageModelV4, ProviderV4 } from '@ai-sdk/provider';
import { Output, cosineSimilarity, embed, embedMany, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { EdgeError, HanzoEdge } from '@hanzo/edge';
import { createHanzoEdge } from '@hanzo/edge/ai-sdk';

const prompt = 'What is gravity?';
const GREEDY = { prompt, temperature: 0, maxOutputTokens: 16 };
let edge: HanzoEdge;
let model: LanguageModelV4;
let wanted: string;

before(async () => {
  edge = await HanzoEdge.init({ model: process.env.HANZO_EDGE_MODEL ?? '', backend: 'cpu', threads: 1, maxContextTokens: 1024 });
  model = createHanzoEdge(edge)();
  wanted = (await edge.chat([{ role: 'user', content: prompt }], { temperature: 0, maxTokens: 16 }).result).text;
});
after(() => edge?.close());

test('the_provider_is_one_of_the_current_specification', () => {
  const provider: ProviderV4 = createHanzoEdge(edge);
  assert.deepEqual([model.specificationVersion, model.provider, model.modelId], ['v4', 'hanzo-edge', edge.diagnostics.model]);
  assert.equal(provider.languageModel('mine').modelId, 'mine');
  assert.equal(provider.embeddingModel('mine').modelId, 'mine');
  assert.throws(() => provider.imageModel('x'), (error) => error instanceof EdgeError && error.code === 'not-found');
});

test('generate_text_answers_as_the_engine_does', async () => {
  const { text, finishReason, usage, warnings, response } = await generateText({ model, ...GREEDY });
  assert.equal(text, wanted);
  assert.deepEqual([finishReason, usage.outputTokens, warnings ?? []], ['length', 16, []]);
  assert.equal(usage.inputTokens, await edge.countTokens([{ role: 'user', content: prompt }]));
  assert.ok((usage.inputTokenDetails.cacheReadTokens ?? 0) > 0);
  assert.equal(response.modelId, edge.diagnostics.model);
});

test('stream_text_streams_the_same_answer', async () => {
  const result = streamText({ model, ...GREEDY });
  const pieces: string[] = [];
  for await (const piece of result.textStream) pieces.push(piece);
  assert.ok(pieces.length > 5);
  assert.equal(pieces.join(''), wanted);
  assert.equal((await result.usage).outputTokens, 16);
  assert.equal(await result.finishReason, 'length');
});

test('settings_arrive_and_what_is_not_supported_is_warned_of', async () => {
  const stop = wanted.split(' ')[3] ?? '';
  const { text } = await generateText({ model, ...GREEDY, stopSequences: [stop] });
  assert.equal(text, wanted.slice(0, wanted.indexOf(stop)));
  const drawn = await generateText({ model, ...GREEDY, temperature: 1.5, seed: 3, topK: 20, topP: 0.9, providerOptions: { hanzoEdge: { minP: 0.01 } } });
  const same = await edge.chat([{ role: 'user', content: prompt }], { temperature: 1.5, seed: 3, topK: 20, topP: 0.9, minP: 0.01, maxTokens: 16 }).result;
  assert.equal(drawn.text, same.text);
  await assert.rejects(generateText({ model, ...GREEDY, maxRetries: 0, providerOptions: { hanzoEdge: { minQ: 1 } } }), /unknown option minQ/);
  const { warnings } = await generateText({ model, ...GREEDY, maxOutputTokens: 1, reasoning: 'high' });
  assert.deepEqual(warnings?.map(({ type }) => type), ['compatibility']);
  const image = { role: 'user' as const, content: [{ type: 'file' as const, mediaType: 'image/png', data: new Uint8Array([137, 80, 78, 71]) }] };
  await assert.rejects(generateText({ model, messages: [image], maxRetries: 0 }), /expected text, found a part of type file/);
});

test('an_abort_ends_the_answer_and_frees_the_engine', async () => {
  await assert.rejects(generateText({ model, prompt, temperature: 0, abortSignal: AbortSignal.timeout(80), maxRetries: 0 }));
  const control = new AbortController();
  const result = streamText({ model, prompt, temperature: 0, abortSignal: control.signal });
  const kinds: string[] = [];
  for await (const part of result.fullStream) {
    kinds.push(part.type);
    if (part.type === 'text-delta') control.abort();
  }
  assert.equal(kinds.at(-1), 'abort', kinds.join());
  const begin = performance.now();
  assert.equal((await generateText({ model, ...GREEDY, maxOutputTokens: 1 })).usage.outputTokens, 1);
  assert.ok(performance.now() - begin < 2000, 'earlier answers were stopped');
});

test('an_object_fits_its_schema', async () => {
  const schema = z.object({ city: z.string().max(12), inhabitants: z.number().int().min(0).max(99_999_999) });
  const { output } = await generateText({ model, prompt: 'Name a city.', temperature: 0, maxOutputTokens: 80, output: Output.object({ schema }) });
  assert.ok(schema.safeParse(output).success, JSON.stringify(output));
  const { partialOutputStream, output: whole } = streamText({ model, prompt: 'Name a city.', temperature: 0, maxOutputTokens: 80, output: Output.object({ schema }) });
  let last: unknown;
  for await (const partial of partialOutputStream) last = partial;
  assert.deepEqual(await whole, output);
  assert.deepEqual(last, output);
});

test('a_required_tool_is_called_and_its_result_goes_back', async () => {
  const asked: string[] = [];
  const weather = tool({
    description: 'Tells the weather of a city', inputSchema: z.object({ city: z.enum(['Paris', 'Oslo']) }),
    execute: async ({ city }) => { asked.push(city); return { degrees: 21 }; },
  });
  const result = await generateText({ model, prompt: 'What is the weather in Paris?', temperature: 0, maxOutputTokens: 60, tools: { weather }, toolChoice: 'required', stopWhen: stepCountIs(1) });
  assert.equal(result.finishReason, 'tool-calls');
  assert.deepEqual(result.toolCalls.map(({ toolName, input }) => [toolName, typeof input]), [['weather', 'object']]);
  assert.equal(asked.length, 1);
  const next = await generateText({ model, messages: [{ role: 'user', content: 'What is the weather in Paris?' }, ...result.response.messages], temperature: 0, maxOutputTokens: 8, tools: { weather }, toolChoice: 'none' });
  assert.ok(next.text.length > 0);
});

test('a_streamed_tool_call_begins_grows_and_ends', async () => {
  const weather = tool({ description: 'Tells the weather of a city', inputSchema: z.object({ city: z.enum(['Paris', 'Oslo']) }) });
  const { fullStream } = streamText({ model, prompt: 'What is the weather in Paris?', temperature: 0, maxOutputTokens: 60, tools: { weather }, toolChoice: { type: 'tool', toolName: 'weather' } });
  const seen: string[] = [];
  let input = '';
  let call: unknown;
  for await (const part of fullStream) {
    if (seen.at(-1) !== part.type) seen.push(part.type);
    if (part.type === 'tool-input-delta') input += part.delta;
    if (part.type === 'tool-call') call = part.input;
  }
  assert.deepEqual(seen.filter((type) => type.startsWith('tool')), ['tool-input-start', 'tool-input-delta', 'tool-input-end', 'tool-call']);
  assert.deepEqual(JSON.parse(input), call);
});

test('embed_and_embed_many_give_the_engines_vectors', async () => {
  const values = ['The cat sleeps on the sofa.', 'A cat is sleeping on a couch.', 'Interest rates rose by two percent.'];
  const embeddingModel = createHanzoEdge(edge).embeddingModel();
  const mean = { hanzoEdge: { pooling: 'mean' } };
  const wantedVectors = (await edge.embed(values, { pooling: 'mean' })).map((vector) => [...vector]);
  const { embeddings, usage, warnings } = await embedMany({ model: embeddingModel, values, providerOptions: mean });
  assert.deepEqual(embeddings, wantedVectors);
  const counts = await Promise.all(values.map(async (value) => (await edge.tokenize(value)).length));
  assert.deepEqual([usage.tokens, warnings ?? []], [counts.reduce((sum, count) => sum + count, 0), []]);
  const [near = 0, far = 0] = [1, 2].map((index) => cosineSimilarity(embeddings[0] ?? [], embeddings[index] ?? []));
  assert.ok(near > far + 0.05, `${near}, ${far}`);
  const { embedding } = await embed({ model: embeddingModel, value: values[0] ?? '' });
  assert.deepEqual(embedding, [...((await edge.embed(values[0] ?? ''))[0] ?? [])]);
  await assert.rejects(embed({ model: embeddingModel, value: '', maxRetries: 0 }), /empty input/);
  await assert.rejects(embed({ model: embeddingModel, value: 'x', abortSignal: AbortSignal.abort(), maxRetries: 0 }));
});
