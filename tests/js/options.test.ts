// What callers pass: wrong values are named, right ones arrive.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EdgeError } from '../../js/errors.js';
import { chatRequest, checkEdgeOptions, completeRequest, loadOptions } from '../../js/options.js';
import type { ChatMessage, ChatOptions, EdgeOptions, ResponseFormat, Tool } from '../../js/types.js';

const HELLO: ChatMessage[] = [{ role: 'user', content: 'Hello' }];

function refuses(work: () => unknown, pattern: RegExp): void {
  assert.throws(work, (error) => error instanceof EdgeError && error.code === 'invalid-argument' && pattern.test(error.message));
}

test('wrong_edge_options_are_named', () => {
  const cases: [unknown, RegExp][] = [
    [{ modle: 'x' }, /unknown option modle; known: model/],
    [{ backend: 'cuda' }, /backend: expected auto, webgpu, cpu, found "cuda"/],
    [{ quantization: 'afq-5' }, /quantization: expected auto, none, afq-2, afq-3, afq-4, afq-6, afq-8, int8, found "afq-5"/],
    [{ maxContextTokens: 0 }, /maxContextTokens: expected a whole number/],
    [{ maxContextTokens: 1.5 }, /maxContextTokens/],
    [{ threads: Number.NaN }, /threads/],
    [{ fetch: 'no' }, /fetch: expected a function/],
    [{ signal: {} }, /signal: expected an AbortSignal/],
  ];
  for (const [options, pattern] of cases) refuses(() => checkEdgeOptions(options as EdgeOptions), pattern);
});

test('wrong_messages_are_named', () => {
  const cases: [unknown, RegExp][] = [
    [[], /messages: expected a list of at least one message/],
    ['Hello', /messages: expected a list/],
    [[{ role: 'robot', content: 'x' }], /messages\[0\]\.role: expected system, user/],
    [[{ role: 'user', content: 5 }], /messages\[0\]\.content/],
    [[{ role: 'user', content: [{ type: 'image_url' }] }], /messages\[0\]\.content\[0\]: expected \{ type: 'text'/],
    [[null], /messages\[0\]: expected/],
  ];
  for (const [messages, pattern] of cases) refuses(() => chatRequest(messages as ChatMessage[], {}), pattern);
});

test('wrong_sampling_values_are_named', () => {
  const cases: [unknown, RegExp][] = [
    [{ temperature: Number.NaN }, /temperature: expected a finite number/],
    [{ topP: '0.5' }, /topP/],
    [{ stop: [1] }, /stop\[0\]/],
    [{ logitBias: { abc: 1 } }, /logitBias/],
    [{ tools: {} }, /tools: expected a list of tools/],
    [{ toolChoice: () => 1 }, /toolChoice: expected what JSON can hold/],
    [{ onToolCallDelta: 1 }, /onToolCallDelta: expected a function/],
    [{ responseFormat: 'json' }, /responseFormat: expected an object/],
    [{ responseFormat: { type: 'regex', regex: /a/i } }, /responseFormat\.regex: expected a regular expression without flags/],
    [{ prefill: 5 }, /prefill: expected a string/],
  ];
  for (const [options, pattern] of cases) refuses(() => chatRequest(HELLO, options as ChatOptions), pattern);
  refuses(() => completeRequest('x', { prefill: 'y' } as ChatOptions), /unknown option prefill/);
});

test('schemas_of_libraries_and_regular_expressions_are_made_plain', () => {
  const schema = { type: 'integer' };
  const library = { toJSONSchema: () => schema };
  const formats = [
    [library, { type: 'json_schema', schema }],
    [{ type: 'json_schema', schema: library }, { type: 'json_schema', schema }],
    [{ type: 'json_schema', json_schema: { name: 'x', schema: { toJsonSchema: () => schema } } }, { type: 'json_schema', json_schema: { name: 'x', schema } }],
    [{ type: 'regex', regex: /\d+/u }, { type: 'regex', regex: '\\d+' }],
    [{ type: 'text' }, { type: 'text' }],
  ] as const;
  for (const [given, expected] of formats) assert.deepEqual(completeRequest('x', { responseFormat: given as ResponseFormat }).sampling.responseFormat, expected);
  const tools: Tool[] = [{ type: 'function', function: { name: 'f', parameters: library } }];
  const request = chatRequest(HELLO, { tools, toolChoice: 'required' });
  assert.ok(request.kind === 'chat');
  assert.deepEqual([request.tools, request.toolChoice], [[{ type: 'function', function: { name: 'f', parameters: schema } }], 'required']);
});

test('calls_and_their_results_are_messages', () => {
  const call = { id: 'abcdefghi', type: 'function' as const, function: { name: 'f', arguments: '{}' } };
  const request = chatRequest([...HELLO, { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', content: '3', tool_call_id: call.id }], {});
  assert.deepEqual(request.kind === 'chat' && request.messages.slice(1), [
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', content: '3', tool_call_id: call.id },
  ]);
  refuses(() => chatRequest([{ role: 'assistant', content: null }], {}), /messages\[0\]\.content/);
});

test('a_request_carries_text_parts_joined_and_lists_made_plain', () => {
  const request = chatRequest([{ role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }], {
    stop: 'x', logitBias: { 7: -1 }, temperature: 0, prefill: 'Sure', chatTemplateKwargs: { enable_thinking: false },
  });
  assert.deepEqual(request, {
    kind: 'chat', messages: [{ role: 'user', content: 'ab' }], templateKwargs: { enable_thinking: false }, prefill: 'Sure',
    sampling: { temperature: 0, stop: ['x'], logitBias: { 7: -1 } },
  });
});

test('lone_surrogates_become_replacement_characters', () => {
  const request = completeRequest('a\ud800b\udc00c\ud83d\ude42', {});
  assert.deepEqual(request, { kind: 'complete', prompt: 'a\ufffdb\ufffdc\ud83d\ude42', sampling: {} });
});

test('model_sources_are_described', () => {
  const files = (model: NonNullable<EdgeOptions['model']>) => loadOptions({ model }, () => -1).files;
  assert.deepEqual(files('smollm2-135m-instruct'), [{ kind: 'name', name: 'smollm2-135m-instruct' }]);
  assert.deepEqual(files('hf:owner/repo:Q4_K_M'), [{ kind: 'hub', owner: 'owner', repo: 'repo', quant: 'Q4_K_M' }]);
  assert.deepEqual(files('https://x.example/a%20b.gguf?v=1'), [{ kind: 'url', urls: ['https://x.example/a%20b.gguf?v=1'], name: 'a b.gguf' }]);
  const sha256 = 'A'.repeat(64);
  assert.deepEqual(files({ url: 'https://x.example/m.gguf', sha256 }), [{ kind: 'url', urls: ['https://x.example/m.gguf'], name: 'm.gguf', sha256: sha256.toLowerCase() }]);
  assert.deepEqual(files('./folder/m.gguf').map((file) => file.kind), ['path']);
  const split = files('https://x.example/m-00002-of-00003.gguf');
  assert.deepEqual(split.map((file) => 'name' in file && file.name), ['m-00001-of-00003.gguf', 'm-00002-of-00003.gguf', 'm-00003-of-00003.gguf']);
  assert.deepEqual(files([new Uint8Array(1), new Blob([])]).map((file) => file.kind), ['bytes', 'blob']);
  assert.deepEqual(files(new ReadableStream<Uint8Array>()), [{ kind: 'stream', resource: -1, name: 'stream' }]);
  for (const bad of ['', 'hf:owner', [], { url: 'https://x.example/m.gguf', sha256: 'abc' }, 7, ['smollm2']]) {
    refuses(() => files(bad as never), /./);
  }
});
