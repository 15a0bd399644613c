// The WASM modules of the package, and which of them an engine takes, on how many threads, and why not more.

import { EdgeError } from './errors.js';
import { probeGpu } from './gpu.js';
import type * as BaseGlue from './hanzo-edge.js';
import type * as ThreadsGlue from './hanzo-edge-threads.js';
import { isNode, isServiceWorker } from './platform.js';
import type { Threads } from './threads.js';
import type { EdgeOptions } from './types.js';
import { hasRelaxedSimd, processors, threadsFault } from './wasm-features.js';

/** The modules, by the stems of their files. */
export const MODULE_NAMES = ['hanzo-edge', 'hanzo-edge-relaxed', 'hanzo-edge-threads', 'hanzo-edge-relaxed-threads'] as const;
export type ModuleName = (typeof MODULE_NAMES)[number];

/** A module with its glue. Every file that makes one is the only one that imports its glue. */
export interface WasmModule {
  name: ModuleName;
  /** Where the package has it. Only read when it is needed: in bundles of formats without `import.meta` it throws. */
  readonly url: URL;
  glue: typeof BaseGlue;
  /** What its threads need; null where it has none. */
  threads: {
    glue: typeof ThreadsGlue;
    /** Starts the thread's file, in a browser. */
    start(): Worker;
    /** The name of the thread's file, in Node. */
    file: string;
    Threads: typeof Threads;
  } | null;
}

/** A module that was chosen. */
export interface ModuleChoice {
  name: ModuleName;
  /** Threads that compute, the engine's own included. */
  threads: number;
  /** Why this module, and why not more threads. */
  reason: string;
}

/** The module every platform runs. */
export const BASE_CHOICE: ModuleChoice = { name: 'hanzo-edge', threads: 1, reason: 'the base module was asked for' };

/** Beyond these, memory is what limits. */
const MOST_BY_DEFAULT = 8;

/**
 * Chooses for the options of an engine. `noWorker` says why no worker of the package will run it; null when one will.
 * A worker that the caller names has its module already.
 */
export async function chooseModule(options: EdgeOptions, noWorker: string | null): Promise<ModuleChoice> {
  const { wasmUrl, wasmBinary, worker } = options;
  if (wasmBinary !== undefined) return { ...BASE_CHOICE, reason: 'wasmBinary holds the base module' };
  if (noWorker === null && worker !== undefined && typeof worker !== 'boolean') {
    return { ...BASE_CHOICE, threads: threadsFault() === null ? wantedThreads(options) : 1, reason: 'the worker that was given has this module' };
  }
  const fault = await whyOneThread(options, noWorker);
  const threads = fault === null ? wantedThreads(options) : 1;
  if (wasmUrl !== undefined && !String(wasmUrl).endsWith('/')) return namedModule(String(wasmUrl), threads, noWorker);
  const isRelaxed = hasRelaxedSimd();
  const reason = fault ? `one thread: ${fault}` : threadsReason(options, threads);
  return { name: moduleName(isRelaxed, threads > 1), threads, reason: `${isRelaxed ? 'relaxed SIMD' : 'no relaxed SIMD here'}; ${reason}` };
}

/** The choice for an engine that has to run in the page after all. */
export function withoutThreads(choice: ModuleChoice, reason: string): ModuleChoice {
  if (choice.threads === 1) return choice;
  return { name: moduleName(choice.name.includes('relaxed'), false), threads: 1, reason: `one thread: ${reason}` };
}

/** Loads a module's glue, for an engine without a worker. */
export async function importModule(name: ModuleName): Promise<WasmModule> {
  switch (name) {
    case 'hanzo-edge': return (await import('./module.js')).MODULE;
    case 'hanzo-edge-relaxed': return (await import('./module-relaxed.js')).MODULE;
    case 'hanzo-edge-threads': return (await import('./module-threads.js')).MODULE;
    case 'hanzo-edge-relaxed-threads': return (await import('./module-relaxed-threads.js')).MODULE;
  }
}

/** Why the engine's code could not be loaded into this thread. */
export function importFault(error: unknown): EdgeError {
  const detail = error instanceof Error ? error.message : String(error);
  // Browsers have no code for it: `import()` is not there for service workers.
  if (!isServiceWorker() || !/import/.test(detail)) return new EdgeError('network', `the package's own code could not be loaded: ${detail}`, { cause: error });
  return new EdgeError('not-found', `a service worker cannot load code later: bundle it with this package into one file, without splitting (${detail})`, { cause: error });
}

/** Starts the worker of a module. Bundlers want every file's name spelled out. */
export function startWorker(name: ModuleName): Worker {
  switch (name) {
    case 'hanzo-edge': return new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
    case 'hanzo-edge-relaxed': return new Worker(new URL('./worker-relaxed.js', import.meta.url), { type: 'module' });
    case 'hanzo-edge-threads': return new Worker(new URL('./worker-threads.js', import.meta.url), { type: 'module' });
    case 'hanzo-edge-relaxed-threads': return new Worker(new URL('./worker-relaxed-threads.js', import.meta.url), { type: 'module' });
  }
}

function moduleName(relaxed: boolean, threads: boolean): ModuleName {
  return `hanzo-edge${relaxed ? '-relaxed' : ''}${threads ? '-threads' : ''}`;
}

/** A file with the name of one of the modules is taken as that one, any other as the base module. */
function namedModule(url: string, threads: number, noWorker: string | null): ModuleChoice {
  const name = MODULE_NAMES.find((candidate) => url.split(/[?#]/)[0]?.endsWith(`/${candidate}.wasm`)) ?? 'hanzo-edge';
  if (!name.endsWith('-threads')) return { name, threads: 1, reason: 'one thread: wasmUrl names a module without threads' };
  const fault = threadsFault() ?? (isNode() ? null : noWorker);
  if (fault) throw new EdgeError('invalid-argument', `wasmUrl: expected a module without threads, since ${fault}; found ${name}.wasm`, { path: 'wasmUrl' });
  return { name, threads, reason: 'wasmUrl names this module' };
}

/** Why there is one thread only; null when there are more. */
async function whyOneThread(options: EdgeOptions, noWorker: string | null): Promise<string | null> {
  if (options.threads === 1) return 'threads: 1 was asked for';
  const fault = threadsFault();
  if (fault) return fault;
  // A page must never wait for another thread. Node may.
  if (noWorker && !isNode()) return `the engine runs in the page, which must not wait: ${noWorker}`;
  if (wantedThreads(options) === 1) return 'there is one processor';
  if (options.backend === 'webgpu') return 'the GPU computes';
  if (options.backend !== 'cpu' && (await probeGpu(options.powerPreference, false)).gpu) return 'the GPU is expected to compute';
  return null;
}

/** By default half the logical processors, since most have two to a core; two at least where there are two. */
function wantedThreads({ threads }: EdgeOptions): number {
  const logical = processors();
  return threads ?? Math.min(Math.max(Math.ceil(logical / 2), Math.min(logical, 2)), MOST_BY_DEFAULT);
}

function threadsReason(options: EdgeOptions, threads: number): string {
  return options.threads === undefined ? `${threads} threads for ${processors()} logical processors` : `threads: ${threads} was asked for`;
}
