// One HTTP download as a stream of chunks: tries mirrors, retries, continues after a break where the server can, and tells
// a model file from the error pages that servers send with status 200. It knows nothing of caches or models.

import { EdgeError } from './errors.js';

/** How to download. */
export interface DownloadOptions {
  fetch: typeof fetch;
  headers: [string, string][];
  signal: AbortSignal;
  /** How often a broken transfer is tried again without a byte of progress. */
  retries?: number;
  /** The wait before the first retry; it doubles at each. */
  retryDelayMs?: number;
  /** How long no byte may come. */
  stallMs?: number;
}

/** Where an earlier attempt got to. */
export interface ResumePoint {
  bytes: number;
  validator: string | null;
}

interface Answer {
  response: Response;
  /** The file offset at which the body begins; -1 when the server cannot continue where it was asked to. */
  start: number;
  total: number | null;
  validator: string | null;
  control: AbortController;
}

const DEFAULTS = { retries: 3, retryDelayMs: 500, stallMs: 30_000 };

/** A file being downloaded. Chunks come in order from `start`. */
export class Download {
  readonly url: string;
  /** The file offset of the first chunk: the resume point's, or 0 when the server could not continue there. */
  readonly start: number;
  /** The whole file's size; null while unknown. */
  readonly total: number | null;
  /** ETag or modification date, to recognize the same version later. */
  readonly validator: string | null;
  readonly #options: Required<DownloadOptions>;
  #answer: Answer;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  #position: number;

  private constructor(url: string, answer: Answer, options: Required<DownloadOptions>) {
    this.url = url;
    this.start = answer.start;
    this.total = answer.total;
    this.validator = answer.validator;
    this.#answer = answer;
    this.#options = options;
    this.#position = answer.start;
  }

  /** Starts the download from the first of the `urls` that answers with a file. */
  static async open(urls: readonly string[], from: ResumePoint | null, given: DownloadOptions): Promise<Download> {
    const options = { ...DEFAULTS, ...given };
    const faults: EdgeError[] = [];
    for (const url of urls) {
      try {
        return new Download(url, await withRetries(options, () => requestFrom(url, from, options)), options);
      } catch (error) {
        if (!(error instanceof EdgeError)) throw error;
        faults.push(error);
      }
    }
    const [first] = faults;
    if (faults.length === 1 && first) throw first;
    throw new EdgeError(first?.code ?? 'network', `no source answered: ${faults.map((fault) => fault.message).join('; ')}`, { path: urls[0] });
  }

  /** The next chunk, null after the last. A broken transfer continues where it broke off. */
  async read(): Promise<Uint8Array | null> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        const chunk = await this.#readOnce();
        if (chunk === null) return null;
        this.#position += chunk.length;
        return chunk;
      } catch (error) {
        await this.close();
        if (attempt >= this.#options.retries || isFinal(error, this.#options.signal)) throw error;
        await pause(this.#options.retryDelayMs * 2 ** attempt, this.#options.signal);
        await this.#reconnect().catch((failure: unknown) => { if (isFinal(failure, this.#options.signal)) throw failure; });
      }
    }
  }

  /** Stops the transfer; nothing needs it any more. */
  async close(): Promise<void> {
    const reader = this.#reader;
    this.#reader = null;
    this.#answer.control.abort();
    await reader?.cancel().catch(() => {});
  }

  async #readOnce(): Promise<Uint8Array | null> {
    const { signal, stallMs } = this.#options;
    signal.throwIfAborted();
    if (this.#answer.control.signal.aborted) throw new EdgeError('network', `the connection to ${this.url} was lost`, { path: this.url });
    this.#reader ??= this.#answer.response.body?.getReader() ?? null;
    const read = this.#reader?.read() ?? Promise.resolve({ value: undefined, done: true });
    const { value, done } = await limited(read, stallMs, signal, this.url);
    if (!done) return value ?? new Uint8Array();
    if (this.total !== null && this.#position < this.total) {
      throw new EdgeError('network', `the download of ${this.url} ended early: ${this.#position} of ${this.total} bytes`, { path: this.url });
    }
    return null;
  }

  /** A new connection from where the last one broke; the file must be the same one. */
  async #reconnect(): Promise<void> {
    const answer = await request(this.url, { bytes: this.#position, validator: this.validator }, this.#options);
    if (answer.start === this.#position) {
      this.#answer = answer;
      return;
    }
    const same = answer.validator === this.validator && answer.total === this.total;
    if (!same) {
      answer.control.abort();
      throw new EdgeError('integrity', `${this.url} changed while it was downloaded`, { path: this.url });
    }
    this.#answer = answer;
    await this.#skip(this.#position);
  }

  /** Passes over bytes that came before, for servers that only send whole files. */
  async #skip(bytes: number): Promise<void> {
    const { stallMs, signal } = this.#options;
    const reader = this.#answer.response.body?.getReader();
    let left = bytes;
    while (reader && left > 0) {
      const { value, done } = await limited(reader.read(), stallMs, signal, this.url);
      if (done) break;
      left -= value.length;
      if (left >= 0) continue;
      // The last chunk holds bytes that are new: they come first from here on.
      this.#reader = prepended(value.subarray(value.length + left), reader);
      return;
    }
    this.#reader = reader ?? null;
  }
}

/** One request, whose answer is checked as far as its head allows. */
async function request(url: string, from: ResumePoint | null, options: Required<DownloadOptions>): Promise<Answer> {
  const { signal, stallMs } = options;
  const control = new AbortController();
  const headers = new Headers(options.headers);
  if (from && from.bytes > 0) headers.set('range', `bytes=${from.bytes}-`);
  const stop = () => control.abort(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener('abort', stop);
  try {
    const response = await limited(options.fetch(url, { headers, signal: control.signal }), stallMs, signal, url);
    return checked(url, response, from, control);
  } catch (error) {
    control.abort();
    if (signal.aborted) throw signal.reason;
    throw networkError(url, error);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function checked(url: string, response: Response, from: ResumePoint | null, control: AbortController): Answer {
  const { status, headers } = response;
  if (status === 416 && from) return { response: new Response(null), start: -1, total: null, validator: null, control };
  if (status === 404 || status === 410) throw new EdgeError('not-found', `${url} does not exist (HTTP status ${status})`, { path: url });
  if (!response.ok) throw new EdgeError('network', `${url} answered with HTTP status ${status}`, { path: url });
  const type = headers.get('content-type') ?? '';
  if (/^text\/html\b/i.test(type)) throw new EdgeError('malformed-file', `${url} answered with a web page (${type}) where a model file was expected`, { path: url });
  const isEncoded = !/^(identity)?$/i.test(headers.get('content-encoding') ?? '');
  const length = isEncoded ? null : wholeNumber(headers.get('content-length'));
  const validator = headers.get('etag') ?? headers.get('last-modified');
  if (status !== 206) return { response, start: 0, total: length, validator, control };
  const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get('content-range') ?? '');
  const start = range ? Number(range[1]) : (from?.bytes ?? 0);
  const total = range?.[2] && range[2] !== '*' ? Number(range[2]) : length === null ? null : start + length;
  if (start !== (from?.bytes ?? 0)) throw new EdgeError('network', `${url} answered with bytes from ${start} on where ${from?.bytes ?? 0} was asked for`, { path: url });
  if (from?.validator && validator && from.validator !== validator) return { response, start: -1, total, validator, control };
  return { response, start, total, validator, control };
}

/** A request that continues at `from` where the server can do that for the same version of the file, else starts over. */
async function requestFrom(url: string, from: ResumePoint | null, options: Required<DownloadOptions>): Promise<Answer> {
  const answer = await request(url, from, options);
  if (answer.start >= 0) return answer;
  answer.control.abort();
  return request(url, null, options);
}

async function withRetries(options: Required<DownloadOptions>, connect: () => Promise<Answer>): Promise<Answer> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await connect();
    } catch (error) {
      if (attempt >= options.retries || isFinal(error, options.signal)) throw error;
      await pause(options.retryDelayMs * 2 ** attempt, options.signal);
    }
  }
}

/** Whether trying again cannot help. */
function isFinal(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted || !(error instanceof EdgeError)) return true;
  if (error.code !== 'network') return true;
  return /HTTP status 4(?!08|29)\d\d/.test(error.message);
}

function networkError(url: string, error: unknown): EdgeError {
  if (error instanceof EdgeError) return error;
  const detail = error instanceof Error ? (error.cause instanceof Error ? error.cause.message : error.message) : String(error);
  return new EdgeError('network', `${url} could not be fetched: ${detail} (offline, a wrong address, or a server without CORS headers for this page)`, { path: url, cause: error });
}

/** A promise with a time limit that also ends with the signal. */
async function limited<T>(promise: Promise<T>, ms: number, signal: AbortSignal, url: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stop = () => {};
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new EdgeError('network', `${url} sent nothing for ${ms / 1000} s`, { path: url })), ms);
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([promise, end]);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw networkError(url, error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    promise.catch(() => {});
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal.removeEventListener('abort', stop); resolve(); }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}

function wholeNumber(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

function prepended(first: Uint8Array, rest: ReadableStreamDefaultReader<Uint8Array>): ReadableStreamDefaultReader<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) { controller.enqueue(first); },
    async pull(controller) {
      const { value, done } = await rest.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => rest.cancel(reason),
  }).getReader();
}

/** Says what is wrong with a file whose beginning is not that of a model; null when it may be one. */
export function faultOfBeginning(bytes: Uint8Array, name: string): EdgeError | null {
  const fault = (what: string) => new EdgeError('malformed-file', `${name} is ${what}, not a model file`, { path: name });
  if (bytes.length === 0) return fault('empty');
  const text = new TextDecoder('latin1').decode(bytes.subarray(0, 64)).trimStart();
  if (text.startsWith('version https://git-lfs')) return fault('a Git LFS pointer (the file itself was not fetched)');
  if (/^<(!doctype|html|\?xml|head|body)/i.test(text)) return fault('a web page');
  if (/^[{[]/.test(text)) return fault('a JSON text');
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return fault('gzip-compressed');
  return null;
}
