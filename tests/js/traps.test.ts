// Traps of promise-returning exports, which only the global scope hears of. A small module really traps here.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { callExport, hasTrapped, listenToScope, noteTrap, trapData } from '../../js/traps.js';

/** A module whose one function, `f`, is `unreachable`. */
const TRAP = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 5, 1, 3, 0, 0, 11];
const trap = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(TRAP))).exports.f as () => void;

/** An export like those of the module's glue: it is polled from a microtask, and a trap leaves its promise pending. */
function trappingExport(): Promise<string> {
  return new Promise(() => queueMicrotask(trap));
}

/** Runs without the test runner's own listeners, which take every uncaught error for a failed test. */
async function withoutListeners(work: () => Promise<void>): Promise<void> {
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  try {
    await work();
    assert.equal(process.listenerCount('uncaughtException'), 0, 'a listener stayed');
  } finally {
    for (const listener of listeners) process.on('uncaughtException', listener);
  }
}

test('an_export_that_works_leaves_no_listener', async () => {
  await withoutListeners(async () => {
    assert.equal(await callExport(() => 1), 1);
    assert.equal(await callExport(() => new Promise((resolve) => { setTimeout(resolve, 2, 'later'); })), 'later');
    await assert.rejects(callExport(() => Promise.reject(new Error('mine'))), /mine/);
    await assert.rejects(callExport(() => { throw new Error('at once'); }), /at once/);
  });
  assert.equal(hasTrapped(), false);
});

test('a_trap_in_a_microtask_rejects_every_pending_export', { timeout: 5000 }, async () => {
  await withoutListeners(async () => {
    const other = callExport(() => new Promise<void>(() => {}));
    const isTrap = (error: unknown) => error instanceof WebAssembly.RuntimeError && noteTrap(error);
    await Promise.all([assert.rejects(callExport(trappingExport), isTrap), assert.rejects(other, isTrap)]);
  });
  assert.equal(hasTrapped(), true);
});

test('a_page_or_worker_takes_traps_only', () => {
  const scope = new EventTarget();
  const stop = listenToScope(scope, (error) => error instanceof WebAssembly.RuntimeError);
  const isTaken = (type: string, detail: object) => !scope.dispatchEvent(Object.assign(new Event(type, { cancelable: true }), detail));
  const error = new WebAssembly.RuntimeError('unreachable');
  assert.deepEqual([isTaken('error', { error }), isTaken('unhandledrejection', { reason: error })], [true, true]);
  assert.deepEqual([isTaken('error', { error: new Error('x') }), isTaken('error', {}), isTaken('unhandledrejection', { reason: 'x' })], [false, false, false]);
  stop();
  assert.equal(isTaken('error', { error }), false);
});

test('another_uncaught_error_still_ends_node', () => {
  const script = `import { callExport } from ${JSON.stringify(new URL('../../js/traps.js', import.meta.url).href)};
    setTimeout(() => { throw new Error('not a trap'); }, 5);
    await callExport(() => new Promise((resolve) => { setTimeout(resolve, 2000); }));
    console.log('went on');`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  assert.notEqual(status, 0);
  assert.match(stderr, /not a trap/);
  assert.equal(stdout, '');
});

test('what_is_told_of_a_trap', () => {
  const unreachable = new WebAssembly.RuntimeError('unreachable');
  assert.deepEqual(trapData(unreachable, 'panicked at x.rs: index out of bounds'), { code: 'internal', message: 'the engine stopped: panicked at x.rs: index out of bounds' });
  assert.equal(trapData(unreachable, 'memory allocation of 64 bytes failed').code, 'out-of-memory');
  assert.equal(trapData(unreachable, undefined).code, 'out-of-memory');
  assert.equal(trapData(new WebAssembly.RuntimeError('memory access out of bounds'), undefined).code, 'internal');
});
