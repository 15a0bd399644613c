// Counting tests in what cargo and Node print.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cargoResults, tapResults, total } from '../../scripts/lib/results.mjs';

test('cargo: several binaries add up and ignored tests are named', () => {
  const output = `running 3 tests
test a::b ... ok
test a::slow ... ignored, takes an hour
test a::c ... FAILED

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
\x1b[1mtest result: \x1b[32mok\x1b[0m. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
`;
  assert.deepEqual(cargoResults(output), { passed: 5, failed: 1, skipped: ['a::slow'] });
});

test('cargo: a compile error counts nothing', () => {
  assert.deepEqual(cargoResults('error: could not compile'), { passed: 0, failed: 0, skipped: [] });
});

test('tap: passes, failures, cancelled and skipped tests', () => {
  const output = `TAP version 13
ok 1 - adds
not ok 2 - subtracts
    ok 1 - inner # SKIP no GPU
ok 3 - later # TODO
# tests 4
# suites 0
# pass 1
# fail 1
# cancelled 1
# skipped 1
# todo 1
`;
  assert.deepEqual(tapResults(output), { passed: 1, failed: 2, skipped: ['inner', 'later'] });
});

test('total adds suites up', () => {
  const suites = [{ passed: 2, failed: 0, skipped: ['x'] }, { passed: 1, failed: 3, skipped: [] }];
  assert.deepEqual(total(suites), { passed: 3, failed: 3, skipped: 1 });
});
