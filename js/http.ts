// One HTTP request for a file or a range of it: the answer is checked as far as its head allows, and its body is read with
// a limit on silence. It knows nothing of retries, caches or models.

import { EdgeError } from './errors.js';
import type { EdgeErrorCode } from './errors.js';

/** What every request of a transfer uses. */
export interface RequestOptions {
  fetch: typeof fetch;
  headers: [string, string][];
  signal: AbortSignal;
  /** How long no byte may come. */
  stallMs: number;
  /** How the browser's own cache takes part. */
  httpCache?: RequestCache;
}

/** Bytes of a file; `end` is excluded, null for the file's end. */
export interface Span {
  start: number;
  end: number | null;
}

/** What else is known of a failed transfer. */
export interface Failure {
  /** Whether trying again cannot help. */
  isFinal?: boolean;
  /** Whether the request got no answer at all. */
  isRefused?: boolean;
  /** When the server wants to be asked again. */
  retryAfterMs?: number | null;
  cause?: unknown;
}

/** A failed transfer. */
export class TransferError extends EdgeError {
  readonly isFinal: boolean;
  readonly isRefused: boolean;
  readonly retryAfterMs: number | null;

  constructor(code: EdgeErrorCode, message: string, url: string, { isFinal = false, isRefused = false, retryAfterMs = null, cause }: Failure = {}) {
    super(code, message, { path: url, cause });
    this.isFinal = isFinal;
    this.isRefused = isRefused;
    this.retryAfterMs = retryAfterMs;
  }
}

/** What an answer's head says. */
interface Head {
  /** Whether it holds the range that was asked for rather than the whole file. */
  isRange: boolean;
  /** Whether the body is compressed on the way, so that its size says nothing. */
  isEncoded: boolean;
  /** The file offsets of the body; `end` is null while unknown. */
  start: number;
  end: number | null;
  /** The whole file's size; null while unknown. */
  total: number | null;
  /** ETag or modification date, to recognize the same version later. */
  validator: string | null;
}

/** An answer whose body can be read once. */
export class Answer {
  readonly url: string;
  readonly head: Head;
  readonly #control: AbortController;
  readonly #options: RequestOptions;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | null;
  #kept: Uint8Array | null = null;
  #isDone = false;

  constructor(url: string, head: Head, body: ReadableStream<Uint8Array> | null, control: AbortController, options: RequestOptions) {
    this.url = url;
    this.head = head;
    this.#control = control;
    this.#options = options;
    this.#reader = body?.getReader() ?? null;
  }

  /** The next bytes, null after the last. */
  async read(): Promise<Uint8Array | null> {
    const kept = this.#kept;
    this.#kept = null;
    if (kept) return kept;
    if (!this.#reader) return null;
    const { value, done } = await limited(this.#reader.read(), this.url, this.#options);
    this.#isDone = done;
    return done ? null : value;
  }

  /** Passes over bytes, for servers that only send whole files. */
  async skip(bytes: number): Promise<void> {
    for (let left = bytes; left > 0;) {
      const chunk = await this.read();
      if (chunk === null) throw new TransferError('network', `${this.url} ended before byte ${this.head.start + bytes}`, this.url);
      if (chunk.length > left) this.#kept = chunk.subarray(left);
      left -= chunk.length;
    }
  }

  /** Stops the transfer; nothing needs it any more. One that came to its end is left alone: browsers call an abort a failure. */
  close(): void {
    if (this.#isDone) return;
    this.#control.abort();
    void this.#reader?.cancel().catch(() => {});
  }
}

/** Asks for a span of a file, or without one for the file. Fails with a `TransferError`, or with the signal's reason. */
export async function request(url: string, span: Span | null, options: RequestOptions): Promise<Answer> {
  const { signal, httpCache } = options;
  signal.throwIfAborted();
  const control = new AbortController();
  const headers = new Headers(options.headers);
  if (span) headers.set('range', `bytes=${span.start}-${span.end === null ? '' : span.end - 1}`);
  try {
    const init: RequestInit = { headers, signal: control.signal, ...(httpCache ? { cache: httpCache } : {}) };
    const response = await limited(options.fetch(url, init), url, options);
    const head = checkedHead(url, response, span);
    return new Answer(url, head, response.status === 416 ? null : response.body, control, options);
  } catch (error) {
    control.abort();
    throw error;
  }
}

function checkedHead(url: string, { status, ok, headers }: Response, span: Span | null): Head {
  const start = span?.start ?? 0;
  const fault = (code: EdgeErrorCode, what: string, isFinal: boolean) =>
    new TransferError(code, `${url} ${what}`, url, { isFinal, retryAfterMs: retryAfter(headers.get('retry-after')) });
  const range = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(headers.get('content-range') ?? '');
  const said = wholeNumber(range?.[3] ?? null);
  const validator = headers.get('etag') ?? headers.get('last-modified');
  // An empty file has no first byte to ask for.
  if (status === 416 && start === 0 && !said) return { isRange: false, isEncoded: false, start: 0, end: 0, total: 0, validator };
  if (status === 416 && (said === null || said <= start)) throw fault('integrity', `has no bytes from ${start} on`, true);
  if (status === 404 || status === 410) throw fault('not-found', `does not exist (HTTP status ${status})`, true);
  if (!ok) throw fault('network', `answered with HTTP status ${status}`, status >= 400 && status < 500 && ![408, 416, 425, 429].includes(status));
  const type = headers.get('content-type') ?? '';
  // In the middle of a file a web page is not what the address stands for: a login page of the network, for instance.
  if (/^text\/html\b/i.test(type)) throw fault(start > 0 ? 'network' : 'malformed-file', `answered with a web page (${type}) where a model file was expected`, start === 0);
  const isEncoded = !/^(identity)?$/i.test(headers.get('content-encoding') ?? '');
  const length = isEncoded ? null : wholeNumber(headers.get('content-length'));
  if (status !== 206 || !span) return { isRange: false, isEncoded, start: 0, end: length, total: length, validator };
  // Servers need not let pages see where a range lies; then it is taken to be the one that was asked for.
  const first = wholeNumber(range?.[1] ?? null) ?? start;
  if (first !== start) throw fault('network', `answered with bytes from ${first} on where ${start} was asked for`, false);
  const last = wholeNumber(range?.[2] ?? null);
  const end = last === null ? (length === null ? null : start + length) : last + 1;
  return { isRange: true, isEncoded, start, end, total: said, validator };
}

/** A promise with a limit on silence that also ends with the signal. */
async function limited<T>(promise: Promise<T>, url: string, { stallMs, signal }: RequestOptions): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stop = () => {};
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TransferError('network', `${url} sent nothing for ${stallMs / 1000} s`, url)), stallMs);
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([promise, end]);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw error instanceof TransferError ? error : refused(url, error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    promise.catch(() => {});
  }
}

function refused(url: string, error: unknown): TransferError {
  const detail = error instanceof Error ? (error.cause instanceof Error ? error.cause.message : error.message) : String(error);
  const hint = '(offline, a wrong address, a broken connection, or a server without CORS headers for this page)';
  return new TransferError('network', `${url} could not be fetched: ${detail} ${hint}`, url, { isRefused: true, cause: error });
}

/** Milliseconds of a Retry-After header: seconds or a date. */
function retryAfter(text: string | null): number | null {
  if (text === null) return null;
  const seconds = wholeNumber(text.trim());
  if (seconds !== null) return seconds * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - Date.now());
}

function wholeNumber(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
