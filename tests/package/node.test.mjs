// The package in Node: from ES modules, from CommonJS, and each of its subpaths.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { run } from '../../scripts/lib/shell.mjs';
import { MODEL, addPackages, expectedAnswer, makeProject } from './lib/install.mjs';

let folder;
before(() => {
  folder = makeProject('node', 'node');
  addPackages(folder);
});

for (const script of ['main.mjs', 'main.cjs']) {
  test(`${script}_answers_in_node`, async () => {
    const { code, output } = await run(process.execPath, [script, MODEL], { cwd: folder, quiet: true, timeoutMs: 60_000 });
    assert.deepEqual([code, output], [0, await expectedAnswer()]);
  });
}

test('every_subpath_can_be_imported_and_nothing_else', async () => {
  const { code, output } = await run(process.execPath, ['subpaths.mjs'], { cwd: folder, quiet: true, timeoutMs: 60_000 });
  assert.match(output, /^\d+ subpaths$/);
  assert.equal(code, 0);
});
