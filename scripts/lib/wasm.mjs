// Compiles the crate to the WASM modules and makes their JS glue in dist/, unless nothing changed since the last time.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { needBindgen } from './bindgen.mjs';
import { shortenImports, trimmed } from './glue.mjs';
import { findWasmTarget } from './rust.mjs';
import { ROOT, Stop, must, say } from './shell.mjs';

export const DIST = join(ROOT, 'dist');
/** What a user of the package downloads before the model, at most; and when the first answer has to follow a grammar. */
export const GZIP_BUDGET_BYTES = 1_500_000;
const GRAMMAR_GZIP_BUDGET_BYTES = 650_000;

/** Target features that every crate of a module is compiled with, and what our own crate alone gets on top. */
const FEATURES = { plain: '+simd128', threads: '+simd128,+atomics,+bulk-memory,+mutable-globals', relaxed: '+relaxed-simd' };

/** The modules that run models. `name` is the file stem in dist/. Those with threads share a memory, which JS makes. */
const ENGINE_MODULES = [
  { name: 'hanzo-edge', relaxed: false, threads: false },
  { name: 'hanzo-edge-relaxed', relaxed: true, threads: false },
  { name: 'hanzo-edge-threads', relaxed: false, threads: true },
  { name: 'hanzo-edge-relaxed-threads', relaxed: true, threads: true },
];
/** Every module of the package: the last one is the grammar engine alone. */
export const MODULES = [...ENGINE_MODULES, { name: 'hanzo-edge-grammar', relaxed: false, threads: false, grammar: true }];

/** What the shared memory begins with (js/wasm.ts makes it) and may grow to. */
const SHARED_MEMORY_BYTES = { initial: 128 * 65_536, max: 65_536 * 65_536 };
const THREADS_LINK_ARGS = [
  '--shared-memory', '--import-memory', `--initial-memory=${SHARED_MEMORY_BYTES.initial}`, `--max-memory=${SHARED_MEMORY_BYTES.max}`,
  ...['__wasm_init_tls', '__tls_size', '__tls_align', '__tls_base'].map((symbol) => `--export=${symbol}`),
];

const OPT_FLAGS = ['-O3', '--enable-simd', '--enable-bulk-memory', '--enable-sign-ext', '--enable-mutable-globals', '--enable-nontrapping-float-to-int', '--enable-reference-types', '--enable-multivalue'];

/**
 * Builds every module, or some, and checks its size; returns `[{ name, bytes, gzipBytes, built }]`.
 * `release` is for the published package: link-time optimization and wasm-opt, minutes instead of seconds.
 *
 * Modules with and without threads share no dependencies, and the last crate of each keeps one core busy: the two kinds
 * are built side by side.
 */
export async function buildWasm({ release = false, modules = MODULES } = {}) {
  const { route: plain, threads, missing, hint } = await findWasmTarget();
  if (!plain) throw new Stop(`${missing} is missing: run \`npm run setup\` (${hint})`);
  const bindgen = await needBindgen();
  const kinds = await Promise.allSettled([
    buildInTurn(modules.filter((module) => !module.threads), plain, bindgen, release),
    buildInTurn(modules.filter((module) => module.threads), threads, bindgen, release),
  ]);
  const [first, ...others] = kinds.flatMap(({ reason }) => reason ?? []);
  for (const { message } of others) say(message);
  if (first) throw first;
  return kinds.flatMap(({ value }) => value);
}

/** Builds those of the modules that are not built yet, all of one kind. */
async function buildInTurn(modules, route, bindgen, release) {
  const results = [];
  for (const module of modules) {
    const stamp = join(targetFolder(module, release), `${module.name}.stamp`);
    const key = `${route.name} ${bindgen} ${hashOfInputs()}`;
    const done = existsSync(stamp) && readFileSync(stamp, 'utf8') === `${key} ${hashOfOutput(module)}`;
    if (!done) {
      await compile(module, route, bindgen, release);
      writeFileSync(stamp, `${key} ${hashOfOutput(module)}`);
    }
    results.push({ ...checkedSize(module), built: !done });
  }
  return results;
}

async function compile(module, route, bindgen, release) {
  say(`build: ${module.name}.wasm (${route.name} toolchain${release ? ', link-time optimization' : ''})`);
  const target = targetFolder(module, release);
  const env = {
    ...route.env,
    RUSTFLAGS: [
      `-Ctarget-feature=${module.threads ? FEATURES.threads : FEATURES.plain}`,
      ...(module.threads ? THREADS_LINK_ARGS.map((arg) => `-Clink-arg=${arg}`) : []),
      '--cfg getrandom_backend="wasm_js"',
    ].join(' '),
    ...(release ? { CARGO_PROFILE_WEB_LTO: 'fat' } : {}),
  };
  // Without an rlib, only what the grammar engine uses is compiled to code.
  const grammar = module.grammar ? ['--features', 'grammar-module', '--crate-type', 'cdylib'] : [];
  const args = ['rustc', '--lib', '--locked', '--profile', 'web', '--target', 'wasm32-unknown-unknown', '--target-dir', target, ...route.args, ...grammar];
  const own = module.relaxed ? ['--', `-Ctarget-feature=${FEATURES.relaxed}`] : [];
  await must('compiling to WASM', route.cargo, [...args, ...own], { env });
  mkdirSync(DIST, { recursive: true });
  const compiled = join(target, 'wasm32-unknown-unknown', 'web', 'hanzo_edge.wasm');
  // A grammar may stop its engine, which is then started afresh.
  const flags = module.grammar ? ['--experimental-reset-state-function'] : [];
  await must('making the JS glue', bindgen, ['--target', 'web', '--omit-default-module-path', ...flags, '--out-dir', DIST, '--out-name', module.name, compiled], { quiet: true });
  const short = shortenImports(readFileSync(join(DIST, `${module.name}_bg.wasm`)), readFileSync(join(DIST, `${module.name}.js`), 'utf8'));
  writeFileSync(join(DIST, `${module.name}.js`), trimmed(short.glue));
  // A fixed and unique name, so that users of any bundler can copy the file.
  writeFileSync(join(DIST, `${module.name}.wasm`), short.wasm);
  rmSync(join(DIST, `${module.name}_bg.wasm`));
  rmSync(join(DIST, `${module.name}_bg.wasm.d.ts`), { force: true });
  if (release) await optimize(module, join(DIST, `${module.name}.wasm`));
}

async function optimize(module, path) {
  say('build: wasm-opt');
  const flags = [...OPT_FLAGS, ...(module.relaxed ? ['--enable-relaxed-simd'] : []), ...(module.threads ? ['--enable-threads'] : [])];
  const wasmOpt = join(ROOT, 'node_modules', '.bin', process.platform === 'win32' ? 'wasm-opt.cmd' : 'wasm-opt');
  await must('optimizing the WASM module', wasmOpt, [...flags, path, '-o', path], { quiet: true });
}

function checkedSize(module) {
  const bytes = readFileSync(join(DIST, `${module.name}.wasm`));
  const gzipBytes = gzipSync(bytes, { level: 9 }).length;
  const budget = module.grammar ? GRAMMAR_GZIP_BUDGET_BYTES : GZIP_BUDGET_BYTES;
  say(`build: ${module.name}.wasm ${megabytes(bytes.length)} MB, gzipped ${megabytes(gzipBytes)} MB of ${megabytes(budget)} MB`);
  if (gzipBytes > budget) throw new Stop(`${module.name}.wasm is over its size budget: ${gzipBytes} of ${budget} bytes gzipped`);
  return { name: module.name, bytes: bytes.length, gzipBytes };
}

/** A target folder for each set of flags of the dependencies: other flags compile all of them again. */
function targetFolder(module, release) {
  const base = process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target');
  return join(`${base}-web${release ? '-release' : ''}`, module.threads ? 'threads' : 'plain');
}

/** A hash of all that the module is made from. */
function hashOfInputs() {
  const hash = createHash('sha256');
  const files = ['Cargo.toml', 'Cargo.lock', 'build.rs', join('scripts', 'lib', 'wasm.mjs'), join('scripts', 'lib', 'glue.mjs')].map((name) => join(ROOT, name)).filter(existsSync);
  for (const folder of ['src', 'shaders']) files.push(...filesUnder(join(ROOT, folder)));
  for (const file of files) {
    const name = relative(ROOT, file);
    if (!name.startsWith(join('src', 'cli'))) hash.update(`${name}\0`).update(readFileSync(file));
  }
  return hash.digest('hex');
}

function hashOfOutput(module) {
  const hash = createHash('sha256');
  for (const suffix of ['.js', '.d.ts', '.wasm']) {
    const path = join(DIST, module.name + suffix);
    if (!existsSync(path)) return 'none';
    hash.update(readFileSync(path));
  }
  return hash.digest('hex');
}

function filesUnder(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

function megabytes(bytes) {
  return (bytes / 1e6).toFixed(2);
}
