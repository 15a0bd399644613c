// The reference of every public entry is written without a warning: whatever is public is exported and described.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildReference } from '../../scripts/docs.mjs';
import { ROOT } from '../../scripts/lib/shell.mjs';

test('typedoc_writes_the_reference_without_a_warning', async () => {
  const folder = await buildReference(join(ROOT, 'target-package', 'reference'));
  assert.ok(existsSync(join(folder, 'index.html')));
});
