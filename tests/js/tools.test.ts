// Calls of functions through the public API with the real default model, whose template knows no tools: the generic way.
// The notations of other families are tested in the crate, on templates of their own kind.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EdgeError, HanzoEdge } from '@hanzo/edge';
import type { ChatMessage, ChatOptions, Tool, ToolCall, ToolCallDelta } from '@hanzo/edge';

const MODEL = process.env.HANZO_EDGE_MODEL ?? '';
const IS_FULL = process.env.HANZO_EDGE_FULL === '1';
const TOOLS: Tool[] = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'The weather in a city',
      parameters: { type: 'object', properties: { city: { type: 'string', maxLength: 20 }, unit: { enum: ['C', 'F'] } }, required: ['city', 'unit'] },
    },
  },
  { type: 'function', function: { name: 'get_time', parameters: { type: 'object', properties: { zone: { type: 'string', maxLength: 10 } } } } },
];
const ASK: ChatMessage[] = [{ role: 'user', content: 'What is the weather in Rome?' }];
let edge: HanzoEdge;

before(async () => {
  edge = await HanzoEdge.init({ model: MODEL, backend: 'cpu', maxContextTokens: 1024 });
});
after(() => edge?.close());

/** The calls of an answer, from its deltas and from its result, which must agree. */
async function calls(messages: ChatMessage[], options: ChatOptions) {
  const heard: ToolCall[] = [];
  const onToolCallDelta = ({ index, id, name, argumentsDelta }: ToolCallDelta) => {
    if (id !== undefined && name !== undefined) heard[index] = { id, type: 'function', function: { name, arguments: '' } };
    const call = heard[index];
    assert.ok(call, `a delta of call ${index} before its beginning`);
    call.function.arguments += argumentsDelta;
  };
  const result = await edge.chat(messages, { tools: TOOLS, maxTokens: 120, onToolCallDelta, ...options }).result;
  assert.deepEqual(result.toolCalls ?? [], heard);
  return { ...result, calls: heard };
}

/** Asserts that a call is one of `get_weather` or `get_time` with the arguments that their schemas want. */
function check(call: ToolCall | undefined): void {
  assert.ok(call && /^[A-Za-z0-9]{9}$/.test(call.id), JSON.stringify(call));
  const value = JSON.parse(call.function.arguments) as Record<string, unknown>;
  if (call.function.name === 'get_weather') {
    assert.ok(typeof value.city === 'string' && ['C', 'F'].includes(value.unit as string), call.function.arguments);
  } else {
    assert.equal(call.function.name, 'get_time');
    assert.ok(value.zone === undefined || typeof value.zone === 'string', call.function.arguments);
  }
}

test('a_required_call_always_comes_and_always_parses', async () => {
  const count = IS_FULL ? 100 : 6;
  for (let seed = 0; seed < count; seed += 1) {
    const sampling = seed === 0 ? { temperature: 0 } : { temperature: 1.2, seed };
    const { calls: list, finishReason, text } = await calls(ASK, { ...sampling, toolChoice: 'required' });
    assert.deepEqual([finishReason, list.length, text], ['tool_calls', 1, ''], `seed ${seed}`);
    check(list[0]);
  }
});

test('a_named_call_is_of_that_function', async () => {
  const toolChoice = { type: 'function', function: { name: 'get_time' } } as const;
  const { calls: list, finishReason } = await calls(ASK, { temperature: 0, toolChoice });
  assert.deepEqual([finishReason, list.map((call) => call.function.name)], ['tool_calls', ['get_time']]);
  check(list[0]);
});

test('left_to_itself_the_model_calls_well_or_answers_in_text', async () => {
  for (const seed of [1, 2]) {
    const { calls: list, finishReason, text } = await calls(ASK, { temperature: 1, seed, maxTokens: 60 });
    list.forEach(check);
    assert.ok(finishReason === 'tool_calls' ? list.length > 0 : text.length > 0, `${finishReason}: ${text}`);
    assert.ok(!text.includes('<tool_call>'), text);
  }
});

test('none_and_no_tools_are_the_same_as_none_given', async () => {
  const plain = (await edge.chat(ASK, { temperature: 0, maxTokens: 8 }).result).text;
  assert.equal((await calls(ASK, { temperature: 0, maxTokens: 8, toolChoice: 'none' })).text, plain);
  assert.equal((await calls(ASK, { temperature: 0, maxTokens: 8, tools: [] })).text, plain);
});

test('a_conversation_goes_on_with_calls_and_results', async () => {
  const call: ToolCall = { id: 'abcdefghi', type: 'function', function: { name: 'get_weather', arguments: '{"city": "Rome", "unit": "C"}' } };
  const turns: ChatMessage[] = [...ASK, { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: call.id, content: 'Sunny, 31 C' }];
  const { text } = await edge.chat(turns, { temperature: 0, maxTokens: 16 }).result;
  assert.ok(text.length > 0);
  assert.ok((await edge.countTokens(turns)) > (await edge.countTokens(ASK)) + 20, 'calls and results are in the prompt');
  // What a cut answer left as arguments is no reason to refuse the conversation.
  for (const broken of ['{"a": "b', '', 'null', '[]', '"x"']) {
    const history: ChatMessage[] = [...ASK, { role: 'assistant', content: '', tool_calls: [{ ...call, function: { name: 'f', arguments: broken } }] }];
    assert.ok((await edge.countTokens(history)) > 0);
  }
});

test('a_call_that_is_cut_gives_its_beginning_and_says_length', async () => {
  const whole = (await calls(ASK, { temperature: 0, toolChoice: 'required' })).calls[0];
  for (const maxTokens of [4, 14, 18]) {
    const { calls: list, finishReason } = await calls(ASK, { temperature: 0, toolChoice: 'required', maxTokens });
    assert.equal(finishReason, 'length');
    for (const call of list) assert.ok(whole?.function.arguments.startsWith(call.function.arguments), call.function.arguments);
  }
});

test('a_session_remembers_calls', async () => {
  const session = await edge.session({ tools: TOOLS, temperature: 0, maxTokens: 80 });
  const first = await session.promptStreaming('What is the weather in Rome?', { toolChoice: 'required' }).result;
  const id = first.toolCalls?.[0]?.id ?? '';
  assert.equal(first.finishReason, 'tool_calls');
  const second = await session.promptStreaming([{ role: 'tool', tool_call_id: id, content: 'Sunny' }], { toolChoice: 'none', maxTokens: 8 }).result;
  assert.ok(second.text.length > 0);
});

test('wrong_tools_and_choices_name_their_place', async () => {
  const tool = (name: unknown, parameters?: unknown) => [{ type: 'function', function: { name, ...(parameters === undefined ? {} : { parameters }) } }];
  const cases: [object, string, RegExp][] = [
    [{ tools: tool('two words') }, 'tools[0].function.name', /letters, digits/],
    [{ tools: tool('f', 'object') }, 'tools[0].function.parameters', /a JSON schema/],
    [{ tools: tool('f', { type: 'object', properties: { a: { type: 'what' } } }), toolChoice: 'required' }, 'tools[0].function.parameters', /properties\.a\.type: expected one of/],
    [{ tools: [...tool('f'), ...tool('f')] }, 'tools[1].function.name', /no tool before it/],
    [{ tools: TOOLS, toolChoice: { type: 'function', function: { name: 'fly' } } }, 'toolChoice', /get_weather, get_time/],
    [{ toolChoice: 'required' }, 'toolChoice', /with tools/],
    [{ tools: TOOLS, toolChoice: 'required', responseFormat: { type: 'json_object' } }, 'responseFormat', /none beside a toolChoice/],
  ];
  for (const [options, path, pattern] of cases) {
    await assert.rejects(edge.chat(ASK, options as ChatOptions).result, (error) => {
      assert.ok(error instanceof EdgeError && error.code === 'invalid-argument', String(error));
      assert.equal(error.path, path);
      assert.match(error.message, pattern);
      assert.ok(error.message.startsWith(path), error.message);
      return true;
    });
  }
});
