// Things that stay on the caller's side while the engine's side uses them: the caller's own fetch and its streams. Both
// ends are here: the caller's end reads, the engine's end looks like an ordinary fetch and an ordinary stream.

import { EdgeError } from './errors.js';
import type { FromHost, ToHost } from './protocol.js';

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** The caller's end. */
export class CallerResources {
  readonly #post: (message: ToHost) => void;
  readonly #fetch: typeof fetch | null;
  readonly #readers = new Map<number, Reader>();
  readonly #requests = new Map<number, AbortController>();
  #streams = 0;

  constructor(post: (message: ToHost) => void, ownFetch: typeof fetch | null) {
    this.#post = post;
    this.#fetch = ownFetch;
  }

  /** Keeps a stream for the engine's side. Their numbers are negative, those of requests positive. */
  keep(stream: ReadableStream<Uint8Array>): number {
    this.#streams -= 1;
    this.#readers.set(this.#streams, stream.getReader());
    return this.#streams;
  }

  async fetch(resource: number, url: string, headers: [string, string][]): Promise<void> {
    const control = new AbortController();
    this.#requests.set(resource, control);
    try {
      const response = await (this.#fetch ?? fetch)(url, { headers, signal: control.signal });
      if (response.body) this.#readers.set(resource, response.body.getReader());
      this.#post({ type: 'fetched', resource, url: response.url, status: response.status, headers: [...response.headers] });
    } catch (error) {
      this.#post({ type: 'failed', resource, message: messageOf(error) });
    }
  }

  async pull(resource: number): Promise<void> {
    try {
      const { value } = (await this.#readers.get(resource)?.read()) ?? {};
      this.#post({ type: 'chunk', resource, bytes: value ?? null });
    } catch (error) {
      this.#post({ type: 'failed', resource, message: messageOf(error) });
    }
  }

  drop(resource: number): void {
    this.#requests.get(resource)?.abort();
    void this.#readers.get(resource)?.cancel().catch(() => {});
    this.#requests.delete(resource);
    this.#readers.delete(resource);
  }

  dropAll(): void {
    for (const resource of [...this.#readers.keys(), ...this.#requests.keys()]) this.drop(resource);
  }
}

interface Waiting<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** The engine's end. */
export class HostResources {
  readonly #post: (message: FromHost) => void;
  readonly #heads = new Map<number, Waiting<Response>>();
  readonly #chunks = new Map<number, Waiting<Uint8Array | null>>();
  #requests = 0;

  constructor(post: (message: FromHost) => void) {
    this.#post = post;
  }

  /** A fetch that the caller's side does. */
  readonly fetch = ((input: string | URL | Request, init?: RequestInit) => {
    this.#requests += 1;
    const resource = this.#requests;
    const head = new Promise<Response>((resolve, reject) => this.#heads.set(resource, { resolve, reject }));
    init?.signal?.addEventListener('abort', () => this.#drop(resource, init.signal?.reason), { once: true });
    const url = input instanceof Request ? input.url : String(input);
    this.#post({ type: 'fetch', resource, url, headers: [...new Headers(init?.headers)] });
    return head;
  }) as typeof fetch;

  /** The stream with this number. */
  readonly stream = (resource: number): ReadableStream<Uint8Array> => {
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const bytes = await new Promise<Uint8Array | null>((resolve, reject) => {
          this.#chunks.set(resource, { resolve, reject });
          this.#post({ type: 'pull', resource });
        });
        if (bytes === null) controller.close();
        else controller.enqueue(bytes);
      },
      cancel: () => this.#drop(resource, null),
    }, { highWaterMark: 0 });
  };

  fetched({ resource, status, headers }: Extract<ToHost, { type: 'fetched' }>): void {
    const head = this.#heads.get(resource);
    this.#heads.delete(resource);
    // A Response cannot have these with a body, nor statuses below 200.
    const hasBody = status >= 200 && ![204, 205, 304].includes(status);
    head?.resolve(new Response(hasBody ? this.stream(resource) : null, { status: Math.max(status, 200), headers }));
  }

  chunk(resource: number, bytes: Uint8Array | null): void {
    this.#chunks.get(resource)?.resolve(bytes);
    this.#chunks.delete(resource);
  }

  failed(resource: number, message: string): void {
    this.#reject(resource, new EdgeError('network', message));
  }

  #drop(resource: number, reason: unknown): void {
    this.#post({ type: 'drop', resource });
    this.#reject(resource, reason ?? new EdgeError('network', 'the stream was cancelled'));
  }

  #reject(resource: number, error: unknown): void {
    for (const waiting of [this.#heads, this.#chunks]) {
      waiting.get(resource)?.reject(error);
      waiting.delete(resource);
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
