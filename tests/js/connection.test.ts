// The caller's side of a line, with a worker that is none.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Connection } from '../../js/connection.js';
import { EdgeError } from '../../js/errors.js';
import type { Calls, FromHost, ToHost } from '../../js/protocol.js';

/** What a browser's worker does with messages: it copies them. It answers `close`, and `tokenize` with no ids. */
class FakeWorker extends EventTarget {
  postMessage(message: ToHost): void {
    const copy = structuredClone(message);
    if (copy.type !== 'call') return;
    const data: FromHost = { type: 'answer', id: copy.id, value: copy.call.name === 'close' ? null : new Uint32Array() };
    queueMicrotask(() => this.dispatchEvent(Object.assign(new Event('message'), { data })));
  }
}

// In Node there is no worker to be used; here the package shall take this for a browser.
const { getBuiltinModule } = process;
before(() => {
  Object.assign(process, { getBuiltinModule: undefined });
  Object.assign(globalThis, { Worker: FakeWorker });
});
after(() => {
  Object.assign(process, { getBuiltinModule });
  Reflect.deleteProperty(globalThis, 'Worker');
});

const connect = () => new Connection(new FakeWorker() as unknown as Worker, null);

test('what_cannot_be_copied_to_a_worker_is_the_callers_fault_and_the_line_goes_on', async () => {
  const connection = connect();
  assert.equal(connection.worker.used, true);
  const request = { kind: 'chat', messages: [], templateKwargs: { now: () => 1 }, sampling: {} } as Calls['generate']['request'];
  await assert.rejects(connection.call('generate', request).answer, (error) => error instanceof EdgeError && error.code === 'invalid-argument' && /could not be cloned/.test(error.message));
  assert.deepEqual(await connection.call('tokenize', 'x').answer, new Uint32Array());
  await connection.close(new EdgeError('closed', 'done'));
});

test('closing_leaves_no_timer', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const connection = connect();
  await connection.close(new EdgeError('closed', 'done'));
  assert.equal(timers(), before);
  await assert.rejects(connection.call('tokenize', 'x').answer, (error) => error instanceof EdgeError && error.code === 'closed');
});
