// The life of a thread: an instance of the module on the memory it is sent, which works in it until it may go. It blocks,
// so that after the first message it hears no other.

import type * as ThreadsGlue from './hanzo-edge-threads.js';
import { isNode, node } from './platform.js';

/** What a thread is sent, once. */
export interface ThreadStart {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
}

/** What a thread says: that it is about to work, or that it has left and can be ended. */
export type ThreadNews = 'ready' | 'left';

/** As much stack as the module's first thread has. */
const STACK_BYTES = 1 << 20;

/** Makes this worker a thread. */
export function serveThread(glue: typeof ThreadsGlue): void {
  if (isNode()) {
    const { parentPort } = node().workers;
    parentPort?.once('message', (start: ThreadStart) => live(glue, start, (news) => parentPort.postMessage(news)));
    return;
  }
  const scope = globalThis as unknown as { postMessage(news: ThreadNews): void; onmessage: ((event: MessageEvent<ThreadStart>) => void) | null };
  scope.onmessage = (event) => live(glue, event.data, (news) => scope.postMessage(news));
}

function live(glue: typeof ThreadsGlue, { module, memory }: ThreadStart, tell: (news: ThreadNews) => void): void {
  const exports = glue.initSync({ module, memory, thread_stack_size: STACK_BYTES });
  tell('ready');
  try {
    glue.runThread();
  } catch (error) {
    // Whoever waits for this thread's part of the work must not do so for ever.
    glue.noteThreadFault();
    throw error;
  }
  exports.__wbindgen_thread_destroy();
  tell('left');
}
