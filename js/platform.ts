// Where this code runs, and what Node has of its own: its modules come without an import that a bundler for browsers would
// follow, and are only asked for where `isNode()` holds.

import type * as Fs from 'node:fs';
import type * as FsPromises from 'node:fs/promises';
import type * as Os from 'node:os';
import type * as Path from 'node:path';
import type * as Url from 'node:url';
import type * as WorkerThreads from 'node:worker_threads';

/** Whether this is Node (or something that looks like it), where modules are files and there is no page. */
export function isNode(): boolean {
  return typeof process !== 'undefined' && typeof process.versions?.node === 'string' && typeof process.getBuiltinModule === 'function';
}

/** Whether this code runs in a web worker. */
export function isWebWorker(): boolean {
  const scope = (globalThis as { WorkerGlobalScope?: new () => object }).WorkerGlobalScope;
  return !isNode() && scope !== undefined && globalThis instanceof scope;
}

/** Whether this code runs in a service worker, which has neither workers of its own nor `import()`. */
export function isServiceWorker(): boolean {
  const scope = (globalThis as { ServiceWorkerGlobalScope?: new () => object }).ServiceWorkerGlobalScope;
  return scope !== undefined && globalThis instanceof scope;
}

/** Whether module workers can be made here. */
export function hasWorkers(): boolean {
  return !isNode() && typeof Worker === 'function';
}

/** The modules this package uses in Node. */
export interface NodeModules {
  fs: typeof FsPromises;
  constants: typeof Fs.constants;
  os: typeof Os;
  path: typeof Path;
  url: typeof Url;
  workers: typeof WorkerThreads;
}

/** Node's modules. */
export function node(): NodeModules {
  const load = (name: string) => process.getBuiltinModule(name) as unknown;
  return {
    fs: load('node:fs/promises') as typeof FsPromises,
    constants: (load('node:fs') as typeof Fs).constants,
    os: load('node:os') as typeof Os,
    path: load('node:path') as typeof Path,
    url: load('node:url') as typeof Url,
    workers: load('node:worker_threads') as typeof WorkerThreads,
  };
}

/** The folder of models and downloads: `$HANZO_EDGE_CACHE`, else `hanzo-edge` in the platform's cache folder. */
export function cacheFolder(): string {
  const { os, path } = node();
  const { env, platform } = process;
  if (env.HANZO_EDGE_CACHE) return env.HANZO_EDGE_CACHE;
  if (platform === 'darwin') return path.join(os.homedir(), 'Library', 'Caches', 'hanzo-edge');
  if (platform === 'win32') return path.join(env.LOCALAPPDATA || path.join(os.homedir(), 'AppData', 'Local'), 'hanzo-edge');
  return path.join(env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'hanzo-edge');
}
