// The suites of `npm test`, in order. Each runs to its end and returns `{ passed, failed, skipped: [names] }`.

import { existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compilePackage, compileTypeScript } from '../build.mjs';
import { chromiumPath } from './graphics.mjs';
import { DEFAULT_MODEL, findModel, modelPath } from './models.mjs';
import { isNewNode, needNewNode } from './node24.mjs';
import { checkPackage } from './pack.mjs';
import { needPackages } from './packages.mjs';
import { cargoResults, tapResults } from './results.mjs';
import { ROOT, Stop, run, say } from './shell.mjs';
import { buildWasm } from './wasm.mjs';

const MINUTE_MS = 60_000;
const SUITE_LIMIT_MS = 20 * MINUTE_MS;
const COMPILED = join(ROOT, 'target-js');

/** Every suite: its name for `npm test -- NAME …` and its work. */
export const SUITES = [
  { name: 'fmt', work: () => command('cargo', ['fmt', '--check']) },
  { name: 'clippy', work: () => command('cargo', ['clippy', '--all-targets', '--features', 'cli', '--locked', '--', '-D', 'warnings']) },
  { name: 'unit', work: () => cargo(['--lib', '--bins']) },
  { name: 'it', work: () => cargo(['--test', 'it']) },
  { name: 'doc', work: () => cargo(['--doc']) },
  { name: 'wasm', work: () => check(buildWasm) },
  { name: 'tsc', work: () => check(typescript) },
  { name: 'scripts', work: () => node('tests/scripts', testFiles(join(ROOT, 'tests', 'scripts'), '.test.mjs')) },
  { name: 'js', work: () => node('tests/js', testFiles(join(COMPILED, 'tests', 'js'), '.test.js')) },
  { name: 'node24', work: node24 },
  { name: 'pack', work: () => check(checkPackage) },
  { name: 'package', work: packageInProjects },
  { name: 'web', work: () => node('tests/web', testFiles(join(COMPILED, 'tests', 'web'), '.test.js')) },
];

/** What tests find in their environment. */
function testEnvironment() {
  return {
    HANZO_EDGE_MODEL: modelPath(findModel(DEFAULT_MODEL)),
    CHROME_PATH: chromiumPath() ?? '',
    RUST_BACKTRACE: '1',
    // Vulkan loaders complain without it.
    XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR ?? tmpdir(),
  };
}

/** A program that is one check: it passes by ending with 0. */
async function command(program, args) {
  const { code, timedOut } = await run(program, args, { timeoutMs: SUITE_LIMIT_MS });
  if (timedOut) say('test: the suite took too long');
  return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: [] };
}

/** Work of these scripts that is one check: it fails by throwing. */
async function check(work) {
  try {
    await work();
    return { passed: 1, failed: 0, skipped: [] };
  } catch (error) {
    say(error instanceof Stop ? `test: ${error.message}` : `test: ${error.stack}`);
    return { passed: 0, failed: 1, skipped: [] };
  }
}

async function cargo(targets) {
  const args = ['test', '--features', 'cli', '--locked', '--no-fail-fast', ...targets];
  const result = await run('cargo', args, { env: testEnvironment(), timeoutMs: SUITE_LIMIT_MS });
  return withExit(cargoResults(result.output), result);
}

async function node(folder, files, program = process.execPath) {
  if (files.length === 0) {
    say(`test: ${folder} holds no tests`);
    return { passed: 0, failed: 1, skipped: [] };
  }
  // One file at a time: they share two cores, one GPU and one model.
  const args = ['--test', '--test-reporter=tap', '--test-concurrency=1', ...files];
  const result = await run(program, args, { env: testEnvironment(), timeoutMs: SUITE_LIMIT_MS });
  return withExit(tapResults(result.output), result);
}

/** Packs and installs the package once, then tries it in projects of its users' tools. */
async function packageInProjects() {
  const folder = join(ROOT, 'tests', 'package');
  const { failed } = await check(async () => {
    await needPackages(folder);
    // Only there once the tests are compiled.
    const { installPackage } = await import('../../tests/package/lib/install.mjs');
    await installPackage();
  });
  return failed > 0 ? { passed: 0, failed, skipped: [] } : node('tests/package', testFiles(folder, '.test.mjs'));
}

/** Tests with packages that want a newer Node, and those of threads where the suite `js` could not run them all. */
async function node24() {
  let program;
  const { failed } = await check(async () => { program = await needNewNode(); });
  if (failed > 0) return { passed: 0, failed, skipped: [] };
  const files = testFiles(join(COMPILED, 'tests', 'node24'), '.test.js');
  const threads = isNewNode() ? [] : [join(COMPILED, 'tests', 'js', 'modules.test.js')];
  return node('tests/node24', [...files, ...threads], program);
}

/** A runner that failed without a failed test (a compile error, a crash, its time over) counts as one failure. */
function withExit(counts, { code, timedOut }) {
  if (timedOut) say('test: the suite took too long');
  return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

/** Compiles the package, then the tests against it. */
async function typescript() {
  await compilePackage();
  rmSync(COMPILED, { recursive: true, force: true });
  const hasTests = ['js', 'node24', 'web'].some((name) => existsSync(join(ROOT, 'tests', name)));
  if (hasTests) await compileTypeScript('tsconfig.tests.json');
}

function testFiles(folder, suffix) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((name) => name.endsWith(suffix)).sort().map((name) => join(folder, name));
}
