// Notices that the WASM module stopped. A trap in a plain export is thrown to its caller; one in a promise-returning export
// happens in a microtask of its own, where only the global scope hears of it, and the promise stays pending for ever.
// Knows nothing of the module itself, so that it can be tested without one.

import type { ErrorData } from './errors.js';
import { isNode } from './platform.js';

let isStopped = false;

/** Whether a trap was seen: the module of this thread must not be used any more, not even to free something. */
export function hasTrapped(): boolean {
  return isStopped;
}

/** Whether `error` is a trap; if so, it is remembered that the module stopped. */
export function noteTrap(error: unknown): error is Error {
  const isTrap = error instanceof WebAssembly.RuntimeError || (error instanceof RangeError && /call stack/i.test(error.message));
  if (isTrap) isStopped = true;
  return isTrap;
}

/** What to tell of a trap. `panic` is the message that the module recorded, undefined when there was none. */
export function trapData(trap: Error, panic: string | undefined): ErrorData {
  if (panic !== undefined) {
    const code = /memory allocation (of \d+ bytes )?failed/.test(panic) ? 'out-of-memory' : 'internal';
    return { code, message: `the engine stopped: ${panic}` };
  }
  // A panic is recorded before its trap. What is left are failed allocations and exhausted stacks.
  if (/unreachable/.test(trap.message)) return { code: 'out-of-memory', message: 'the WASM module could not get the memory it needed' };
  return { code: 'internal', message: `the engine stopped: ${trap.message}` };
}

/** Calls an export of the module. Rejects with the trap that stopped it, at once or while its promise was pending. */
export async function callExport<T>(call: () => T | Promise<T>): Promise<T> {
  try {
    const value = call();
    return value instanceof Promise ? await untilTrap(value) : value;
  } catch (error) {
    noteTrap(error);
    throw error;
  }
}

/** What rejects the exports that are pending. All share the instance, so that one trap ends them all. */
const pending = new Set<(trap: Error) => void>();
let stopListening = () => {};

async function untilTrap<T>(promise: Promise<T>): Promise<T> {
  let onTrap = (_trap: Error) => {};
  const trapped = new Promise<never>((_resolve, reject) => { onTrap = reject; });
  if (pending.size === 0) stopListening = isNode() ? listenToProcess(takeTrap) : listenToScope(globalThis, takeTrap);
  pending.add(onTrap);
  try {
    return await Promise.race([promise, trapped]);
  } finally {
    pending.delete(onTrap);
    if (pending.size === 0) stopListening();
  }
}

/** Takes an uncaught error when it is a trap. An exhausted stack may be anyone's, and is not taken here. */
function takeTrap(error: unknown): boolean {
  if (!(error instanceof WebAssembly.RuntimeError)) return false;
  for (const reject of pending) reject(error);
  return true;
}

/** Hears the uncaught errors of a page or worker; those that `take` accepts are not reported further. */
export function listenToScope(scope: EventTarget, take: (error: unknown) => boolean): () => void {
  const onError = (event: Event) => { if (take((event as Partial<ErrorEvent>).error)) event.preventDefault(); };
  const onRejection = (event: Event) => { if (take((event as Partial<PromiseRejectionEvent>).reason)) event.preventDefault(); };
  scope.addEventListener('error', onError);
  scope.addEventListener('unhandledrejection', onRejection);
  return () => {
    scope.removeEventListener('error', onError);
    scope.removeEventListener('unhandledrejection', onRejection);
  };
}

function listenToProcess(take: (error: unknown) => boolean): () => void {
  const onError = (error: unknown) => {
    // Without this listener Node would print the error and exit; thrown from here, it still does.
    if (!take(error) && process.listenerCount('uncaughtException') === 1) throw error;
  };
  process.on('uncaughtException', onError);
  return () => { process.off('uncaughtException', onError); };
}
