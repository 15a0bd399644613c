// Checks the npm package as its users get it: what is in it, and that it can be imported by its name.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stop, must } from './shell.mjs';
import { ENGINE_MODULES, MODULES } from './wasm.mjs';

const NPM = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const WANTED = ['package.json', 'README.md', 'LICENSE-MIT', 'LICENSE-APACHE', 'dist/index.js', 'dist/index.d.ts', 'dist/thread.js', 'dist/thread-relaxed.js'];
const ALLOWED = /^(package\.json|README\.md|LICENSE-(MIT|APACHE)|dist\/[\w.-]+\.(js|d\.ts|wasm)|dist\/[\w.-]+\.wasm\.d\.ts)$/;

/** Packs, compares the contents with what belongs there, installs the package elsewhere and imports it. */
export async function checkPackage() {
  const folder = mkdtempSync(join(tmpdir(), 'hanzo-edge-pack-'));
  try {
    const output = await must('npm pack', NPM, ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { quiet: true });
    const [{ filename, files }] = JSON.parse(output.slice(output.indexOf('[')));
    checkContents(files.map((file) => file.path));
    await checkImport(folder, filename.replace(/^@/, '').replace('/', '-'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function checkContents(paths) {
  const wanted = [...WANTED, ...MODULES.flatMap(({ name }) => [`dist/${name}.js`, `dist/${name}.wasm`]), ...ENGINE_MODULES.map(({ name }) => `dist/${workerOf(name)}.js`)];
  const missing = wanted.filter((path) => !paths.includes(path));
  const surplus = paths.filter((path) => !ALLOWED.test(path));
  if (missing.length > 0) throw new Stop(`the package lacks ${missing.join(', ')}`);
  if (surplus.length > 0) throw new Stop(`the package holds what does not belong there: ${surplus.join(', ')}`);
}

async function checkImport(folder, tarball) {
  const user = join(folder, 'user');
  const inside = join(user, 'node_modules', '@hanzo', 'edge');
  mkdirSync(inside, { recursive: true });
  writeFileSync(join(user, 'package.json'), '{ "type": "module" }');
  await must('unpacking the package', 'tar', ['-xzf', join(folder, tarball), '-C', inside, '--strip-components=1'], { quiet: true });
  const files = [...MODULES.map(({ name }) => `${name}.wasm`), ...ENGINE_MODULES.map(({ name }) => workerOf(name))];
  const program = `const { HanzoEdge, EdgeError } = await import('@hanzo/edge');
    if (typeof HanzoEdge.init !== 'function' || typeof EdgeError !== 'function') throw new Error('its exports are not there');
    const { createRequire } = await import('node:module');
    for (const file of ${JSON.stringify(files)}) createRequire(import.meta.url).resolve('@hanzo/edge/' + file);`;
  writeFileSync(join(user, 'user.js'), program);
  await must('importing the installed package', process.execPath, ['user.js'], { cwd: user, quiet: true });
}

/** The name of a module's worker. */
function workerOf(name) {
  return name.replace('hanzo-edge', 'worker');
}
