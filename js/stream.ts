// The stream of one answer: buffers pieces as they come, hands them to one reader, and keeps the result.
// It knows nothing of workers or engines; whoever makes it feeds it and hears when it is cancelled.

import { EdgeError, toEdgeError } from './errors.js';
import type { GenerateResult, TokenStream } from './types.js';

interface Waiting {
  resolve(result: IteratorResult<string, undefined>): void;
  reject(reason: unknown): void;
  /** Who reads: an iterator that waits is not dropped. */
  reader: object;
}

/** Iterators that nobody has any more: no `finally` runs for them, so the collector tells. */
const dropped = new FinalizationRegistry<() => void>((leave) => leave());

/** A stream together with what feeds it. Every feeding method does nothing once the stream is over. */
export class TokenStreamSource {
  readonly stream: TokenStream;
  readonly #pieces: string[] = [];
  #waiting: Waiting[] = [];
  #isOver = false;
  #isCancelled = false;
  #failure: { reason: unknown } | null = null;
  #settle!: { resolve(result: GenerateResult): void; reject(reason: unknown): void };
  #isRead = false;
  /** Whether somebody waits for the end, read or not. */
  #isAwaited = false;
  readonly #onCancel: () => void;
  /** Made here, where no iterator is in reach that it would keep. */
  readonly #onDropped = () => { if (!this.#isAwaited) this.#cancel(); };

  /** `onCancel` is called once, when the reader leaves before the end; the source must then `finish` or `fail`. */
  constructor(onCancel: () => void) {
    this.#onCancel = onCancel;
    const result = new Promise<GenerateResult>((resolve, reject) => { this.#settle = { resolve, reject }; });
    // A result nobody looks at must not become an unhandled rejection.
    result.catch(() => {});
    const open = () => this.#open();
    const isAwaited = () => { this.#isAwaited = true; };
    let readable: ReadableStream<string> | null = null;
    this.stream = {
      get result() { isAwaited(); return result; },
      get readable() { return (readable ??= toReadable(open())); },
      cancel: () => this.#cancel(),
      [Symbol.asyncIterator]: open,
    };
  }

  /** Adds a piece of text. */
  push(piece: string): void {
    if (this.#isOver || this.#isCancelled || piece === '') return;
    const waiting = this.#waiting.shift();
    if (waiting) waiting.resolve({ value: piece, done: false });
    else this.#pieces.push(piece);
  }

  /** Ends the stream with its result. */
  finish(result: GenerateResult): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#settle.resolve(result);
    this.#release();
  }

  /** Ends the stream with a failure: an `AbortSignal`'s reason as it is, anything else as an `EdgeError`. */
  fail(reason: unknown, isAbort = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const failure = { reason: isAbort ? reason : toEdgeError(reason) };
    if (!this.#isCancelled) this.#failure = failure;
    this.#settle.reject(failure.reason);
    this.#release();
  }

  /** Whether the stream has its result or failed. */
  get isOver(): boolean {
    return this.#isOver;
  }

  #cancel(): void {
    if (this.#isOver || this.#isCancelled) return;
    this.#isCancelled = true;
    this.#pieces.length = 0;
    this.#release();
    this.#onCancel();
  }

  /** Answers reads that no piece will answer any more. */
  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const read of waiting) this.#end().then(read.resolve, read.reject);
  }

  /** The answer to a read after the last piece: the failure once, then the end. */
  #end(): Promise<IteratorResult<string, undefined>> {
    const failure = this.#failure;
    this.#failure = null;
    return failure ? Promise.reject(failure.reason) : Promise.resolve({ value: undefined, done: true });
  }

  #open(): AsyncGenerator<string, undefined, undefined> {
    if (this.#isRead) throw new EdgeError('invalid-argument', 'this stream is being read already: a stream can be read once');
    this.#isRead = true;
    return this.#iterator();
  }

  #iterator(): AsyncGenerator<string, undefined, undefined> {
    const leave = async () => { this.#cancel(); };
    const iterator: AsyncIterator<string, undefined, undefined> & { [Symbol.asyncIterator](): unknown } = {
      next: () => this.#next(iterator),
      return: async (): Promise<IteratorResult<string, undefined>> => { await leave(); return { value: undefined, done: true }; },
      throw: async (reason: unknown): Promise<IteratorResult<string, undefined>> => { await leave(); throw reason; },
      [Symbol.asyncIterator]() { return iterator; },
    };
    dropped.register(iterator, this.#onDropped);
    return iterator as unknown as AsyncGenerator<string, undefined, undefined>;
  }

  #next(reader: object): Promise<IteratorResult<string, undefined>> {
    const piece = this.#pieces.shift();
    if (piece !== undefined) return Promise.resolve({ value: piece, done: false });
    if (this.#isOver || this.#isCancelled) return this.#end();
    return new Promise((resolve, reject) => { this.#waiting.push({ resolve, reject, reader }); });
  }
}

/** What an iterator gives, as it is read; `ready` values are taken ahead. Cancelling leaves the iterator. */
export function toReadable<T>(iterator: AsyncIterator<T, undefined>, ready = 0): ReadableStream<T> {
  return new ReadableStream<T>({
    async pull(controller) {
      const { value, done } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await iterator.return?.(undefined);
    },
  }, { highWaterMark: ready });
}
