// What this platform has. Asks and answers, changes nothing.

import { node } from './node.js';

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

/** Whether the origin's private file system can be read. */
export function hasOpfs(): boolean {
  return !isNode() && typeof navigator.storage?.getDirectory === 'function' && typeof FileSystemFileHandle === 'function';
}

/** Whether the origin's private file system can be written with synchronous handles, as it can in workers. */
export function canWriteOpfs(): boolean {
  return isWebWorker() && hasOpfs() && 'createSyncAccessHandle' in FileSystemFileHandle.prototype;
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

/** Whether WebAssembly with relaxed SIMD runs here, and rightly: one V8 had its dot product wrong behind a flag. */
export function hasRelaxedSimd(): boolean {
  const a = Int8Array.from({ length: 16 }, (_, i) => 127 - 17 * i);
  const b = Int8Array.from({ length: 16 }, (_, i) => 127 - 5 * i);
  try {
    const bytes = relaxedDotModule(a, b);
    if (!WebAssembly.validate(bytes)) return false;
    const { memory } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as { memory: WebAssembly.Memory };
    const sums = new Int32Array(memory.buffer, 0, 4);
    const expected = (lane: number) => a.subarray(4 * lane, 4 * lane + 4).reduce((sum, x, i) => sum + x * (b[4 * lane + i] ?? 0), 1000);
    return sums.every((sum, lane) => sum === expected(lane));
  } catch {
    return false;
  }
}

/** A module that stores `1000 + dot(a, b)` of each four bytes at the beginning of its memory when it is instantiated. */
function relaxedDotModule(a: Int8Array, b: Int8Array): Uint8Array<ArrayBuffer> {
  const constant = (bytes: Int8Array) => [253, 12, ...new Uint8Array(bytes.buffer)];
  // i32.const 0; v128.const a; v128.const b; i32.const 1000; i32x4.splat; i32x4.relaxed_dot_i8x16_i7x16_add_s; v128.store.
  const body = [0, 65, 0, ...constant(a), ...constant(b), 65, 232, 7, 253, 17, 253, 147, 2, 253, 11, 4, 0, 11];
  const sections = [
    [1, [1, 96, 0, 0]], // types: () -> ()
    [3, [1, 0]], // functions: one of it
    [5, [1, 0, 1]], // memories: one page
    [7, [1, 6, ...new TextEncoder().encode('memory'), 2, 0]], // exports
    [8, [0]], // start: that function
    [10, [1, body.length, ...body]], // code
  ] as const;
  return Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, ...sections.flatMap(([id, bytes]) => [id, bytes.length, ...bytes])]);
}

/** Why WebAssembly threads cannot be used here; null when they can. */
export function threadsFault(): string | null {
  if (!isNode() && globalThis.crossOriginIsolated !== true) return 'the page is not cross-origin isolated (headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp)';
  if (hasOldV8()) return 'atomics are wrong in this V8 (Node 22 or Chrome 114 is the first that is right)';
  // Without it the glue would start workers from blobs.
  if (typeof (Atomics as { waitAsync?: unknown }).waitAsync !== 'function') return 'Atomics.waitAsync is missing here';
  // A module with a shared memory and one function: () -> () { atomic.fence }.
  const module = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1, 10, 7, 1, 5, 0, 254, 3, 0, 11];
  const has = typeof SharedArrayBuffer === 'function' && typeof WebAssembly === 'object' && WebAssembly.validate(new Uint8Array(module));
  return has ? null : 'there are no WebAssembly threads here';
}

/** Whether this is a V8 whose first compiler gets atomic operations wrong, so that threads wait for each other for ever. */
function hasOldV8(): boolean {
  if (isNode()) return Number.parseFloat(process.versions.v8 ?? '99') < 11.4;
  return Number(/\bChrome\/(\d+)/.exec(navigator.userAgent)?.[1] ?? 999) < 114;
}

/** Bytes of this machine's memory; null where that is not told. Browsers tell no more than 8 GiB, so that these may be more. */
export function memoryBytes(): number | null {
  if (isNode()) return node().os.totalmem();
  const gigabytes = (navigator as Navigator & { deviceMemory?: number }).deviceMemory;
  return gigabytes !== undefined && gigabytes < 8 ? gigabytes * 2 ** 30 : null;
}

/** Logical processors, 1 where that is not told. */
export function processors(): number {
  if (isNode()) return node().os.availableParallelism();
  return Math.max(1, navigator.hardwareConcurrency || 1);
}
