// Fetches, compiles and instantiates WASM modules, each once per thread of JS, and knows when they stopped.

import { EdgeError } from './errors.js';
import type { ErrorData } from './errors.js';
import type { ModuleName, WasmModule } from './modules.js';
import { node } from './node.js';
import { hasWasmSimd, isNode } from './support.js';
import { Threads } from './threads.js';
import { hasTrapped, noteTrap, trapData } from './traps.js';

/** Where the module comes from, when not from its place in the package. */
export interface WasmSource {
  url: string | null;
  binary: BufferSource | null;
}

/** A module that runs. */
export interface WasmInstance {
  memory: WebAssembly.Memory;
  /** Null where the module has none. */
  threads: Threads | null;
}

/**
 * Pages of 64 KiB of a shared memory: what the modules begin with (scripts/lib/wasm.mjs, and one that wasm-bindgen adds),
 * and what it may grow to, the first that the platform grants.
 */
const FIRST_PAGES = 129;
const MOST_PAGES = [65_536, 32_768, 16_384];

const started = new Map<ModuleName, Promise<WasmInstance>>();

/** Instantiates a module; later calls get the same instance. A failure is not remembered. */
export function startWasm(module: WasmModule, source: WasmSource): Promise<WasmInstance> {
  if (hasTrapped()) return Promise.reject(stopped());
  let instance = started.get(module.name);
  if (!instance) {
    instance = start(module, source).catch((error: unknown) => {
      started.delete(module.name);
      throw error;
    });
    started.set(module.name, instance);
  }
  return instance;
}

/** Error data when `error` is a trap, after which the module must not be used; null for any other error. */
export function trapOf(error: unknown, module: WasmModule): ErrorData | null {
  return noteTrap(error) ? trapData(error, readPanic(module)) : null;
}

/** Why nothing more can be done in this thread after a trap. */
export function stopped(): EdgeError {
  return new EdgeError('closed', 'the WASM module of this thread stopped after a fault; only a new worker or page can start it again');
}

function readPanic({ glue }: WasmModule): string | undefined {
  try {
    return glue.lastPanic();
  } catch {
    return undefined;
  }
}

async function start(module: WasmModule, source: WasmSource): Promise<WasmInstance> {
  if (!hasWasmSimd()) throw new EdgeError('unsupported-model', 'this platform has no WebAssembly SIMD');
  const compiled = source.binary ? await compile(source.binary, 'wasmBinary') : await fetchModule(moduleUrl(module, source.url), 'wasmUrl');
  const shared = module.threads ? { memory: sharedMemory() } : {};
  try {
    const { memory } = await module.glue.default({ module_or_path: compiled, ...shared });
    return { memory, threads: module.threads && new Threads(module.threads, { module: compiled, memory }) };
  } catch (error) {
    throw new EdgeError('internal', `the WASM module does not fit this version of the package: ${messageOf(error)}`, { cause: error });
  }
}

/** A memory that threads share. Its largest size is reserved at once, which small devices refuse. */
function sharedMemory(): WebAssembly.Memory {
  let fault: unknown;
  for (const maximum of MOST_PAGES) {
    try {
      return new WebAssembly.Memory({ initial: FIRST_PAGES, maximum, shared: true });
    } catch (error) {
      fault = error;
    }
  }
  throw new EdgeError('out-of-memory', `no memory could be shared with threads: ${messageOf(fault)}; threads: 1 needs none`, { cause: fault });
}

function moduleUrl(module: WasmModule, url: string | null): URL {
  if (url === null) return module.url;
  return new URL(url.endsWith('/') ? `${url}${module.name}.wasm` : url, import.meta.url);
}

/** Fetches and compiles a module; `option` says where else it may come from. */
export async function fetchModule(url: URL, option: string): Promise<WebAssembly.Module> {
  if (url.protocol === 'file:' && isNode()) {
    const bytes = await node().fs.readFile(url).catch((error: unknown) => {
      throw new EdgeError('not-found', `the WASM module could not be read: ${messageOf(error)}`, { path: url.href, cause: error });
    });
    return compile(bytes, url.href);
  }
  const response = await fetch(url).catch((error: unknown) => {
    throw new EdgeError('network', `the WASM module ${url.href} could not be fetched: ${messageOf(error)}`, { path: url.href, cause: error });
  });
  const type = response.headers.get('content-type') ?? 'no type';
  if (!response.ok) throw new EdgeError('not-found', `the WASM module ${url.href} answered with HTTP status ${response.status}; see the option ${option}`, { path: url.href });
  if (/^text\/html\b/i.test(type)) throw new EdgeError('not-found', `the WASM module ${url.href} answered with a web page (${type}); see the option ${option}`, { path: url.href });
  return compile(await response.arrayBuffer(), url.href);
}

async function compile(bytes: BufferSource, path: string): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    const hint = /Content Security Policy|CSP|unsafe-eval/i.test(messageOf(error)) ? " (the page's Content-Security-Policy needs script-src 'wasm-unsafe-eval')" : '';
    throw new EdgeError('internal', `the WASM module ${path} could not be compiled: ${messageOf(error)}${hint}`, { path, cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
