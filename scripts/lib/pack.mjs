// Checks the npm package as its users get it: what is in it, and that it can be imported by its name. What it must hold
// is read from package.json, so that a new subpath is checked by being written there.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, Stop, must } from './shell.mjs';
import { MODULES } from './wasm.mjs';

const NPM = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const WANTED = ['package.json', 'README.md', 'LICENSE-MIT', 'LICENSE-APACHE'];
const ALLOWED = /^(package\.json|README\.md|LICENSE-(MIT|APACHE)|dist\/[\w.-]+\.(js|js\.map|d\.ts|wasm))$/;
/** What some hosts of static files take at most (25 MiB). */
const FILE_BUDGET_BYTES = 25 << 20;

/** Packs the package into `folder`; answers the tarball's path and its files as `{ path, size }`. */
export async function packTarball(folder) {
  const output = await must('npm pack', NPM, ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { quiet: true });
  const [{ filename, files }] = JSON.parse(output.slice(output.indexOf('[')));
  return { tarball: join(folder, filename.replace(/^@/, '').replace('/', '-')), files };
}

/** Packs, compares the contents with what belongs there, unpacks the package elsewhere and imports it. */
export async function checkPackage() {
  const folder = mkdtempSync(join(tmpdir(), 'hanzo-edge-pack-'));
  try {
    const { tarball, files } = await packTarball(folder);
    checkContents(files);
    await checkImport(folder, tarball);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The subpath exports of package.json: `[subpath, { types?, default }]`, the files without their `./`. */
export function subpaths() {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const plain = (path) => path?.replace(/^\.\//, '');
  return Object.entries(exports).map(([path, target]) => {
    const { types, default: file } = typeof target === 'string' ? { default: target } : target;
    return [path, { types: plain(types), default: plain(file) }];
  });
}

function checkContents(files) {
  const paths = files.map(({ path }) => path);
  const exported = subpaths().flatMap(([, { types, default: file }]) => [types, file]).filter(Boolean);
  const missing = [...WANTED, ...exported, ...MODULES.map(({ name }) => `dist/${name}.js`)].filter((path) => !paths.includes(path));
  const surplus = paths.filter((path) => !ALLOWED.test(path));
  const large = files.filter(({ size }) => size >= FILE_BUDGET_BYTES).map(({ path, size }) => `${path} (${size} bytes)`);
  if (missing.length > 0) throw new Stop(`the package lacks ${missing.join(', ')}`);
  if (surplus.length > 0) throw new Stop(`the package holds what does not belong there: ${surplus.join(', ')}`);
  if (large.length > 0) throw new Stop(`these files of the package are over ${FILE_BUDGET_BYTES} bytes: ${large.join(', ')}`);
}

async function checkImport(folder, tarball) {
  const user = join(folder, 'user');
  const inside = join(user, 'node_modules', '@hanzo', 'edge');
  mkdirSync(inside, { recursive: true });
  writeFileSync(join(user, 'package.json'), '{ "type": "module" }');
  await must('unpacking the package', 'tar', ['-xzf', tarball, '-C', inside, '--strip-components=1'], { quiet: true });
  const program = `const { HanzoEdge, EdgeError } = await import('@hanzo/edge');
    if (typeof HanzoEdge.init !== 'function' || typeof EdgeError !== 'function') throw new Error('its exports are not there');
    const { createRequire } = await import('node:module');
    for (const path of ${JSON.stringify(subpaths().map(([path]) => path.slice(1)))}) createRequire(import.meta.url).resolve('@hanzo/edge' + path);`;
  writeFileSync(join(user, 'user.js'), program);
  await must('importing the installed package', process.execPath, ['user.js'], { cwd: user, quiet: true });
}
