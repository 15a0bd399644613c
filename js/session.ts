// A conversation that remembers its turns. It keeps messages, not tokens: the engine recognizes the common beginning of
// successive prompts by itself and runs only what is new.

import { EdgeError } from './errors.js';
import { plainMessages } from './options.js';
import { OverflowTarget } from './overflow-target.js';
import { TokenStreamSource } from './stream.js';
import type { ChatMessage, ChatOptions, Diagnostics, EdgeSession, GenerateResult, SessionInput, SessionOptions, TokenStream } from './types.js';

/** What a session needs of its engine. */
export interface SessionEngine {
  chat(messages: readonly ChatMessage[], options?: ChatOptions): TokenStream;
  readonly diagnostics: Diagnostics;
  countTokens(messages: readonly ChatMessage[]): Promise<number>;
}

/** An input as the engine takes it: turns, and the beginning of the answer. */
interface Turns {
  added: ChatMessage[];
  prefill: string;
}

/** One answer under way. */
interface Answering {
  source: TokenStreamSource;
  inner: TokenStream | null;
  isCancelled: boolean;
}

/** The share of the context kept free for an answer where its length is not given. */
const ANSWER_SHARE = 8;
/** The share of the context that a window which slides in the middle of an answer makes free. */
const SLIDE_SHARE = 4;

/** The session class behind `EdgeSession`. */
export class Session extends OverflowTarget implements EdgeSession {
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

  constructor(engine: SessionEngine, options: SessionOptions) {
    super();
    const { initialPrompts = [], overflow = 'error', ...defaults } = options;
    this.#engine = engine;
    this.#defaults = defaults;
    this.#overflow = overflow;
    this.#turns = initialPrompts.length === 0 ? [] : turnsOf(initialPrompts, 'initialPrompts').added;
    this.#kept = this.#turns.length;
  }

  get contextUsage(): number {
    return this.#usage;
  }

  get contextWindow(): number {
    return this.#engine.diagnostics.contextTokens;
  }

  async prompt(input: SessionInput, options: ChatOptions = {}): Promise<string> {
    return (await this.promptStreaming(input, options).result).text;
  }

  promptStreaming(input: SessionInput, options: ChatOptions = {}): TokenStream {
    const source = new TokenStreamSource(() => {
      answering.isCancelled = true;
      answering.inner?.cancel();
    });
    const answering: Answering = { source, inner: null, isCancelled: false };
    const given = options.signal ?? this.#defaults.signal;
    // The engine rejects what is no signal.
    const signal = given instanceof AbortSignal ? given : undefined;
    // The answer may have to wait for earlier calls; whoever leaves does not.
    const onAbort = () => source.fail(signal?.reason, true);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
    const run = this.#inTurn(async () => {
      signal?.throwIfAborted();
      const { added, prefill } = turnsOf(input);
      const asked = { ...this.#defaults, ...options };
      await this.#makeRoom(added, asked.maxTokens);
      signal?.throwIfAborted();
      this.#checkAlive();
      const begun = `${prefill}${asked.prefill ?? ''}`;
      const result = await this.#answer(added, { ...asked, ...(begun === '' ? {} : { prefill: begun }) }, answering);
      this.#remember(added, `${begun}${result.text}`, result);
      return result;
    });
    run
      .then((result) => source.finish(result), (error: unknown) => source.fail(error, signal?.aborted === true && error === signal.reason))
      .finally(() => signal?.removeEventListener('abort', onAbort));
    return source.stream;
  }

  async append(input: SessionInput, options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#inTurn(async () => {
      options.signal?.throwIfAborted();
      const added = saidTurnsOf(input);
      await this.#makeRoom(added, 0);
      const usage = await this.#engine.countTokens([...this.#turns, ...added]);
      options.signal?.throwIfAborted();
      this.#checkAlive();
      if (usage > this.contextWindow) {
        throw new EdgeError('context-overflow', `the conversation would take ${usage} tokens, the context window holds ${this.contextWindow}: start another session, or choose the option overflow`);
      }
      this.#turns.push(...added);
      this.#usage = usage;
    });
  }

  async measureContextUsage(input: SessionInput): Promise<number> {
    const added = saidTurnsOf(input);
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

  /** Answers; where the window slides, goes on with the rest of the conversation when it is full. */
  async #answer(added: readonly ChatMessage[], options: ChatOptions, answering: Answering): Promise<GenerateResult> {
    const parts: GenerateResult[] = [];
    // A window that slides has no end of its own.
    const most = options.maxTokens ?? (this.#overflow === 'slide' ? this.contextWindow : undefined);
    let prefill: string | undefined = options.prefill;
    for (;;) {
      const told = parts.reduce((sum, { usage }) => sum + usage.completionTokens, 0);
      const inner = this.#engine.chat([...this.#turns, ...added], {
        ...options,
        ...(prefill === undefined ? {} : { prefill }),
        ...(most === undefined ? {} : { maxTokens: most - told }),
        // The same numbers drawn again would favour the same words.
        ...(options.seed === undefined ? {} : { seed: options.seed + parts.length }),
      });
      answering.inner = inner;
      this.#answering = inner;
      try {
        // The reader left while earlier calls were running.
        if (answering.isCancelled) inner.cancel();
        else for await (const piece of inner) answering.source.push(piece);
        parts.push(await inner.result);
      } finally {
        this.#answering = null;
      }
      const part = parts.at(-1);
      if (this.#overflow !== 'slide' || part?.finishReason !== 'context' || part.text === '') break;
      const rest = await this.#slide(added, `${prefill ?? ''}${part.text}`);
      if (rest === null || this.#isDestroyed) break;
      prefill = rest;
    }
    return joined(parts);
  }

  #remember(added: readonly ChatMessage[], answer: string, result: GenerateResult): void {
    if (this.#isDestroyed) return;
    const calls = result.toolCalls ? { tool_calls: result.toolCalls } : {};
    this.#turns.push(...added, { role: 'assistant', content: answer, ...calls });
    // An answer over which the window slid is longer than what is left of it.
    this.#usage = Math.min(result.usage.promptTokens + result.usage.completionTokens, this.contextWindow);
  }

  /** Forgets the oldest turns until the input fits with room for an answer. */
  async #makeRoom(added: readonly ChatMessage[], maxTokens: number | undefined): Promise<void> {
    if (this.#overflow === 'error') return;
    const share = Math.floor(this.contextWindow / ANSWER_SHARE);
    const room = typeof maxTokens === 'number' ? Math.min(maxTokens, share) : share;
    if (await this.#forget(added, this.contextWindow - Math.max(room, 1))) this.tellOverflow();
  }

  /**
   * Makes room in the middle of an answer: forgets the oldest turns, then the beginning of the answer itself. Answers
   * with what the model shall continue; null when there is nothing left to forget.
   */
  async #slide(added: readonly ChatMessage[], told: string): Promise<string | null> {
    const most = this.contextWindow - Math.ceil(this.contextWindow / SLIDE_SHARE);
    const tokens = async () => this.#engine.countTokens([...this.#turns, ...added, { role: 'assistant', content: rest }]);
    let rest = told;
    let hasForgotten = await this.#forget([...added, { role: 'assistant', content: rest }], most);
    while (rest.length > 16 && (await tokens()) > most) {
      rest = laterHalf(rest);
      hasForgotten = true;
    }
    if (!hasForgotten || (await tokens()) > most) return null;
    this.tellOverflow();
    return rest;
  }

  /** Forgets the oldest turns, a question with its answer at a time, until no more than `most` tokens are left. */
  async #forget(added: readonly ChatMessage[], most: number): Promise<boolean> {
    let hasForgotten = false;
    while (this.#turns.length > this.#kept && (await this.#engine.countTokens([...this.#turns, ...added])) > most) {
      const next = this.#turns.findIndex((turn, index) => index > this.#kept && turn.role === 'user');
      this.#turns.splice(this.#kept, (next < 0 ? this.#turns.length : next) - this.#kept);
      hasForgotten = true;
    }
    return hasForgotten;
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

/**
 * An input as turns; a string is the user's. Messages may be those of the Prompt API: parts with a `value`, and a last
 * one of the assistant with `prefix`, which the answer continues.
 */
function turnsOf(input: SessionInput, path = 'input'): Turns {
  if (typeof input === 'string') return { added: plainMessages([{ role: 'user', content: input }]), prefill: '' };
  if (!Array.isArray(input)) throw new EdgeError('invalid-argument', `${path}: expected a string or a list of messages, found ${input === null ? 'null' : typeof input}`, { path });
  const messages = (input as readonly Record<string, unknown>[]).map((message) => (message !== null && typeof message === 'object' ? { ...message, content: partsOf(message.content) } : message));
  const added: ChatMessage[] = plainMessages(messages as unknown as ChatMessage[]);
  const begun = input.findIndex((message) => (message as { prefix?: unknown } | null)?.prefix === true);
  if (begun < 0) return { added, prefill: '' };
  const last = added.pop();
  if (begun !== added.length || last?.role !== 'assistant') {
    throw new EdgeError('invalid-argument', `${path}[${begun}].prefix: expected true only on a last message of the assistant`, { path: `${path}[${begun}].prefix` });
  }
  return { added, prefill: String(last.content) };
}

/** An input as turns alone: the beginning of an answer is a turn of the assistant's. */
function saidTurnsOf(input: SessionInput): ChatMessage[] {
  const { added, prefill } = turnsOf(input);
  return prefill === '' ? added : [...added, { role: 'assistant', content: prefill }];
}

/** The parts of a message with the names of `ChatMessage`. */
function partsOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((part: unknown) => {
    const { type, value } = (part ?? {}) as { type?: unknown; value?: unknown };
    return type === 'text' && typeof value === 'string' ? { type, text: value } : part;
  });
}

/** About the later half of a text, from the beginning of a word. */
function laterHalf(text: string): string {
  const half = Math.ceil(text.length / 2);
  const space = text.indexOf(' ', half);
  // A pair of surrogates stays whole.
  const cut = space >= 0 ? space : half + (/^[\udc00-\udfff]/.test(text.slice(half)) ? 1 : 0);
  return text.slice(cut);
}

/** One result of the parts of an answer. */
function joined(parts: readonly GenerateResult[]): GenerateResult {
  const [first] = parts;
  const last = parts.at(-1);
  if (!first || !last) throw new EdgeError('internal', 'an answer without a part');
  if (parts.length === 1) return first;
  const sum = (read: (part: GenerateResult) => number) => parts.reduce((total, part) => total + read(part), 0);
  return {
    ...last,
    text: parts.map(({ text }) => text).join(''),
    tokens: Uint32Array.from(parts.flatMap(({ tokens }) => [...tokens])),
    usage: { ...first.usage, completionTokens: sum(({ usage }) => usage.completionTokens) },
    stats: { ...first.stats, decodeMs: sum(({ stats }) => stats.decodeMs), decodeTokensPerSecond: last.stats.decodeTokensPerSecond },
  };
}
