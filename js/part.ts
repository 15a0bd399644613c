// A part of one version of a file on one or more servers, read in order; a broken transfer goes on where it broke off, on
// the next server where there are several.

import { EdgeError } from './errors.js';
import { TransferError, request } from './http.js';
import type { Answer, RequestOptions, Span } from './http.js';
import { Patience } from './retry.js';
import type { RetryOptions } from './retry.js';

/** How parts are transferred. */
export type TransferOptions = RequestOptions & RetryOptions;

/** So many bytes without a failure make up for the failures before them. */
const PROGRESS_BYTES = 64 << 10;

/** One version of a file, wherever it is. */
export class Remote {
  /** The file's size; null while unknown. */
  readonly total: number | null;
  readonly validator: string | null;
  readonly #urls: readonly string[];
  /** Whether the bytes are checked against a known hash, so that servers may name their versions as they like. */
  readonly #hasHash: boolean;
  /** Whether servers are asked for ranges: not where they compress what they send. */
  readonly #takesRanges: boolean;
  readonly #options: RequestOptions;
  #turn = 0;

  constructor(urls: readonly string[], { head }: Answer, known: { total: number | null; hasHash: boolean }, options: RequestOptions) {
    // Without a hash nothing says that another server has the same version.
    this.#urls = known.hasHash ? urls : urls.slice(0, 1);
    this.total = known.total;
    this.validator = head.validator;
    this.#hasHash = known.hasHash;
    this.#takesRanges = !head.isEncoded;
    this.#options = options;
  }

  /** The server whose turn it is. */
  get url(): string {
    return this.#urls[this.#turn % this.#urls.length] ?? '';
  }

  /** Gives the next server its turn, if it is that of the one that failed: several parts may notice the same failure. */
  passOver(url: string): void {
    if (url === this.url) this.#turn += 1;
  }

  /** Asks for a span. Fails with 'integrity' when the file is another one by now. */
  async request(span: Span): Promise<Answer> {
    const answer = await request(this.url, this.#takesRanges ? span : null, this.#options);
    const { head } = answer;
    const isOther = !this.#hasHash && this.validator !== null && head.validator !== null && this.validator !== head.validator;
    if (isOther || (this.total !== null && head.total !== null && this.total !== head.total)) {
      answer.close();
      throw new TransferError('integrity', `${this.url} changed while it was downloaded`, this.url, { isFinal: true });
    }
    return answer;
  }
}

/** A part being read. */
export class Part {
  readonly #remote: Remote;
  /** Excluded; null for the file's end. */
  readonly #end: number | null;
  readonly #patience: Patience;
  #answer: Answer | null;
  #position: number;
  #sinceFailure = 0;

  /** `answer`: one that holds the part's beginning already. */
  constructor(remote: Remote, { start, end }: Span, answer: Answer | null, options: RetryOptions) {
    this.#remote = remote;
    this.#position = start;
    this.#end = end;
    this.#answer = answer;
    this.#patience = new Patience(options);
  }

  /** The next bytes, null after the last. */
  async read(): Promise<Uint8Array | null> {
    for (;;) {
      const { url } = this.#remote;
      try {
        return await this.#readOnce();
      } catch (error) {
        const failed = this.#answer?.url ?? url;
        this.close();
        this.#remote.passOver(failed);
        if (this.#sinceFailure >= PROGRESS_BYTES) this.#patience.reset();
        this.#sinceFailure = 0;
        await this.#patience.after(error);
      }
    }
  }

  /** Stops the transfer. */
  close(): void {
    this.#answer?.close();
    this.#answer = null;
  }

  async #readOnce(): Promise<Uint8Array | null> {
    while (this.#end === null || this.#position < this.#end) {
      const answer = this.#answer ?? (await this.#connect());
      const chunk = await answer.read();
      if (chunk !== null) return this.#take(chunk);
      if (this.#end === null && this.#remote.total === null) return null;
      const end = this.#end ?? this.#remote.total ?? 0;
      if (this.#position >= end) return null;
      // Some servers give less than was asked for: that is no failure, as long as it is something.
      if (answer.head.end !== this.#position || answer.head.start === this.#position) {
        const { url } = this.#remote;
        throw new TransferError('network', `the download of ${url} ended early: ${this.#position} of ${this.#remote.total ?? end} bytes`, url);
      }
      this.close();
    }
    // Nothing follows; reading that makes the transfer complete, where closing it here would call it off.
    if (this.#answer?.head.end === this.#position) await this.#answer.read();
    this.close();
    return null;
  }

  async #connect(): Promise<Answer> {
    const answer = await this.#remote.request({ start: this.#position, end: this.#end });
    this.#answer = answer;
    await answer.skip(this.#position - answer.head.start);
    return answer;
  }

  #take(chunk: Uint8Array): Uint8Array {
    const { total, url } = this.#remote;
    if (this.#end === null && total !== null && this.#position + chunk.length > total) {
      throw new EdgeError('integrity', `${url} has more than the ${total} bytes that were expected`, { path: url });
    }
    const bytes = this.#end === null ? chunk : chunk.subarray(0, this.#end - this.#position);
    this.#position += bytes.length;
    this.#sinceFailure += bytes.length;
    return bytes;
  }
}
