// Structured output through the public API with the real default model: whatever the model would rather say, the answer
// is in the language that was asked for.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { EdgeError, HanzoEdge } from '@hanzo/edge';
import type { GenerateOptions, GenerateResult, ResponseFormat } from '@hanzo/edge';
import { schemaOf } from './schemas.js';

const MODEL = process.env.HANZO_EDGE_MODEL ?? '';
const IS_FULL = process.env.HANZO_EDGE_FULL === '1';
const GRAVITY = [{ role: 'user' as const, content: 'What is gravity?' }];
let edge: HanzoEdge;

before(async () => {
  edge = await HanzoEdge.init({ model: MODEL, backend: 'cpu', maxContextTokens: 1024 });
});
after(() => edge?.close());

/** An answer in this format, from a prompt so short that it costs nothing. */
function write(responseFormat: ResponseFormat, options: GenerateOptions = {}): Promise<GenerateResult> {
  return edge.complete('Here:', { responseFormat, maxTokens: 900, temperature: 0, ...options }).result;
}

test('json_that_random_schemas_accept_is_written_every_time', async () => {
  // Formats and lengths are checked by the grammar's rules; the validator's own formats are of another package.
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const count = IS_FULL ? 200 : 15;
  let [valid, tokens] = [0, 0];
  const faults: string[] = [];
  const begun = performance.now();
  for (let seed = 1; seed <= count; seed += 1) {
    const schema = schemaOf(seed);
    const { text, finishReason, usage } = await write({ type: 'json_schema', schema }, { temperature: seed % 3 === 0 ? 1 : 0, seed });
    tokens += usage.completionTokens;
    const isValid = finishReason === 'stop' && ajv.validate(schema, parsed(text));
    if (isValid) valid += 1;
    else faults.push(`${seed}: ${JSON.stringify(schema)} gave ${text} (${finishReason}; ${ajv.errorsText()})`);
  }
  console.log(`# ${valid} of ${count} answers valid, ${tokens} tokens in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  assert.deepEqual(faults, []);
});

/** The value of a JSON text; the text itself when it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { notJson: text };
  }
}

test('every_form_of_the_option_holds_in_a_chat', async () => {
  const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] };
  const formats: ResponseFormat[] = [
    { type: 'json_schema', schema },
    { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } },
    { toJSONSchema: () => schema },
  ];
  for (const responseFormat of formats) {
    const { text, finishReason } = await edge.chat(GRAVITY, { responseFormat, temperature: 0, maxTokens: 30 }).result;
    assert.equal(finishReason, 'stop');
    assert.equal(typeof (JSON.parse(text) as { ok: unknown }).ok, 'boolean', text);
  }
  const { text: regex } = await write({ type: 'regex', regex: /[a-c]{3}-\d\d?/ });
  assert.match(regex, /^[a-c]{3}-\d\d?$/);
  const { text: lark } = await write({ type: 'grammar', grammar: 'start: "(" (start | ITEM) ")"\nITEM: /[0-9]{2}/' }, { maxTokens: 60, temperature: 1, seed: 4 });
  assert.match(lark, /^\(+\d\d\)+$/);
  const { text: object } = await write({ type: 'json_object' }, { maxTokens: 60 });
  assert.match(object, /^\{/);
  const free = await edge.chat(GRAVITY, { responseFormat: { type: 'text' }, temperature: 0, maxTokens: 3 }).result;
  assert.match(free.text, /^Gravity/);
});

test('pieces_join_and_a_cut_answer_says_so', async () => {
  const stream = edge.chat(GRAVITY, { responseFormat: { type: 'regex', regex: '(ab ){40}' }, maxTokens: 6, temperature: 0 });
  const pieces: string[] = [];
  for await (const piece of stream) pieces.push(piece);
  const { text, finishReason } = await stream.result;
  assert.equal(pieces.join(''), text);
  assert.ok('ab '.repeat(40).startsWith(text) && finishReason === 'length', text);
  // A text that is complete when its tokens are used up has stopped by itself.
  const yes = await write({ type: 'regex', regex: 'yes' });
  const exact = await write({ type: 'regex', regex: 'yes' }, { maxTokens: yes.tokens.length });
  assert.deepEqual([yes.text, exact.text, exact.finishReason], ['yes', 'yes', 'stop']);
});

test('penalties_biases_and_sampling_keep_to_the_grammar', async () => {
  const [a] = await edge.tokenize('a');
  for (const options of [{ temperature: 2, topK: 0, topP: 1, minP: 0, seed: 7 }, { repeatPenalty: 2 }, { logitBias: { [a ?? 0]: 100 } }]) {
    const { text } = await write({ type: 'regex', regex: '[xyz]{6}' }, options);
    assert.match(text, /^[xyz]{6}$/);
  }
});

test('wrong_formats_are_one_clear_error_and_the_engine_goes_on', async () => {
  const cases: [unknown, RegExp][] = [
    [{ type: 'xml' }, /responseFormat: expected \{ type: 'text' \}.*found \{"type":"xml"\}/],
    [{ type: 'json_schema', schema: { type: 'object', properties: { a: { type: 'strng' } } } }, /responseFormat: properties\.a\.type: expected one of null, boolean.*found "strng"/],
    [{ type: 'json_schema', schema: { $ref: '#/$defs/nowhere' } }, /responseFormat: \$ref: expected.*#\/\$defs\/nowhere/],
    [{ type: 'json_schema', schema: { not: { type: 'string' } } }, /responseFormat: not: expected a keyword that a grammar can follow/],
    [{ type: 'json_schema', schema: { type: 'integer', minimum: 5, maximum: 4 } }, /responseFormat: .+/],
    [{ type: 'regex', regex: '(a' }, /responseFormat: .+/],
    [{ type: 'grammar', grammar: 'start: nothing' }, /responseFormat: .*nothing/],
    [{ type: 'json_schema', schema: { enum: ['x'.repeat(2_000_000)] } }, /responseFormat: expected a schema of at most/],
    [{ type: 'regex', regex: '(a|b|ab)*'.repeat(20_000) }, /responseFormat: expected at most 4096 bytes/],
    [{ type: 'grammar', grammar: `start: ${'('.repeat(100_000)}` }, /responseFormat: expected at most 32768 bytes/],
    [{ type: 'grammar', grammar: `start: ${'('.repeat(30_000)}` }, /responseFormat: .+/],
    [{ type: 'json_schema', schema: Array.from({ length: 300 }).reduce<object>((schema) => ({ items: schema }), {}) }, /deep/],
  ];
  for (const [format, pattern] of cases) {
    const begun = performance.now();
    await assert.rejects(write(format as ResponseFormat), (error) => {
      assert.ok(error instanceof EdgeError && ['invalid-argument', 'limits'].includes(error.code), `${String(error)} for ${JSON.stringify(format).slice(0, 80)}`);
      assert.match(error.message, pattern);
      assert.ok(error.path === 'responseFormat' || /deep/.test(error.message), error.path);
      assert.ok(error.message.length < 700, error.message);
      return true;
    });
    assert.ok(performance.now() - begun < 10_000, `${pattern} took ${performance.now() - begun} ms`);
    // Also after a grammar that stopped its engine.
    assert.equal((await write({ type: 'regex', regex: 'yes' })).text, 'yes');
  }
});

test('two_answers_at_once_each_keep_to_their_own_grammar', async () => {
  const [a, b, free] = await Promise.all([
    write({ type: 'regex', regex: 'a{5}' }),
    write({ type: 'regex', regex: 'b{5}' }),
    edge.chat(GRAVITY, { temperature: 0, maxTokens: 3 }).result,
  ]);
  assert.deepEqual([a.text, b.text], ['aaaaa', 'bbbbb']);
  assert.match(free.text, /^Gravity/);
});

test('leaving_a_constrained_answer_keeps_the_engine_right', async () => {
  const stream = edge.complete('Here:', { responseFormat: { type: 'regex', regex: '(word ){100}' }, temperature: 0 });
  for await (const _ of stream) break;
  assert.equal((await stream.result).finishReason, 'abort');
  assert.equal((await write({ type: 'regex', regex: 'yes' })).text, 'yes');
});
