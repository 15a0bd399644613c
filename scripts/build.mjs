// npm run build: compiles the WASM modules and the TypeScript layer into dist/. `--release-package` optimizes for publishing.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setup } from './setup.mjs';
import { ROOT, main, must, say } from './lib/shell.mjs';
import { DIST, buildWasm } from './lib/wasm.mjs';

/** Builds what dist/ holds. */
export async function build({ release = false } = {}) {
  await setup({ parts: ['rust', 'wasm', 'bindgen', 'packages'], quiet: true });
  await buildWasm({ release });
  await compileTypeScript();
}

/** Compiles a TypeScript project of the repository; tsc itself reuses what is unchanged. */
export async function compileTypeScript(project = 'tsconfig.json') {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await must(`compiling ${project}`, process.execPath, [tsc, '--project', project]);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main(async () => {
    await build({ release: process.argv.includes('--release-package') });
    if (!existsSync(join(DIST, 'index.js'))) throw new Error('dist/index.js is missing');
    say(`build: done, ${DIST}`);
  });
}
