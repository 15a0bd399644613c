// The wasm-bindgen program, of exactly the version that Cargo.lock names: another version refuses the crate's output.

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { cacheFolder } from './cache.mjs';
import { ROOT, isExecutable, must, run, say, which } from './shell.mjs';

/** The version of the crate wasm-bindgen in Cargo.lock. */
export function bindgenVersion() {
  const lock = readFileSync(join(ROOT, 'Cargo.lock'), 'utf8');
  return /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(lock)[1];
}

/** The path of the right wasm-bindgen, else null. */
export async function findBindgen() {
  const version = bindgenVersion();
  const candidates = [which('wasm-bindgen'), program(join(homedir(), '.cargo')), program(toolFolder(version))];
  for (const path of candidates) {
    if (!path || !isExecutable(path)) continue;
    const { output } = await run(path, ['--version'], { quiet: true });
    if (output.trim() === `wasm-bindgen ${version}`) return path;
  }
  return null;
}

/** Finds the right wasm-bindgen or compiles it into the cache folder (minutes, once). */
export async function needBindgen() {
  const found = await findBindgen();
  if (found) return found;
  const version = bindgenVersion();
  say(`setup: compiling wasm-bindgen ${version} (once, about 3 minutes)`);
  const install = ['install', 'wasm-bindgen-cli', '--version', version, '--root', toolFolder(version)];
  // Its own lock file may name versions that a registry mirror does not have (yet).
  const { code } = await run('cargo', [...install, '--locked'], { quiet: true });
  if (code !== 0) await must('compiling wasm-bindgen', 'cargo', install, { quiet: true });
  return program(toolFolder(version));
}

function toolFolder(version) {
  return join(cacheFolder(), 'tools', `wasm-bindgen-${version}`);
}

function program(folder) {
  return join(folder, 'bin', process.platform === 'win32' ? 'wasm-bindgen.exe' : 'wasm-bindgen');
}
