// Error codes are the same in Rust and JS, and errors survive the way across a border.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { EDGE_ERROR_CODES, EdgeError, toEdgeError, toErrorData } from '../../js/errors.js';

test('the_codes_are_those_of_the_crate', () => {
  const source = readFileSync('src/error.rs', 'utf8');
  const body = /fn code\(self\)[^{]*\{([\s\S]*?)\n {4}\}/.exec(source)?.[1] ?? '';
  const codes = [...body.matchAll(/=> "([a-z-]+)"/g)].map((match) => match[1]);
  assert.ok(codes.length >= 14, `found ${codes.length} codes in src/error.rs`);
  assert.deepEqual([...EDGE_ERROR_CODES], codes);
});

test('an_error_keeps_code_message_and_path_as_plain_data', () => {
  const error = new EdgeError('integrity', 'expected x, found y', { path: 'model.gguf' });
  const back = toEdgeError(structuredClone(toErrorData(error)));
  assert.ok(back instanceof EdgeError && back instanceof Error);
  assert.deepEqual([back.code, back.message, back.path, back.name], ['integrity', 'expected x, found y', 'model.gguf', 'EdgeError']);
});

test('whatever_else_is_thrown_is_internal_and_keeps_its_cause', () => {
  for (const thrown of [new TypeError('x'), 'text', undefined, { code: 'no-such-code', message: 'm' }]) {
    assert.equal(toEdgeError(thrown).code, 'internal');
  }
  const cause = new TypeError('x');
  assert.equal(toEdgeError(cause).cause, cause);
});
