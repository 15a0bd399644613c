// The package as its users get it: packed by npm, installed by npm into a fresh project, and from there into the project of
// each test. Everything lies in target-package/, which git does not see.

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { tinyModel } from '../../../target-js/tests/js/tiny.js';
import { packTarball } from '../../../scripts/lib/pack.mjs';
import { ROOT, must } from '../../../scripts/lib/shell.mjs';

const HERE = fileURLToPath(new URL('..', import.meta.url));
const WORK = join(ROOT, 'target-package');
const FRESH = join(WORK, 'fresh');
const NPM = process.platform === 'win32' ? 'npm.cmd' : 'npm';

/** The installed package's folder. */
export const INSTALLED = join(FRESH, 'node_modules', '@hanzo', 'edge');
/** The tools' folder. */
export const TOOLS = join(HERE, 'node_modules');

/** Packs and installs anew; the suite does so once, before its tests. Answers the tarball's path. */
export async function installPackage() {
  rmSync(WORK, { recursive: true, force: true });
  mkdirSync(FRESH, { recursive: true });
  symlinkSync(TOOLS, join(WORK, 'node_modules'), 'junction');
  const { tarball } = await packTarball(WORK);
  writeFileSync(join(FRESH, 'package.json'), JSON.stringify({ name: 'fresh', private: true, type: 'module', dependencies: { '@hanzo/edge': `file:../${basename(tarball)}` } }));
  writeFileSync(join(FRESH, 'tiny.gguf'), tinyModel(2));
  await must('installing the package', NPM, ['install', '--offline', '--no-audit', '--no-fund'], { cwd: FRESH, quiet: true });
  return tarball;
}

/** The packed file. */
export function tarball() {
  const { name, version } = manifest();
  return join(WORK, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`);
}

/** The installed package's package.json. */
export function manifest() {
  return JSON.parse(readFileSync(join(INSTALLED, 'package.json'), 'utf8'));
}

/** Makes a project with the package installed and the files of these folders of tests/package; answers its folder. */
export function makeProject(name, ...folders) {
  if (!existsSync(INSTALLED)) throw new Error('run `npm test -- tsc package`: the package is not installed for its tests');
  const folder = join(WORK, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  cpSync(join(FRESH, 'package.json'), join(folder, 'package.json'));
  cpSync(join(FRESH, 'node_modules'), join(folder, 'node_modules'), { recursive: true });
  for (const source of folders) cpSync(join(HERE, source), folder, { recursive: true, filter: (path) => basename(path) !== 'node_modules' });
  return folder;
}

/** Installs packages beside the package: those of types that projects have, and the peers that some subpaths want. */
export function addPackages(folder, names = Object.keys(manifest().peerDependencies ?? {})) {
  for (const name of names) {
    const target = join(folder, 'node_modules', name);
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), target, 'junction');
  }
}

/** The tiny model's path. */
export const MODEL = join(FRESH, 'tiny.gguf');

let answer;

/** What the installed package answers in Node to what every project asks. */
export function expectedAnswer() {
  answer ??= import(pathToFileURL(join(INSTALLED, 'dist', 'index.js')).href).then(async ({ HanzoEdge }) => {
    const edge = await HanzoEdge.init({ model: MODEL, cache: 'none', backend: 'cpu', threads: 1 });
    const { text } = await edge.chat([{ role: 'user', content: 'hello world' }], { temperature: 0, maxTokens: 8 }).result;
    await edge.close();
    if (text === '') throw new Error('the tiny model answered nothing');
    return text;
  });
  return answer;
}
