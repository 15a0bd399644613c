// Rust for this machine and for WASM: finds what is there and knows the three ways to compile for wasm32-unknown-unknown.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { aptInstalled, hasApt } from './system.mjs';
import { ROOT, run, say, which } from './shell.mjs';

const TARGET = 'wasm32-unknown-unknown';
const RUSTUP_LIMIT_MS = 15_000;
const BUILD_STD = ['-Zbuild-std=std,panic_abort'];
/** Debian's browser toolchain, whose sources build the standard library for WASM. */
const DEBIAN_PACKAGES = ['rustc-web', 'cargo-web', 'rust-web-src', 'rust-web-llvm', 'lld-22'];

/** Finds cargo, a new enough compiler and a C linker: `{ found }` or `{ missing, apt?, hint? }`. */
export async function findRust() {
  const hint = 'install Rust from https://rustup.rs';
  if (!which('cargo') || !which('rustc')) return { missing: 'Rust', hint };
  const wanted = /^rust-version = "([\d.]+)"/m.exec(readFileSync(join(ROOT, 'Cargo.toml'), 'utf8'))[1];
  const { output } = await run('rustc', ['--version'], { quiet: true });
  const version = /^rustc (\d+\.\d+\.\d+)/m.exec(output)?.[1];
  if (!version || olderThan(version, wanted)) return { missing: `Rust ${wanted} or newer (found ${version ?? 'none'})`, hint: 'run `rustup update stable`' };
  if (process.platform === 'linux' && !which('cc')) return { missing: 'a C linker', apt: ['gcc', 'libc6-dev'], hint: 'install gcc' };
  return { found: `rustc ${version}` };
}

/**
 * Finds the ways to compile for WASM: `{ found, route, threads }` or `{ missing, apt?, hint? }`.
 * A route is `{ name, cargo, env, args }`: the program, its environment and its extra arguments; `threads` is the one
 * for modules with threads. `install` allows rustup to add parts, which needs a network and may hang, hence its limit.
 */
export async function findWasmTarget({ install = true } = {}) {
  const target = await findTarget(install);
  if (!target.route) return target;
  const threads = await withAtomics(target.route, install);
  return threads ? { ...target, threads } : { missing: "the sources of Rust's standard library", apt: DEBIAN_PACKAGES, hint: 'run `rustup component add rust-src`' };
}

async function findTarget(install) {
  const found = (await installedTarget()) ?? (await debianToolchain());
  if (found) return found;
  if (install && which('rustup')) {
    await rustup('target', TARGET);
    const added = await installedTarget();
    if (added) return added;
    say('setup: rustup could not add it');
  }
  return { missing: `Rust's ${TARGET} target`, apt: DEBIAN_PACKAGES, hint: `run \`rustup target add ${TARGET}\`` };
}

async function rustup(kind, name) {
  say(`setup: rustup ${kind} add ${name} (up to ${RUSTUP_LIMIT_MS / 1000} s)`);
  await run('rustup', [kind, 'add', name], { quiet: true, timeoutMs: RUSTUP_LIMIT_MS });
}

async function installedTarget() {
  const { code, output } = await run('rustc', ['--print', 'sysroot'], { quiet: true });
  const folder = join(output.trim(), 'lib', 'rustlib', TARGET, 'lib');
  if (code !== 0 || !existsSync(folder) || !readdirSync(folder).some((name) => /^libstd-.*\.rlib$/.test(name))) return null;
  return { found: `installed target ${TARGET}`, route: { name: 'installed', cargo: 'cargo', env: {}, args: [] } };
}

/**
 * The route for modules with threads, null without one. Their standard library has to be compiled with atomics, from its
 * sources, which Cargo offers to nightly compilers and to those that are told to be one.
 */
async function withAtomics(route, install) {
  if (route.args === BUILD_STD) return route;
  const fromSources = { name: `${route.name}, from sources`, cargo: route.cargo, env: { ...route.env, RUSTC_BOOTSTRAP: '1' }, args: BUILD_STD };
  if (await hasSources()) return fromSources;
  const debian = await debianToolchain();
  if (debian) return debian.route;
  if (install && which('rustup')) await rustup('component', 'rust-src');
  return (await hasSources()) ? fromSources : null;
}

/** Whether the compiler's standard library is there as sources. */
async function hasSources() {
  const { code, output } = await run('rustc', ['--print', 'sysroot'], { quiet: true });
  return code === 0 && existsSync(join(output.trim(), 'lib', 'rustlib', 'src', 'rust', 'library', 'std', 'Cargo.toml'));
}

async function debianToolchain() {
  if (!hasApt() || !(await aptInstalled(DEBIAN_PACKAGES))) return null;
  // rustup's proxies come first in PATH on many machines; this toolchain has to call its own compiler.
  const env = { PATH: `/usr/bin:${process.env.PATH}`, RUSTC: '/usr/bin/rustc', RUSTC_BOOTSTRAP: '1' };
  return {
    found: `Debian's rustc-web, standard library built from its sources`,
    route: { name: 'debian', cargo: '/usr/bin/cargo', env, args: BUILD_STD },
  };
}

function olderThan(version, wanted) {
  const [a, b] = [version, wanted].map((text) => text.split('.').map(Number));
  for (let i = 0; i < 3; i += 1) {
    if ((a[i] ?? 0) !== (b[i] ?? 0)) return (a[i] ?? 0) < (b[i] ?? 0);
  }
  return false;
}
