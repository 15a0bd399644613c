// What of WebAssembly this platform has, and how many processors for it: what the choice of a module asks, before any is
// loaded. Changes nothing.

import { isNode, node } from './platform.js';

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

/** Logical processors, 1 where that is not told. */
export function processors(): number {
  if (isNode()) return node().os.availableParallelism();
  return Math.max(1, navigator.hardwareConcurrency || 1);
}
