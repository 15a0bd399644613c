// One file being downloaded, as chunks in order. Where the server gives ranges of a file of known size, a few of them are
// under way at a time; otherwise it is one stream. It knows nothing of caches or models.

import { EdgeError } from './errors.js';
import { TransferError, request } from './http.js';
import type { Answer } from './http.js';
import { Part, Remote } from './part.js';
import type { TransferOptions } from './part.js';
import { Patience } from './retry.js';

/** How to download. */
export interface DownloadOptions extends Omit<TransferOptions, 'retries' | 'retryDelayMs' | 'stallMs'> {
  /** How often a broken transfer is tried again without much progress. */
  retries?: number;
  retryDelayMs?: number;
  stallMs?: number;
  /** Bytes of one range. */
  partBytes?: number;
  /** Ranges under way at a time; as many are held in memory at most. */
  parallel?: number;
}

/** What is known of a file before it is asked for. */
export interface KnownFile {
  bytes?: number | undefined;
  sha256?: string | undefined;
}

/** Where an earlier attempt got to. */
export interface ResumePoint {
  bytes: number;
  validator: string | null;
  total: number | null;
  /** Whether the bytes before were used already, so that starting over is no way out. */
  isUsed: boolean;
}

const DEFAULTS = { retries: 5, retryDelayMs: 500, stallMs: 30_000, partBytes: 8 << 20, parallel: 4 };
type Settled = Required<Omit<DownloadOptions, 'httpCache'>> & Pick<DownloadOptions, 'httpCache'>;

/** Something read in order. */
interface Reader {
  read(): Promise<Uint8Array | null>;
  close(): void;
}

/** A file being downloaded. Chunks come in order from `start`. */
export class Download {
  readonly url: string;
  /** The file offset of the first chunk: the resume point's, or 0 when it could not be continued there. */
  readonly start: number;
  /** The whole file's size; null while unknown. */
  readonly total: number | null;
  /** ETag or modification date, to recognize the same version later. */
  readonly validator: string | null;
  readonly #reader: Reader;
  readonly #end: (reason: unknown) => void;

  private constructor(urls: readonly string[], { answer, start, total, hasHash }: Opened, options: Settled, end: (reason: unknown) => void) {
    const remote = new Remote(urls, answer, { total, hasHash }, options);
    this.url = answer.url;
    this.start = start;
    this.total = total;
    this.validator = answer.head.validator;
    this.#end = end;
    const canSplit = answer.head.isRange && total !== null;
    this.#reader = canSplit ? new Ranges(remote, { start, end: total }, answer, options) : new Part(remote, { start, end: null }, answer, options);
  }

  /** Starts the download from the first of the `urls` that answers with the file. */
  static async open(urls: readonly string[], known: KnownFile, from: ResumePoint | null, given: DownloadOptions): Promise<Download> {
    const { signal, end } = linked(given.signal);
    const options = { ...DEFAULTS, ...given, signal };
    const faults: EdgeError[] = [];
    for (const [index, url] of urls.entries()) {
      try {
        const opened = await openFrom(url, known, from, options);
        return new Download([...urls.slice(index), ...urls.slice(0, index)], opened, options, end);
      } catch (error) {
        if (!(error instanceof EdgeError)) throw error;
        faults.push(error);
      }
    }
    end(null);
    const [first] = faults;
    if (faults.length === 1 && first) throw first;
    throw new EdgeError(first?.code ?? 'network', `no source answered: ${faults.map((fault) => fault.message).join('; ')}`, { path: urls[0] });
  }

  /** The next chunk, null after the last. A broken transfer continues where it broke off. */
  async read(): Promise<Uint8Array | null> {
    return this.#reader.read();
  }

  /** Stops the transfer; nothing needs it any more. */
  close(): void {
    this.#end(new EdgeError('closed', `the download of ${this.url} was given up`));
    this.#reader.close();
  }
}

/** A signal of one download's own, which also ends what waits for a retry. */
function linked(signal: AbortSignal): { signal: AbortSignal; end(reason: unknown): void } {
  const control = new AbortController();
  const stop = () => control.abort(signal.reason);
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  return {
    signal: control.signal,
    end(reason) {
      signal.removeEventListener('abort', stop);
      control.abort(reason);
    },
  };
}

interface Opened {
  answer: Answer;
  start: number;
  total: number | null;
  hasHash: boolean;
}

/** Asks one server until it answers. */
async function openFrom(url: string, known: KnownFile, from: ResumePoint | null, options: Settled): Promise<Opened> {
  // Offline, waiting only hides what is wrong; the one attempt may still reach a server on this machine.
  const patience = new Patience(globalThis.navigator?.onLine === false ? { ...options, retries: 0 } : options);
  let asksForRange = true;
  for (;;) {
    try {
      return await openOnce(url, known, from, asksForRange, options);
    } catch (error) {
      // Servers without CORS for the Range header refuse requests that have one.
      asksForRange = !(error instanceof TransferError && error.isRefused && asksForRange);
      await patience.after(error);
    }
  }
}

async function openOnce(url: string, known: KnownFile, from: ResumePoint | null, asksForRange: boolean, options: Settled): Promise<Opened> {
  const start = from?.bytes ?? 0;
  const hasHash = known.sha256 !== undefined;
  let answer: Answer;
  try {
    answer = await request(url, asksForRange ? { start, end: start + options.partBytes } : null, options);
  } catch (error) {
    // The file is shorter than what an earlier attempt left of it.
    if (from && error instanceof TransferError && error.code === 'integrity') return startOver(url, known, from, asksForRange, options);
    throw error;
  }
  if (answer.head.isRange && (answer.head.isEncoded || (answer.head.total === null && known.bytes === undefined))) {
    // A range of an unknown whole: only the whole will do.
    answer.close();
    answer = await request(url, null, options);
  }
  const { total } = answer.head;
  if (total !== null && known.bytes !== undefined && total !== known.bytes) {
    answer.close();
    throw new TransferError('integrity', `${url} has ${total} bytes where ${known.bytes} were expected`, url, { isFinal: true });
  }
  if (from && !isSame(from, answer, hasHash)) {
    answer.close();
    return startOver(url, known, from, asksForRange, options);
  }
  await answer.skip(start - answer.head.start);
  return { answer, start, total: total ?? known.bytes ?? null, hasHash };
}

/** Whether a server still has the version that an earlier attempt began. */
function isSame(from: ResumePoint, { head }: Answer, hasHash: boolean): boolean {
  if (from.total !== null && head.total !== null && from.total !== head.total) return false;
  // Where servers name no versions, a file that was just being read is taken to be the same, one of another day is not.
  return hasHash || (from.validator === head.validator && (from.validator !== null || from.isUsed));
}

async function startOver(url: string, known: KnownFile, from: ResumePoint, asksForRange: boolean, options: Settled): Promise<Opened> {
  if (from.isUsed) throw new TransferError('integrity', `${url} changed since it was stored`, url, { isFinal: true });
  return openOnce(url, known, null, asksForRange, options);
}

/** A file as consecutive ranges, a few of them under way. */
class Ranges implements Reader {
  readonly #remote: Remote;
  readonly #options: Settled;
  readonly #end: number;
  /** Where the next range begins. */
  #next: number;
  #underWay: Prefetched[] = [];

  constructor(remote: Remote, { start, end }: { start: number; end: number }, first: Answer, options: Settled) {
    this.#remote = remote;
    this.#options = options;
    this.#end = end;
    this.#next = start;
    this.#begin(first);
  }

  async read(): Promise<Uint8Array | null> {
    for (;;) {
      while (this.#underWay.length < this.#options.parallel && this.#next < this.#end) this.#begin(null);
      const [first] = this.#underWay;
      if (!first) return null;
      const chunk = await first.read();
      if (chunk) return chunk;
      this.#underWay.shift();
    }
  }

  close(): void {
    for (const range of this.#underWay) range.close();
    this.#next = this.#end;
  }

  #begin(answer: Answer | null): void {
    const start = this.#next;
    this.#next = Math.min(start + this.#options.partBytes, this.#end);
    this.#underWay.push(new Prefetched(new Part(this.#remote, { start, end: this.#next }, answer, this.#options)));
  }
}

/** A part that is read ahead of its reader. */
class Prefetched implements Reader {
  readonly #part: Part;
  #chunks: Uint8Array[] = [];
  #end: { error?: unknown } | null = null;
  #wake = () => {};

  constructor(part: Part) {
    this.#part = part;
    void this.#pump();
  }

  async read(): Promise<Uint8Array | null> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk) return chunk;
      if (this.#end && 'error' in this.#end) throw this.#end.error;
      if (this.#end) return null;
      await new Promise<void>((resolve) => { this.#wake = resolve; });
    }
  }

  close(): void {
    this.#part.close();
  }

  async #pump(): Promise<void> {
    try {
      for (let chunk = await this.#part.read(); chunk !== null; chunk = await this.#part.read()) {
        this.#chunks.push(chunk);
        this.#wake();
      }
      this.#end = {};
    } catch (error) {
      this.#end = { error };
    }
    this.#wake();
  }
}
