// What this platform has. Asks and answers, changes nothing.

/** Whether this is Node (or something that looks like it), where modules are files and there is no page. */
export function isNode(): boolean {
  return typeof process !== 'undefined' && typeof process.versions?.node === 'string' && typeof process.getBuiltinModule === 'function';
}

/** Whether this code runs in a web worker. */
export function isWebWorker(): boolean {
  const scope = (globalThis as { WorkerGlobalScope?: new () => object }).WorkerGlobalScope;
  return !isNode() && scope !== undefined && globalThis instanceof scope;
}

/** Whether module workers can be made here. */
export function hasWorkers(): boolean {
  return !isNode() && typeof Worker === 'function';
}

/** Whether the origin's private file system can be used with synchronous handles, as it can in workers. */
export function hasOpfs(): boolean {
  return isWebWorker() && typeof navigator.storage?.getDirectory === 'function' && typeof FileSystemFileHandle === 'function' && 'createSyncAccessHandle' in FileSystemFileHandle.prototype;
}

/** Whether the Cache API can be used (only in secure contexts). */
export function hasCacheApi(): boolean {
  return !isNode() && typeof caches !== 'undefined';
}

/** Whether WebAssembly with 128-bit SIMD runs here. */
export function hasWasmSimd(): boolean {
  // A module with one function that makes a vector: () -> v128 { i32.const 0; i8x16.splat }.
  const module = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11];
  return typeof WebAssembly === 'object' && WebAssembly.validate(new Uint8Array(module));
}
