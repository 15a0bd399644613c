// The package in Deno and Bun: the program that Node runs, unchanged. Their programs are large, so that this only runs under
// HANZO_EDGE_FULL=1.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { needPackages } from '../../scripts/lib/packages.mjs';
import { run } from '../../scripts/lib/shell.mjs';
import { MODEL, expectedAnswer, makeProject } from './lib/install.mjs';

const HERE = fileURLToPath(new URL('runtimes', import.meta.url));
const PACKAGES = join(HERE, 'node_modules');

/** The program of each runtime with its arguments, once its package is installed. */
const RUNTIMES = {
  deno: () => [process.execPath, join(PACKAGES, 'deno', 'bin.cjs'), 'run', '--allow-all', '--node-modules-dir=manual'],
  bun: () => [join(PACKAGES, '@oven', readdirSync(join(PACKAGES, '@oven'))[0], 'bin', process.platform === 'win32' ? 'bun.exe' : 'bun')],
};

for (const [name, command] of Object.entries(RUNTIMES)) {
  test(`${name}_answers_as_node_does`, { skip: !process.env.HANZO_EDGE_FULL }, async () => {
    await needPackages(HERE);
    const folder = makeProject(name, 'node');
    const [program, ...args] = command();
    const { output, code } = await run(program, [...args, 'main.mjs', MODEL], { cwd: folder, quiet: true, timeoutMs: 60_000 });
    assert.equal(code, 0, output);
    // Graphics libraries may complain before.
    assert.ok(output.endsWith(await expectedAnswer()), output);
  });
}
