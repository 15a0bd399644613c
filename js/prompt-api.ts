// `@hanzo/edge/prompt-api`: the browser's `LanguageModel` (the Prompt API) over sessions of an engine, as a class of its
// own and as a stand-in where the browser has none. It knows the engine's public surface only.

import { HanzoEdge } from './edge.js';
import { EdgeError } from './errors.js';
import { OverflowTarget } from './overflow-target.js';
import { constraint, notSupported, readPrompt, toolOptions, unsupported } from './prompt-api-input.js';
import type { Availability, CreateMonitor, LanguageModelPrompt, LanguageModelPromptOptions, LanguageModelSession, LanguageModelStatic, LanguageModelTool } from './prompt-api-types.js';
import { toReadable } from './stream.js';
import type { ChatMessage, ChatOptions, EdgeOptions, EdgeSession, TokenStream, ToolCall } from './types.js';

export type {
  Availability, CreateMonitor, DownloadProgress, LanguageModelContent, LanguageModelCoreOptions, LanguageModelCreateOptions, LanguageModelMessage, LanguageModelPrompt,
  LanguageModelPromptOptions, LanguageModelSession, LanguageModelStatic, LanguageModelTool,
} from './prompt-api-types.js';

/** What this file needs of a loaded engine. */
export type SessionSource = Pick<HanzoEdge, 'session'>;

/**
 * A `LanguageModel` that runs `engine`: one that is loaded, or what to load at the first `create`. All its sessions share
 * the engine, which stays loaded. Failures are the API's: QuotaExceededError with `requested` and `quota` where a prompt
 * does not fit, NotSupportedError, InvalidStateError after `destroy`, a signal's reason; others keep their `EdgeError` as
 * `cause`.
 */
export function createLanguageModel(engine: EdgeOptions | SessionSource = {}): LanguageModelStatic {
  const shared = 'session' in engine ? null : new SharedEngine(engine);
  return {
    async availability(options = {}) {
      if (unsupported(options)) return 'unavailable';
      return shared ? translated(() => shared.availability()) : 'available';
    },
    async create(options = {}) {
      const { signal, monitor, initialPrompts = [], tools = [], topK, temperature } = options;
      signal?.throwIfAborted();
      const fault = unsupported(options);
      if (fault) throw notSupported(fault);
      const { turns, prefill } = readPrompt(initialPrompts);
      if (prefill !== null) throw notSupported('a prefix among initialPrompts');
      const target = new EventTarget();
      monitor?.(target as CreateMonitor);
      return translated(async () => {
        const loaded = shared ? await shared.load(target, signal) : (engine as SessionSource);
        signal?.throwIfAborted();
        const sampling = { ...(topK === undefined ? {} : { topK }), ...(temperature === undefined ? {} : { temperature }) };
        const session = await loaded.session({ ...sampling, ...toolOptions(tools), initialPrompts: turns, overflow: 'drop-oldest' });
        return new Session(session, tools);
      });
    },
  };
}

/**
 * Makes a `LanguageModel` the global one where the browser has none; says whether it did.
 */
export function installLanguageModel(engine: EdgeOptions | SessionSource = {}): boolean {
  if ('LanguageModel' in globalThis) return false;
  Object.defineProperty(globalThis, 'LanguageModel', { value: createLanguageModel(engine), configurable: true, writable: true });
  return true;
}

/** One engine, loaded when it is first wanted. A load that nobody waits for any more is called off. */
class SharedEngine {
  readonly #options: EdgeOptions;
  #loading: { engine: Promise<HanzoEdge>; control: AbortController; targets: Set<EventTarget>; isLoaded: boolean } | null = null;

  constructor(options: EdgeOptions) {
    this.#options = options;
  }

  /** What is loaded or being loaded says so; of anything else the headers are looked at, and what is stored of it. */
  async availability(): Promise<Availability> {
    if (this.#loading) return this.#loading.isLoaded ? 'available' : 'downloading';
    const { signal: _signal, onProgress: _onProgress, ...options } = this.#options;
    const files: readonly unknown[] = [options.model].flat();
    // It is here, and can be read only once.
    if (files.some((file) => file instanceof ReadableStream)) return 'available';
    return HanzoEdge.availability(options);
  }

  async load(target: EventTarget, signal: AbortSignal | undefined): Promise<HanzoEdge> {
    const loading = (this.#loading ??= this.#start());
    loading.targets.add(target);
    tell(target, 0);
    try {
      const engine = await untilAborted(loading.engine, signal);
      tell(target, 1);
      return engine;
    } finally {
      loading.targets.delete(target);
      if (!loading.isLoaded && loading.targets.size === 0) {
        loading.control.abort();
        if (this.#loading === loading) this.#loading = null;
      }
    }
  }

  #start() {
    const control = new AbortController();
    const targets = new Set<EventTarget>();
    const onProgress: EdgeOptions['onProgress'] = (progress) => {
      this.#options.onProgress?.(progress);
      const { phase, loaded, total } = progress;
      if (phase === 'download' && total && loaded < total) for (const target of targets) tell(target, loaded / total);
    };
    const loading = { engine: HanzoEdge.init({ ...this.#options, signal: control.signal, onProgress }), control, targets, isLoaded: false };
    loading.engine.then(() => { loading.isLoaded = true; }, () => { if (this.#loading === loading) this.#loading = null; });
    return loading;
  }
}

function tell(target: EventTarget, loaded: number): void {
  target.dispatchEvent(Object.assign(new Event('downloadprogress'), { loaded, total: 1, lengthComputable: true }));
}

/** The promise, or the signal's reason where that comes first. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** How often a model may call tools before it answers. */
const MOST_ROUNDS = 16;

/** The stream that answers now. */
interface Current {
  stream: TokenStream | null;
}

class Session extends OverflowTarget implements LanguageModelSession {
  readonly #session: EdgeSession;
  readonly #tools: readonly LanguageModelTool[];
  #isDestroyed = false;

  constructor(session: EdgeSession, tools: readonly LanguageModelTool[]) {
    super();
    this.#session = session;
    this.#tools = tools;
    session.addEventListener('contextoverflow', () => this.tellOverflow());
  }

  get contextUsage(): number {
    return this.#session.contextUsage;
  }

  get contextWindow(): number {
    return this.#session.contextWindow;
  }

  async prompt(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<string> {
    let text = '';
    for await (const piece of this.#answer(input, options, { stream: null })) text += piece;
    return text;
  }

  promptStreaming(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): ReadableStream<string> {
    const current: Current = { stream: null };
    const answer = this.#answer(input, options, current);
    const leave = async () => {
      current.stream?.cancel();
      return answer.return(undefined);
    };
    // A piece is kept ready, so that the work begins now and not with the first read.
    return toReadable({ next: () => answer.next(), return: leave }, 1);
  }

  async append(input: LanguageModelPrompt, { signal }: { signal?: AbortSignal } = {}): Promise<undefined> {
    await translated(async () => {
      this.#checkAlive();
      const { turns, prefill } = readPrompt(input);
      if (prefill !== null) throw notSupported('a prefix to append');
      await this.#session.append(turns, signal ? { signal } : {});
    }, () => this.#overflow(input));
    return undefined;
  }

  async measureContextUsage(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<number> {
    return translated(async () => {
      this.#checkAlive();
      return untilAborted(this.#session.measureContextUsage(readPrompt(input, options).turns), options.signal);
    });
  }

  async clone(options: { signal?: AbortSignal } = {}): Promise<LanguageModelSession> {
    return translated(async () => {
      this.#checkAlive();
      return new Session(await this.#session.clone(options), this.#tools);
    });
  }

  destroy(): void {
    this.#isDestroyed = true;
    this.#session.destroy();
  }

  /** Answers, calling tools as long as the model asks for them. */
  async *#answer(input: LanguageModelPrompt, options: LanguageModelPromptOptions, current: Current): AsyncGenerator<string, undefined> {
    try {
      this.#checkAlive();
      const { turns, prefill } = readPrompt(input, options);
      const chat: ChatOptions = { ...(options.signal ? { signal: options.signal } : {}), ...constraint(options.responseConstraint) };
      let asked = turns;
      for (let round = 0; round < MOST_ROUNDS; round += 1) {
        const stream = this.#session.promptStreaming(asked, prefill !== null && round === 0 ? { ...chat, prefill } : chat);
        current.stream = stream;
        yield* stream;
        const { finishReason, toolCalls = [] } = await stream.result;
        // Only `destroy` ends an answer that way while somebody reads.
        if (finishReason === 'abort') throw destroyed();
        if (finishReason !== 'tool_calls') return undefined;
        asked = await Promise.all(toolCalls.map((call) => this.#call(call)));
      }
      throw new DOMException(`the model called tools ${MOST_ROUNDS} times without an answer`, 'OperationError');
    } catch (error) {
      throw await translate(error, () => this.#overflow(input));
    }
  }

  /** The turn with a tool's answer. */
  async #call({ id, function: { name, arguments: input } }: ToolCall): Promise<ChatMessage> {
    const tool = this.#tools.find((known) => known.name === name);
    if (!tool) throw new DOMException(`the model called ${name}, which is no tool of this session`, 'OperationError');
    return { role: 'tool', name, tool_call_id: id, content: String(await tool.execute(JSON.parse(input))) };
  }

  /** The error for an input that does not fit. */
  async #overflow(input: LanguageModelPrompt): Promise<DOMException> {
    const requested = await this.#session.measureContextUsage(readPrompt(input).turns).catch(() => null);
    const error = new DOMException('the prompt does not fit into the context window', 'QuotaExceededError');
    return Object.assign(error, { requested, quota: this.contextWindow });
  }

  #checkAlive(): void {
    if (this.#isDestroyed) throw new DOMException('the session was destroyed', 'InvalidStateError');
  }
}

/** Does the work; this package's errors become those of the API. */
async function translated<T>(work: () => Promise<T>, overflow?: () => Promise<DOMException>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw await translate(error, overflow);
  }
}

async function translate(error: unknown, overflow?: () => Promise<DOMException>): Promise<unknown> {
  if (!(error instanceof EdgeError)) return error;
  if (error.code === 'context-overflow' && overflow) return overflow();
  if (error.code === 'closed') return destroyed();
  const translation = error.code === 'invalid-argument' ? new TypeError(error.message) : new DOMException(error.message, 'OperationError');
  return Object.assign(translation, { cause: error });
}

function destroyed(): DOMException {
  return new DOMException('the session was destroyed', 'AbortError');
}
