// A conversation that remembers its turns. It keeps messages, not tokens: the engine recognizes the common beginning of
// successive prompts by itself and runs only what is new.

import { EdgeError } from './errors.js';
import { plainMessages } from './options.js';
import { TokenStreamSource } from './stream.js';
import type { ChatMessage, ChatOptions, Diagnostics, EdgeSession, GenerateResult, SessionOptions, TokenStream } from './types.js';

/** What a session needs of its engine. */
export interface SessionEngine {
  chat(messages: readonly ChatMessage[], options?: ChatOptions): TokenStream;
  readonly diagnostics: Diagnostics;
  countTokens(messages: readonly ChatMessage[]): Promise<number>;
}

type Input = string | readonly ChatMessage[];

/** The session class behind `EdgeSession`. */
export class Session extends EventTarget implements EdgeSession {
  readonly #engine: SessionEngine;
  readonly #defaults: ChatOptions;
  readonly #overflow: NonNullable<SessionOptions['overflow']>;
  /** The first turns that are never forgotten. */
  #kept: number;
  #turns: ChatMessage[];
  #usage = 0;
  #isDestroyed = false;
  /** The answer being computed. */
  #answering: TokenStream | null = null;
  /** The last call: the next one waits for it, since it continues from its turns. */
  #last: Promise<unknown> = Promise.resolve();
  #listener: ((event: Event) => unknown) | null = null;

  constructor(engine: SessionEngine, options: SessionOptions) {
    super();
    const { initialPrompts = [], overflow = 'error', ...defaults } = options;
    this.#engine = engine;
    this.#defaults = defaults;
    this.#overflow = overflow;
    this.#turns = [...initialPrompts];
    this.#kept = initialPrompts.length;
  }

  get contextUsage(): number {
    return this.#usage;
  }

  get contextWindow(): number {
    return this.#engine.diagnostics.contextTokens;
  }

  get oncontextoverflow(): ((event: Event) => unknown) | null {
    return this.#listener;
  }

  set oncontextoverflow(listener: ((event: Event) => unknown) | null) {
    if (this.#listener) this.removeEventListener('contextoverflow', this.#listener);
    this.#listener = typeof listener === 'function' ? listener : null;
    if (this.#listener) this.addEventListener('contextoverflow', this.#listener);
  }

  async prompt(input: Input, options: ChatOptions = {}): Promise<string> {
    return (await this.promptStreaming(input, options).result).text;
  }

  promptStreaming(input: Input, options: ChatOptions = {}): TokenStream {
    const control: { inner: TokenStream | null; isCancelled: boolean } = { inner: null, isCancelled: false };
    const source = new TokenStreamSource(() => {
      control.isCancelled = true;
      control.inner?.cancel();
    });
    const given = options.signal ?? this.#defaults.signal;
    // The engine rejects what is no signal.
    const signal = given instanceof AbortSignal ? given : undefined;
    // The answer may have to wait for earlier calls; whoever leaves does not.
    const onAbort = () => source.fail(signal?.reason, true);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
    const run = this.#inTurn(async () => {
      signal?.throwIfAborted();
      const added = turnsOf(input);
      await this.#makeRoom(added);
      signal?.throwIfAborted();
      this.#checkAlive();
      const inner = this.#engine.chat([...this.#turns, ...added], { ...this.#defaults, ...options });
      control.inner = inner;
      this.#answering = inner;
      try {
        // The reader left while earlier calls were running.
        if (control.isCancelled) inner.cancel();
        else for await (const piece of inner) source.push(piece);
        const result = await inner.result;
        this.#remember(added, `${options.prefill ?? ''}${result.text}`, result);
        return result;
      } finally {
        this.#answering = null;
      }
    });
    run
      .then((result) => source.finish(result), (error: unknown) => source.fail(error, signal?.aborted === true && error === signal.reason))
      .finally(() => signal?.removeEventListener('abort', onAbort));
    return source.stream;
  }

  async append(input: Input, options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#inTurn(async () => {
      const added = turnsOf(input);
      await this.#makeRoom(added);
      options.signal?.throwIfAborted();
      this.#turns.push(...added);
      await this.measure();
    });
  }

  async measureContextUsage(input: Input): Promise<number> {
    const added = turnsOf(input);
    const before = this.#turns.length === 0 ? 0 : await this.#engine.countTokens(this.#turns);
    return (await this.#engine.countTokens([...this.#turns, ...added])) - before;
  }

  async clone(options: { signal?: AbortSignal } = {}): Promise<EdgeSession> {
    return this.#inTurn(async () => {
      options.signal?.throwIfAborted();
      const copy = new Session(this.#engine, { ...this.#defaults, overflow: this.#overflow, initialPrompts: this.#turns });
      copy.#kept = this.#kept;
      copy.#usage = this.#usage;
      return copy;
    });
  }

  destroy(): void {
    this.#isDestroyed = true;
    this.#turns = [];
    this.#usage = 0;
    this.#answering?.cancel();
  }

  /** Counts the tokens of the turns anew. */
  async measure(): Promise<void> {
    this.#usage = this.#turns.length === 0 ? 0 : await this.#engine.countTokens(this.#turns);
  }

  #remember(added: readonly ChatMessage[], answer: string, result: GenerateResult): void {
    if (this.#isDestroyed) return;
    const calls = result.toolCalls ? { tool_calls: result.toolCalls } : {};
    this.#turns.push(...added, { role: 'assistant', content: answer, ...calls });
    this.#usage = result.usage.promptTokens + result.usage.completionTokens;
  }

  /** Forgets the oldest turns, a question with its answer at a time, until the input fits with room for an answer. */
  async #makeRoom(added: readonly ChatMessage[]): Promise<void> {
    if (this.#overflow !== 'drop-oldest') return;
    let hasDropped = false;
    while (this.#turns.length > this.#kept && (await this.#engine.countTokens([...this.#turns, ...added])) >= this.contextWindow) {
      const next = this.#turns.findIndex((turn, index) => index > this.#kept && turn.role === 'user');
      this.#turns.splice(this.#kept, (next < 0 ? this.#turns.length : next) - this.#kept);
      hasDropped = true;
    }
    if (hasDropped) this.dispatchEvent(new Event('contextoverflow'));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.catch(() => {}).then(() => {
      this.#checkAlive();
      return work();
    });
    this.#last = turn.catch(() => {});
    return turn;
  }

  #checkAlive(): void {
    if (this.#isDestroyed) throw new EdgeError('closed', 'the session was destroyed');
  }
}

/** An input as turns; a string is the user's. */
function turnsOf(input: Input): ChatMessage[] {
  const turns: readonly ChatMessage[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  return plainMessages(turns);
}
