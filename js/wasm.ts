// Fetches, compiles and instantiates WASM modules, each once per thread of JS, and knows when they stopped.

import { EdgeError } from './errors.js';
import type { ErrorData } from './errors.js';
import type { ModuleName, WasmModule } from './modules.js';
import { isNode, node } from './platform.js';
import type { Threads } from './threads.js';
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
  checkFit(compiled);
  const shared = module.threads ? { memory: sharedMemory() } : {};
  try {
    const { memory } = await module.glue.default({ module_or_path: compiled, ...shared });
    return { memory, threads: module.threads && new module.threads.Threads(module.threads, module.url, { module: compiled, memory }) };
  } catch (error) {
    if (error instanceof RangeError) throw new EdgeError('out-of-memory', `the WASM module could not get its first memory: ${error.message}`, { cause: error });
    throw misfit(messageOf(error), error);
  }
}

/** The glue keeps whatever was instantiated once, so that another module must be refused before. */
function checkFit(compiled: WebAssembly.Module): void {
  const names = WebAssembly.Module.exports(compiled).map(({ name }) => name);
  const missing = ['__wbindgen_start', 'loader_new', 'engine_start', 'lastPanic'].filter((name) => !names.includes(name));
  if (missing.length > 0) throw misfit(`it has no ${missing.join(', ')}`);
}

function misfit(reason: string, cause?: unknown): EdgeError {
  return new EdgeError('integrity', `the WASM module does not fit this version of the package: ${reason}`, { cause });
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

/** In Node a relative `wasmUrl` counts from the working folder; elsewhere the caller's side made it whole. */
export function moduleUrl(module: { name: string; url: URL }, url: string | null): URL {
  if (url === null) return module.url;
  return new URL(url.endsWith('/') ? `${url}${module.name}.wasm` : url, isNode() ? node().url.pathToFileURL(`${process.cwd()}/`) : undefined);
}

/** Fetches and compiles a module; `option` says where else it may come from. */
export async function fetchModule(url: URL, option: string): Promise<WebAssembly.Module> {
  if (url.protocol === 'file:' && isNode()) {
    const bytes = await node().fs.readFile(url).catch((error: unknown) => {
      throw new EdgeError('not-found', `the WASM module could not be read: ${messageOf(error)}`, { path: url.href, cause: error });
    });
    return compile(bytes, url.href);
  }
  const broken = (error: unknown) => new EdgeError('network', `the WASM module ${url.href} could not be fetched: ${messageOf(error)}`, { path: url.href, cause: error });
  const response = await fetch(url).catch((error: unknown) => { throw broken(error); });
  if (!response.ok) throw new EdgeError('not-found', `the WASM module ${url.href} answered with HTTP status ${response.status}; see the option ${option}`, { path: url.href });
  const bytes = await response.arrayBuffer().catch((error: unknown) => { throw broken(error); });
  if (!startsAsWasm(bytes)) {
    const type = response.headers.get('content-type') ?? 'no type';
    const beginning = JSON.stringify(new TextDecoder().decode(bytes.slice(0, 16)));
    throw new EdgeError('not-found', `the WASM module ${url.href} answered with what is no WASM module (${type}, beginning ${beginning}); see the option ${option}`, { path: url.href });
  }
  return compile(bytes, url.href);
}

/** Servers that know no such file send a web page, often with status 200; a wrong type alone does no harm. */
function startsAsWasm(bytes: ArrayBuffer): boolean {
  return bytes.byteLength >= 4 && new DataView(bytes).getUint32(0) === 0x0061_736d;
}

async function compile(bytes: BufferSource, path: string): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    const isForbidden = /Content Security Policy|CSP|unsafe-eval/i.test(messageOf(error));
    const hint = isForbidden ? " (the page's Content-Security-Policy needs script-src 'wasm-unsafe-eval')" : ` (${bytes.byteLength} bytes)`;
    throw new EdgeError(isForbidden ? 'internal' : 'integrity', `the WASM module ${path} could not be compiled: ${messageOf(error)}${hint}`, { path, cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether WebAssembly with 128-bit SIMD runs here. */
function hasWasmSimd(): boolean {
  // A module with one function that makes a vector: () -> v128 { i32.const 0; i8x16.splat }.
  const module = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11];
  return typeof WebAssembly === 'object' && WebAssembly.validate(new Uint8Array(module));
}
