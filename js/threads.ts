// The threads of one instance of a WASM module with threads, as workers on its memory. Engines ask for some and give as
// many back; which ones leave is the module's business.

import { isNode, node } from './platform.js';
import type { ThreadNews, ThreadStart } from './thread-host.js';
import type { WasmModule } from './modules.js';

/** How long a thread may take to start. */
const START_MS = 10_000;

/** A worker, as both kinds of platform can be seen. */
interface Thread {
  post(start: ThreadStart): void;
  /** Ends it now. */
  end(): void;
  /** From here on it does not keep the process alive. */
  release(): void;
}

interface ThreadEvents {
  onNews(news: ThreadNews): void;
  onFault(message: string): void;
}

/** The threads of an instance. */
export class Threads {
  readonly #module: NonNullable<WasmModule['threads']>;
  readonly #base: URL;
  readonly #start: ThreadStart;
  readonly #running = new Set<Thread>();
  #onLeft: (() => void)[] = [];

  /** `base`: the module's own place, beside which the threads' file lies. */
  constructor(module: NonNullable<WasmModule['threads']>, base: URL, start: ThreadStart) {
    this.#module = module;
    this.#base = base;
    this.#start = start;
  }

  /** Starts threads; answers how many there are and, when these are fewer, why. */
  async add(count: number): Promise<{ started: number; fault: string | null }> {
    const faults = (await Promise.all(Array.from({ length: count }, () => this.#add()))).filter((fault) => fault !== null);
    return { started: count - faults.length, fault: faults[0] ?? null };
  }

  /** Lets threads go when they are free, and waits until as many have ended. */
  async release(count: number): Promise<void> {
    if (count === 0) return;
    const left = Array.from({ length: count }, () => new Promise<void>((resolve) => { this.#onLeft.push(resolve); }));
    this.#module.glue.releaseThreads(count);
    await Promise.all(left);
  }

  /** Ends all at once, after a trap. */
  end(): void {
    for (const thread of this.#running) thread.end();
    this.#running.clear();
  }

  /** Starts one; answers why it could not be, else null. */
  #add(): Promise<string | null> {
    return new Promise((resolve) => {
      let thread: Thread | null = null;
      const leave = (fault: string) => {
        clearTimeout(timer);
        if (thread) this.#running.delete(thread);
        thread?.end();
        this.#onLeft.shift()?.();
        resolve(fault);
      };
      const timer = setTimeout(() => leave(`a thread did not start within ${START_MS / 1000} s`), START_MS);
      const onNews = (news: ThreadNews) => {
        if (news === 'left') return leave('it left');
        clearTimeout(timer);
        thread?.release();
        resolve(null);
      };
      try {
        thread = startThread(this.#module, this.#base, { onNews, onFault: (message) => leave(`a thread failed: ${message}`) });
        this.#running.add(thread);
        thread.post(this.#start);
      } catch (error) {
        leave(`a thread could not be started: ${error instanceof Error ? error.message : String(error)}`);
      }
    });
  }
}

function startThread(module: NonNullable<WasmModule['threads']>, base: URL, events: ThreadEvents): Thread {
  return isNode() ? nodeThread(new URL(module.file, base), events) : webThread(module.start(), events);
}

function webThread(worker: Worker, { onNews, onFault }: ThreadEvents): Thread {
  worker.onmessage = (event: MessageEvent<ThreadNews>) => onNews(event.data);
  worker.onerror = (event) => onFault(event.message || 'it could not be loaded');
  // The worker that this runs in goes on for a while (js/connection.ts).
  return { post: (start) => worker.postMessage(start), end: () => worker.terminate(), release: () => {} };
}

function nodeThread(file: URL, { onNews, onFault }: ThreadEvents): Thread {
  // The process's own flags may not fit a file: `--input-type`, for one.
  const worker = new (node().workers.Worker)(file, { execArgv: [] });
  worker.on('message', onNews);
  worker.on('error', (error) => onFault(error.message));
  return { post: (start) => worker.postMessage(start), end: () => void worker.terminate(), release: () => worker.unref() };
}
