// `LanguageModel` over the real default model: what Chrome's Prompt API promises.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HanzoEdge } from '@hanzo/edge';
import type { EdgeOptions } from '@hanzo/edge';
import { createLanguageModel, installLanguageModel } from '@hanzo/edge/prompt-api';
import { sendFile, startServer } from '../js/server.js';
import { tinyModel } from '../js/tiny.js';

const OPTIONS: EdgeOptions = { model: process.env.HANZO_EDGE_MODEL ?? '', backend: 'cpu', threads: 1, maxContextTokens: 256 };
const LanguageModel = createLanguageModel(OPTIONS);
/** Greedy, as the API says it: only the likeliest token. */
const GREEDY = { topK: 1, temperature: 1 };

function isError(name: string): (error: unknown) => boolean {
  return (error) => error instanceof Error && error.name === name;
}

/** A short answer: the first words of a stream. */
async function head(stream: ReadableStream<string>, pieces = 8): Promise<string> {
  const read: string[] = [];
  for await (const piece of stream) if (read.push(piece) === pieces) break;
  return read.join('');
}

test('a_session_is_created_with_progress_and_answers_as_the_engine_does', async () => {
  assert.equal(await LanguageModel.availability(), 'available', 'the file is here');
  const progress: number[] = [];
  const session = await LanguageModel.create({ ...GREEDY, initialPrompts: [{ role: 'system', content: 'Be brief.' }], monitor(target) {
    target.addEventListener('downloadprogress', ({ loaded }) => { progress.push(loaded); });
  } });
  assert.deepEqual([progress[0], progress.at(-1)], [0, 1]);
  assert.deepEqual(progress, [...progress].sort((a, b) => a - b));
  assert.equal(session.contextWindow, 256);
  const before = session.contextUsage;
  assert.ok(before > 0);
  const edge = await HanzoEdge.init(OPTIONS);
  const asked = [{ role: 'system' as const, content: 'Be brief.' }, { role: 'user' as const, content: 'What is gravity?' }];
  const { text } = await edge.chat(asked, { temperature: 0, maxTokens: 12 }).result;
  await edge.close();
  const streamed = await head(session.promptStreaming('What is gravity?'));
  assert.ok(streamed.length > 8 && text.startsWith(streamed), `${text} | ${streamed}`);
  session.destroy();
});

test('turns_are_remembered_cloned_and_measured', async () => {
  const session = await LanguageModel.create({ ...GREEDY, initialPrompts: [{ role: 'user', content: 'My name is Ada.' }, { role: 'assistant', content: 'Hello Ada.' }] });
  const cost = await session.measureContextUsage('What is my name?');
  const usage = session.contextUsage;
  await session.append([{ role: 'user', content: [{ type: 'text', value: 'What is ' }, { type: 'text', value: 'my name?' }] }]);
  assert.equal(session.contextUsage, usage + cost);
  const clone = await session.clone();
  const answer = await head(clone.promptStreaming([{ role: 'user', content: 'Say it again.' }, { role: 'assistant', content: 'Your name is', prefix: true }]), 2);
  assert.match(answer, /Ada/);
  assert.equal(session.contextUsage, usage + cost);
  clone.destroy();
  session.destroy();
});

test('a_constraint_is_kept', async () => {
  const session = await LanguageModel.create(GREEDY);
  const answer = await session.prompt('Is the sky blue?', { responseConstraint: { type: 'boolean' } });
  assert.match(answer, /^(true|false)$/);
  assert.match(await session.prompt('How old are you?', { responseConstraint: /\d{1,2} years/, omitResponseConstraintInput: true }), /^\d{1,2} years$/);
  session.destroy();
});

test('failures_are_those_of_the_api', async () => {
  const session = await LanguageModel.create(GREEDY);
  await assert.rejects(session.prompt('word '.repeat(600)), (error: DOMException & { requested?: number; quota?: number }) => error.name === 'QuotaExceededError' && error.quota === 256 && (error.requested ?? 0) > 600);
  await assert.rejects(session.prompt([{ role: 'user', content: [{ type: 'image', value: new Blob() }] }]), isError('NotSupportedError'));
  await assert.rejects(session.prompt([{ role: 'user', content: 'a' }, { role: 'system', content: 'b' }]), isError('TypeError'));
  await assert.rejects(LanguageModel.create({ expectedInputs: [{ type: 'audio' }] }), isError('NotSupportedError'));
  assert.equal(await LanguageModel.availability({ expectedInputs: [{ type: 'audio' }] }), 'unavailable');
  await assert.rejects(session.prompt('Hello', { signal: AbortSignal.abort('enough') }), (reason) => reason === 'enough');
  const control = new AbortController();
  await assert.rejects(async () => { for await (const _ of session.promptStreaming('Hello', { signal: control.signal })) control.abort('enough'); }, (reason) => reason === 'enough');
  const pending = session.prompt('Tell me a long story.');
  setTimeout(() => session.destroy(), 50);
  await assert.rejects(pending, isError('AbortError'));
  await assert.rejects(session.prompt('Hello'), isError('InvalidStateError'));
  await assert.rejects(LanguageModel.create({ signal: AbortSignal.abort('enough') }), (reason) => reason === 'enough');
});

test('tools_are_executed_and_their_answers_go_back', async () => {
  const asked: unknown[] = [];
  const session = await LanguageModel.create({ ...GREEDY, tools: [{
    name: 'weather', description: 'Tells the weather of a city',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    execute: async (input) => { asked.push(input); return '21 degrees'; },
  }] });
  // Whether a small model calls is its own choice; what it says must arrive.
  const answer = await head(session.promptStreaming('What is the weather in Paris?'), 12);
  assert.ok(answer.length > 0 || asked.length > 0);
  session.destroy();
});

test('the_oldest_turns_give_way_with_an_event', async () => {
  const session = await LanguageModel.create({ ...GREEDY, initialPrompts: [{ role: 'system', content: 'Be brief.' }] });
  let events = 0;
  session.oncontextoverflow = () => { events += 1; };
  await session.append('word '.repeat(100));
  await session.append('word '.repeat(100));
  assert.equal(events, 0);
  await session.append('word '.repeat(100));
  assert.equal(events, 1);
  assert.ok(session.contextUsage < 256);
  session.destroy();
});

test('a_model_is_downloadable_until_it_is_stored_and_unavailable_where_it_is_not', async () => {
  const body = tinyModel(4);
  const server = await startServer((request, response) => sendFile(request, response, body));
  const options: EdgeOptions = { model: server.url, backend: 'cpu', cache: 'memory' };
  const model = createLanguageModel(options);
  assert.equal(await model.availability(), 'downloadable');
  await HanzoEdge.models.download(server.url, { cache: 'memory' });
  assert.equal(await model.availability(), 'available');
  await HanzoEdge.models.delete(server.url);
  assert.equal(await model.availability(), 'downloadable');
  const session = await model.create(GREEDY);
  assert.equal(await model.availability(), 'available');
  session.destroy();
  await HanzoEdge.models.delete(server.url);
  await server.close();
  assert.equal(await createLanguageModel({ ...options, fetch: () => Promise.resolve(new Response('', { status: 404 })) }).availability(), 'unavailable');
  await assert.rejects(createLanguageModel({ ...options, threads: -1 }).availability(), isError('TypeError'));
  const stream = new Blob([body as Uint8Array<ArrayBuffer>]).stream();
  assert.equal(await createLanguageModel({ model: stream }).availability(), 'available');
  assert.equal(stream.locked, false, 'what can be read only once is left for create');
});

test('a_load_that_nobody_waits_for_is_called_off_and_the_next_one_works', async () => {
  const other = createLanguageModel(OPTIONS);
  const control = new AbortController();
  const creating = other.create({ signal: control.signal });
  control.abort('enough');
  await assert.rejects(creating, (reason) => reason === 'enough');
  assert.equal(await other.availability(), 'available');
  const session = await other.create(GREEDY);
  session.destroy();
  assert.equal(await other.availability(), 'available');
});

test('the_browsers_own_model_is_left_alone', () => {
  const scope = globalThis as { LanguageModel?: unknown };
  assert.equal(installLanguageModel(OPTIONS), true);
  const installed = scope.LanguageModel;
  assert.equal(installLanguageModel(OPTIONS), false);
  assert.equal(scope.LanguageModel, installed);
  delete scope.LanguageModel;
});
