// What the caller's side does for the engine's: it fetches with the caller's own fetch, reads the caller's streams, and
// looks models up on the hub. The engine's end of this is resources-host.ts.

import { toErrorData } from './errors.js';
import type { ErrorData } from './errors.js';
import type { HubModel } from './model-names.js';
import { importFault } from './modules.js';
import type { ToHost } from './protocol.js';

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** The things on the caller's side, by the numbers that the engine's side asks for them with. */
export class CallerResources {
  readonly #post: (message: ToHost) => void;
  readonly #fetch: typeof fetch;
  readonly #readers = new Map<number, Reader>();
  readonly #requests = new Map<number, AbortController>();
  #streams = 0;

  constructor(post: (message: ToHost) => void, ownFetch: typeof fetch | null) {
    this.#post = post;
    // Browsers' own wants to be called as nobody's method.
    this.#fetch = (input, init) => (ownFetch ?? fetch)(input, init);
  }

  /** Keeps a stream for the engine's side. Their numbers are negative, those of requests positive. */
  keep(stream: ReadableStream<Uint8Array>): number {
    this.#streams -= 1;
    this.#readers.set(this.#streams, stream.getReader());
    return this.#streams;
  }

  /** Makes a request. */
  async fetch(resource: number, url: string, headers: [string, string][]): Promise<void> {
    await this.#ask(resource, networkFault, async (signal) => {
      const response = await this.#fetch(url, { headers, signal });
      if (response.body) this.#readers.set(resource, response.body.getReader());
      return { type: 'fetched', resource, url: response.url, status: response.status, headers: [...response.headers] };
    });
  }

  /** Looks a model up on the hub. Most pages name none that is there: the code is loaded by the first that does. */
  async find(resource: number, model: HubModel, headers: [string, string][]): Promise<void> {
    await this.#ask(resource, toErrorData, async (signal) => {
      const { resolveHub } = await import('./hub.js').catch((error: unknown) => { throw importFault(error); });
      return { type: 'found', resource, files: await resolveHub(model, { fetch: this.#fetch, headers, signal }) };
    });
  }

  async pull(resource: number): Promise<void> {
    try {
      const { value } = (await this.#readers.get(resource)?.read()) ?? {};
      this.#post({ type: 'chunk', resource, bytes: value ?? null });
    } catch (error) {
      this.#post({ type: 'failed', resource, error: networkFault(error) });
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

  /** Does something that `drop` can stop, and posts what came of it. */
  async #ask(resource: number, faultOf: (error: unknown) => ErrorData, work: (signal: AbortSignal) => Promise<ToHost>): Promise<void> {
    const control = new AbortController();
    this.#requests.set(resource, control);
    try {
      this.#post(await work(control.signal));
    } catch (error) {
      this.#post({ type: 'failed', resource, error: faultOf(error) });
    }
  }
}

function networkFault(error: unknown): ErrorData {
  return { code: 'network', message: error instanceof Error ? error.message : String(error) };
}
