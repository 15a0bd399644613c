// The engine's end of what the caller's side does for it (resources-caller.ts): it looks like an ordinary fetch, an ordinary
// stream and a look-up.

import { EdgeError, toEdgeError } from './errors.js';
import type { ErrorData } from './errors.js';
import type { HubModel } from './model-names.js';
import type { FromHost, PlacedFile, ToHost } from './protocol.js';

interface Waiting<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** What the caller's side does for one engine. */
export class HostResources {
  readonly #post: (message: FromHost) => void;
  readonly #heads = new Map<number, Waiting<Response>>();
  readonly #findings = new Map<number, Waiting<PlacedFile[]>>();
  readonly #chunks = new Map<number, Waiting<Uint8Array | null>>();
  #requests = 0;

  constructor(post: (message: FromHost) => void) {
    this.#post = post;
  }

  /** A fetch that the caller's side does. */
  readonly fetch = ((input: string | URL | Request, init?: RequestInit) => {
    const url = input instanceof Request ? input.url : String(input);
    return this.#ask(this.#heads, init?.signal, (resource) => ({ type: 'fetch', resource, url, headers: [...new Headers(init?.headers)] }));
  }) as typeof fetch;

  /** The files of a model on the hub, which the caller's side looks up. */
  find(model: HubModel, headers: [string, string][], signal: AbortSignal): Promise<PlacedFile[]> {
    return this.#ask(this.#findings, signal, (resource) => ({ type: 'find', resource, model, headers }));
  }

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

  found(resource: number, files: PlacedFile[]): void {
    this.#findings.get(resource)?.resolve(files);
    this.#findings.delete(resource);
  }

  chunk(resource: number, bytes: Uint8Array | null): void {
    this.#chunks.get(resource)?.resolve(bytes);
    this.#chunks.delete(resource);
  }

  failed(resource: number, error: ErrorData): void {
    this.#reject(resource, toEdgeError(error));
  }

  #ask<T>(waiting: Map<number, Waiting<T>>, signal: AbortSignal | null | undefined, request: (resource: number) => FromHost): Promise<T> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    this.#requests += 1;
    const resource = this.#requests;
    const answer = new Promise<T>((resolve, reject) => waiting.set(resource, { resolve, reject }));
    signal?.addEventListener('abort', () => this.#drop(resource, signal.reason), { once: true });
    this.#post(request(resource));
    return answer;
  }

  #drop(resource: number, reason: unknown): void {
    this.#post({ type: 'drop', resource });
    this.#reject(resource, reason ?? new EdgeError('network', 'the stream was cancelled'));
  }

  #reject(resource: number, error: unknown): void {
    for (const waiting of [this.#heads, this.#findings, this.#chunks]) {
      waiting.get(resource)?.reject(error);
      waiting.delete(resource);
    }
  }
}
