// The package's types in strict projects of users: every way of resolution, libraries without what they need not have,
// declaration files checked too.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { run } from '../../scripts/lib/shell.mjs';
import { TOOLS, addPackages, makeProject, manifest } from './lib/install.mjs';

const STRICT = {
  strict: true, noEmit: true, skipLibCheck: false, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true,
  noImplicitOverride: true, verbatimModuleSyntax: true, isolatedModules: true, types: [], target: 'es2022',
};

/** Projects, by what differs. */
const PROJECTS = [
  { name: 'node16', module: 'node16', moduleResolution: 'node16', lib: ['es2022', 'dom'] },
  { name: 'nodenext', module: 'nodenext', moduleResolution: 'nodenext', lib: ['es2022', 'dom', 'dom.iterable'] },
  { name: 'bundler', module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom'] },
  { name: 'worker', module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'webworker'] },
  { name: 'newest', module: 'esnext', moduleResolution: 'bundler', target: 'esnext', lib: ['esnext', 'dom', 'dom.iterable', 'dom.asynciterable'], types: ['node', '@webgpu/types'], files: ['user.ts', 'subpaths.ts', 'disposal.ts'] },
  { name: 'node', module: 'nodenext', moduleResolution: 'nodenext', lib: ['es2022'], types: ['node'] },
];

let folder;
before(() => {
  folder = makeProject('types', 'types');
  addPackages(folder, ['@types', '@webgpu']);
  addPackages(folder);
  const typed = Object.entries(manifest().exports).filter(([path, target]) => target.types && !/^\.\/(worker|thread)/.test(path));
  const lines = typed.map(([path], index) => `import * as part${index} from '@hanzo/edge${path.slice(1)}';\nexport type Part${index} = typeof part${index};`);
  writeFileSync(join(folder, 'subpaths.ts'), `${lines.join('\n')}\n`);
});

for (const { name, files = ['user.ts', 'subpaths.ts'], ...differs } of PROJECTS) {
  test(`strict_typescript_compiles_a_project_${name}`, async () => {
    const config = join(folder, `tsconfig.${name}.json`);
    writeFileSync(config, JSON.stringify({ compilerOptions: { ...STRICT, ...differs }, files }));
    const { code, output } = await run(process.execPath, [join(TOOLS, 'typescript', 'bin', 'tsc'), '-p', config], { cwd: folder, quiet: true, timeoutMs: 120_000 });
    assert.deepEqual([output.trim(), code], ['', 0]);
  });
}
