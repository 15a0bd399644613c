// HanzoEdge: one loaded model for its users. It keeps the line to the engine's host, and opens a new one after a crash.

import type { CallEvents, Connection } from './connection.js';
import { EdgeError } from './errors.js';
import { importFault } from './modules.js';
import { closed, guarded, openLine } from './opening.js';
import { chatRequest, checkEdgeOptions, checkSessionOptions, completeRequest, nameOfModel, plainMessages, wellFormed } from './options.js';
import type { ChatBody, ChatCompletions } from './openai-types.js';
import type { CallName, Calls, GenerateRequest } from './protocol.js';
import type { SessionEngine } from './session.js';
import { TokenStreamSource } from './stream.js';
import type { Availability, Chat, ChatMessage, ChatOptions, Diagnostics, EdgeOptions, EdgeSession, EmbedInput, EmbedOptions, GenerateOptions, MemoryReport, Models, Plan, SessionOptions, TokenStream } from './types.js';

/** `Symbol.asyncDispose` where the user's library has it, so that projects with an older one compile too. */
type AsyncDispose = SymbolConstructor[Extract<keyof SymbolConstructor, 'asyncDispose'>];
export interface HanzoEdge extends Record<AsyncDispose, () => Promise<void>> {}

/** A model, loaded and ready. Make one with `HanzoEdge.init`. */
export class HanzoEdge {
  /** The models that are stored here. */
  static readonly models: Models = {
    list: async () => (await catalog()).listModels(),
    download: async (model, options) => (await catalog()).downloadModel(model, options),
    delete: async (model) => (await catalog()).deleteModel(model),
    persist: async () => (await catalog()).persistModels(),
  };
  /** Answers a conversation, using the model's chat template. */
  readonly chat: Chat;
  readonly #options: EdgeOptions;
  #connection: Connection;
  #diagnostics: Diagnostics;
  /** The line that calls use: the one above, or the one being opened after a crash. */
  #line: Promise<Connection>;
  #isClosed = false;

  private constructor(options: EdgeOptions, connection: Connection, diagnostics: Diagnostics) {
    this.#options = options;
    this.#connection = connection;
    this.#line = Promise.resolve(connection);
    this.#diagnostics = diagnostics;
    const chat: SessionEngine['chat'] = (messages, chatOptions = {}) => this.#generate(() => chatRequest(messages, chatOptions), chatOptions);
    // Most pages use one way of asking: the code of the others is loaded at its first use.
    const create = async (body: ChatBody, options?: { signal?: AbortSignal | null }) => {
      const { chatCompletions } = await import('./completions.js');
      return chatCompletions(chat, () => this.#diagnostics.model).create(body, options);
    };
    this.chat = Object.assign(chat, { completions: { create: create as ChatCompletions['create'] } });
  }

  /**
   * Loads a model. Rejects with an `EdgeError`, or with the signal's reason.
   * The signal belongs to the load only.
   */
  static async init(options: EdgeOptions = {}): Promise<HanzoEdge> {
    checkEdgeOptions(options);
    const { connection, diagnostics } = await open(options);
    return new HanzoEdge(options, connection, diagnostics);
  }

  /**
   * Whether a model can be used here. Reads no more than the headers of its files; for why not, see `plan`.
   * Rejects only for wrong options, or with the signal's reason.
   */
  static async availability(options: EdgeOptions = {}): Promise<Availability> {
    return (await planning()).availability(options);
  }

  /**
   * What loading a model would take, told from the headers of its files before anything is downloaded. Rejects with an
   * `EdgeError` when that cannot be told: the file does not exist, or is no model of a known kind.
   */
  static async plan(options: EdgeOptions = {}): Promise<Plan> {
    return (await planning()).plan(options);
  }

  /** Continues a text as it is, without a template. */
  complete(prompt: string, options: GenerateOptions = {}): TokenStream {
    return this.#generate(() => completeRequest(prompt, options), options);
  }

  /** Starts a conversation that remembers its turns. */
  async session(options: SessionOptions = {}): Promise<EdgeSession> {
    checkSessionOptions(options);
    if (this.#isClosed) throw closed();
    const { Session } = await import('./session.js');
    const session = new Session(this, options);
    await session.measure();
    return session;
  }

  /**
   * A vector for each text, in their order. Texts get what the model's file puts before and after one; an empty one
   * rejects with 'invalid-argument', one that does not fit the context with 'context-overflow'. An empty list gives none.
   */
  async embed(input: EmbedInput, options: EmbedOptions = {}): Promise<Float32Array[]> {
    const { embed } = await import('./embed.js');
    return embed(() => this.#connected(), input, options);
  }

  /** Token ids of a text. Special tokens in it are recognized; none is added. */
  async tokenize(text: string): Promise<Uint32Array> {
    if (typeof text !== 'string') throw new EdgeError('invalid-argument', 'text: expected a string', { path: 'text' });
    return this.#call('tokenize', wellFormed(text));
  }

  /** The text of token ids. */
  async detokenize(ids: ArrayLike<number>): Promise<string> {
    const list = Array.from(ids);
    const bad = list.findIndex((id) => !Number.isInteger(id) || id < 0 || id > 0xffff_ffff);
    if (bad >= 0) throw new EdgeError('invalid-argument', `ids[${bad}]: expected a token id, found ${list[bad]}`, { path: 'ids' });
    return this.#call('detokenize', Uint32Array.from(list));
  }

  /** How many tokens a conversation takes, with its template. */
  async countTokens(messages: readonly ChatMessage[]): Promise<number> {
    return this.#call('countTokens', plainMessages(messages));
  }

  /** What runs the model, and why. */
  get diagnostics(): Diagnostics {
    return this.#diagnostics;
  }

  /** Memory in use. */
  async memory(): Promise<MemoryReport> {
    return this.#call('memory', null);
  }

  /** Frees the model. What is under way rejects with 'closed'. Closing twice does nothing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#connection.close(closed());
  }

  async #call<Name extends CallName>(name: Name, request: Calls[Name]['request']): Promise<Calls[Name]['answer']> {
    return (await this.#connected()).call(name, request).answer;
  }

  /** Starts a generation now; `makeRequest` may throw, which the stream then reports. */
  #generate(makeRequest: () => GenerateRequest, options: ChatOptions): TokenStream {
    let cancel = () => {};
    const source = new TokenStreamSource(() => cancel());
    const { signal } = options;
    let request: GenerateRequest;
    try {
      request = makeRequest();
    } catch (error) {
      source.fail(error);
      return source.stream;
    }
    if (signal?.aborted) {
      source.fail(signal.reason, true);
      return source.stream;
    }
    let isCancelled = false;
    cancel = () => { isCancelled = true; };
    const onAbort = () => {
      source.fail(signal?.reason, true);
      cancel();
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    const start = async () => {
      const connection = await this.#connected();
      const events: CallEvents = {
        onPiece: (piece) => source.push(piece),
        onProgress: guarded('onProgress', options.onProgress),
        onLogprob: guarded('onLogprob', options.onLogprob),
        onThought: guarded('onReasoning', options.onReasoning),
        onToolCall: guarded('onToolCallDelta', options.onToolCallDelta),
      };
      const call = connection.call('generate', request, events);
      cancel = () => call.cancel();
      if (isCancelled) cancel();
      return call.answer;
    };
    start()
      .then((report) => source.finish(report), (error: unknown) => source.fail(error))
      .finally(() => signal?.removeEventListener('abort', onAbort));
    return source.stream;
  }

  /** A line that works. After a crash the model is loaded again, once for all who ask. */
  #connected(): Promise<Connection> {
    if (this.#isClosed) return Promise.reject(closed());
    if (this.#connection.end === null) return this.#line;
    const ended = this.#connection;
    this.#line = this.#line.then((line) => (line.end === null ? line : this.#reopen(line)), () => this.#reopen(ended));
    return this.#line;
  }

  async #reopen(ended: Connection): Promise<Connection> {
    const { model, worker } = this.#options;
    const files = Array.isArray(model) ? model : [model];
    const cannot = files.some((file) => file instanceof ReadableStream) || (typeof worker === 'object' && !(worker instanceof URL));
    if (cannot) throw ended.end ?? closed();
    const { signal: _signal, onProgress: _onProgress, ...options } = this.#options;
    const { connection, diagnostics } = await open(options);
    if (this.#isClosed) {
      await connection.close(closed());
      throw closed();
    }
    this.#connection = connection;
    this.#diagnostics = diagnostics;
    return connection;
  }
}

// Where the runtime has disposal, `await using edge = …` closes the engine.
if (typeof Symbol.asyncDispose === 'symbol') {
  Object.defineProperty(HanzoEdge.prototype, Symbol.asyncDispose, {
    value(this: HanzoEdge) { return this.close(); },
    configurable: true,
    writable: true,
  });
}

/** What pages that only load and generate need not fetch. */
const catalog = () => import('./catalog.js').catch((error: unknown) => { throw importFault(error); });
const planning = () => import('./planning.js').catch((error: unknown) => { throw importFault(error); });

/** Opens a line and loads the model over it. */
async function open(options: EdgeOptions): Promise<{ connection: Connection; diagnostics: Diagnostics }> {
  const { connection, answer: facts } = await openLine('load', options);
  const wasmReason = [connection.choice.reason, facts.wasmReason].filter(Boolean).join('; ');
  return { connection, diagnostics: { ...facts, model: nameOfModel(options), wasmReason, worker: connection.worker } };
}
