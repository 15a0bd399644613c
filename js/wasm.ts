// Fetches, compiles and instantiates the WASM module, once per thread, and knows when it stopped.

import init, { lastPanic } from './hanzo-edge.js';
import type { InitOutput } from './hanzo-edge.js';
import { EdgeError } from './errors.js';
import type { ErrorData } from './errors.js';
import { node } from './node.js';
import { hasWasmSimd, isNode } from './support.js';
import { hasTrapped, noteTrap, trapData } from './traps.js';

/** The file stem of the module, in diagnostics and in the package. */
export const MODULE_FILE = 'hanzo-edge.wasm';

/** Where the module comes from. */
export interface WasmSource {
  url: string | null;
  binary: BufferSource | null;
}

let started: Promise<InitOutput> | null = null;

/** Instantiates the module; later calls get the same instance. A failure is not remembered. */
export function startWasm(source: WasmSource): Promise<InitOutput> {
  if (hasTrapped()) return Promise.reject(stopped());
  started ??= start(source).catch((error: unknown) => {
    started = null;
    throw error;
  });
  return started;
}

/** Error data when `error` is a trap, after which the module must not be used; null for any other error. */
export function trapOf(error: unknown): ErrorData | null {
  return noteTrap(error) ? trapData(error, readPanic()) : null;
}

/** Why nothing more can be done in this thread after a trap. */
export function stopped(): EdgeError {
  return new EdgeError('closed', 'the WASM module of this thread stopped after a fault; only a new worker or page can start it again');
}

function readPanic(): string | undefined {
  try {
    return lastPanic();
  } catch {
    return undefined;
  }
}

async function start(source: WasmSource): Promise<InitOutput> {
  if (!hasWasmSimd()) throw new EdgeError('unsupported-model', 'this platform has no WebAssembly SIMD');
  const module = source.binary ? await compile(source.binary, 'wasmBinary') : await fetchModule(moduleUrl(source.url));
  try {
    return await init({ module_or_path: module });
  } catch (error) {
    throw new EdgeError('internal', `the WASM module does not fit this version of the package: ${messageOf(error)}`, { cause: error });
  }
}

function moduleUrl(url: string | null): URL {
  if (url === null) return new URL('./hanzo-edge.wasm', import.meta.url);
  return new URL(url.endsWith('/') ? url + MODULE_FILE : url, import.meta.url);
}

async function fetchModule(url: URL): Promise<WebAssembly.Module> {
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
  if (!response.ok) throw new EdgeError('not-found', `the WASM module ${url.href} answered with HTTP status ${response.status}; see the option wasmUrl`, { path: url.href });
  if (/^text\/html\b/i.test(type)) throw new EdgeError('not-found', `the WASM module ${url.href} answered with a web page (${type}); see the option wasmUrl`, { path: url.href });
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
