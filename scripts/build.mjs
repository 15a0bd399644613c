// npm run build: compiles the WASM modules and the TypeScript layer into dist/. `--release-package` optimizes for publishing.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setup } from './setup.mjs';
import { ROOT, main, must, say } from './lib/shell.mjs';
import { DIST, MODULES, buildWasm } from './lib/wasm.mjs';

/** Builds what dist/ holds. */
export async function build({ release = false } = {}) {
  await setup({ parts: ['rust', 'wasm', 'bindgen', 'packages'], quiet: true });
  await buildWasm({ release });
  await compilePackage();
}

/** Compiles js/ into dist/ unless it is there already; files of sources that are gone go too. */
export async function compilePackage() {
  const stamp = join(DIST, '.typescript');
  const hash = hashOfSources();
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash && existsSync(join(DIST, 'index.js'))) return;
  say('build: js/ to dist/');
  const isGlue = (name) => MODULES.some((module) => [`${module.name}.js`, `${module.name}.d.ts`, `${module.name}.wasm`].includes(name));
  for (const name of existsSync(DIST) ? readdirSync(DIST) : []) if (!isGlue(name)) rmSync(join(DIST, name), { recursive: true });
  await compileTypeScript();
  writeFileSync(stamp, hash);
}

/** Compiles a TypeScript project of the repository. */
export async function compileTypeScript(project = 'tsconfig.json') {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await must(`compiling ${project}`, process.execPath, [tsc, '--project', project]);
}

function hashOfSources() {
  const hash = createHash('sha256');
  const sources = readdirSync(join(ROOT, 'js'), { recursive: true }).filter((name) => name.endsWith('.ts')).sort();
  const files = [...sources.map((name) => join('js', name)), 'tsconfig.json', 'package-lock.json'];
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)));
  for (const { name } of MODULES) {
    const glue = join(DIST, `${name}.d.ts`);
    if (existsSync(glue)) hash.update(readFileSync(glue));
  }
  return hash.digest('hex');
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main(async () => {
    await build({ release: process.argv.includes('--release-package') });
    say(`build: done, ${DIST}`);
  });
}
