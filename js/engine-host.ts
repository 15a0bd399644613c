// The engine's side: owns the WASM module, the model and the GPU device of one engine, in a worker, in the page or in Node.
// It takes messages and answers them. Generations take turns in the order they came; every call into the module waits for
// the one before. After a trap the host says 'crash' and does nothing more.

import { EdgeError, toErrorData, unreachable } from './errors.js';
import type { ErrorData } from './errors.js';
import { Grammars } from './grammars.js';
import type { Follower } from './grammars.js';
import type { Embedding, Generation } from './hanzo-edge.js';
import { loadModel } from './loading.js';
import type { Loaded } from './loading.js';
import type { LoadContext } from './model-files.js';
import type { WasmModule } from './modules.js';
import { isNode } from './platform.js';
import { rising } from './progress.js';
import type { Call, CallName, Calls, EmbedRequest, FromHost, GenerateReport, GenerateRequest, LoadOptions, LoadedFacts, ToHost } from './protocol.js';
import { HostResources } from './resources-host.js';
import { storeModel } from './storing.js';
import { surveyModel } from './survey.js';
import { callExport, hasTrapped } from './traps.js';
import type { MemoryReport, TokenLogprob, ToolCallDelta } from './types.js';
import { startWasm, stopped, trapOf } from './wasm.js';
import type { WasmInstance } from './wasm.js';

/** What a step of a generation led to, from the WASM module. */
type GenerationEvent =
  | { event: 'prompt'; done: number; total: number }
  | { event: 'piece'; piece: string }
  | { event: 'thought'; piece: string }
  | { event: 'toolCall'; delta: ToolCallDelta }
  | { event: 'logprob'; entry: TokenLogprob }
  /** The grammar has to say what may come next. */
  | { event: 'mask'; accepted: number[] }
  | { event: 'done'; result: Omit<GenerateReport, 'tokens'> & { tokens: number[] } };

/** How long other tasks may have to wait. */
const TURN_MS = 8;

/** What can be cancelled of a call. */
interface Running {
  control: AbortController;
  generation: Generation | null;
}

/** One engine's host. */
export class EngineHost {
  readonly #post: (message: FromHost) => void;
  readonly #resources: HostResources;
  readonly #running = new Map<number, Running>();
  readonly #module: WasmModule;
  #wasm: WasmInstance | null = null;
  /** Threads of the module that work for this engine. */
  #threads = 0;
  #loaded: Loaded | null = null;
  #grammars: Grammars | null = null;
  #isClosed = false;
  /** The last call into the module and the last generation, which never rejects: the next one waits for it. */
  #lastCall: Promise<unknown> = Promise.resolve();
  #lastGeneration: Promise<unknown> = Promise.resolve();

  constructor(module: WasmModule, post: (message: FromHost) => void) {
    this.#module = module;
    this.#post = (message) => { if (!this.#isClosed) post(message); };
    this.#resources = new HostResources(this.#post);
    this.#post({ type: 'ready' });
  }

  /** Takes a message of the caller's side. */
  receive(message: ToHost): void {
    switch (message.type) {
      case 'call':
        void this.#answer(message.id, message.call);
        break;
      case 'cancel':
        this.#cancel(message.id);
        break;
      case 'fetched':
        this.#resources.fetched(message);
        break;
      case 'found':
        this.#resources.found(message.resource, message.files);
        break;
      case 'chunk':
        this.#resources.chunk(message.resource, message.bytes);
        break;
      case 'failed':
        this.#resources.failed(message.resource, message.error);
        break;
      default:
        unreachable(message);
    }
  }

  async #answer(id: number, call: Call): Promise<void> {
    const running: Running = { control: new AbortController(), generation: null };
    this.#running.set(id, running);
    try {
      this.#post({ type: 'answer', id, value: await this.#do(id, call, running) });
    } catch (error) {
      const trap = trapOf(error, this.#module);
      if (trap) this.#crash(trap, true);
      else this.#post({ type: 'error', id, error: toErrorData(error) });
    } finally {
      this.#running.delete(id);
    }
  }

  async #do(id: number, call: Call, running: Running): Promise<Calls[CallName]['answer']> {
    switch (call.name) {
      case 'load': return this.#load(id, call.request, running.control.signal);
      case 'survey': return surveyModel(call.request, await this.#begin(id, call.request, running.control.signal));
      case 'store': return storeModel(call.request, await this.#begin(id, call.request, running.control.signal)).then(() => null);
      case 'generate': return this.#generate(id, call.request, running);
      case 'embed': return this.#embed(id, call.request, running.control.signal);
      case 'tokenize': return this.#exclusive(({ engine }) => engine.tokenize(call.request));
      case 'detokenize': return this.#exclusive(({ engine }) => engine.detokenize(call.request));
      case 'countTokens': return this.#exclusive(({ engine }) => engine.countTokens(JSON.stringify(call.request)));
      case 'score': return this.#exclusive(({ engine }) => engine.score(call.request));
      case 'memory': return this.#exclusive(({ engine }) => this.#memoryReport(engine.memory()));
      case 'close': return this.#close();
      default: return unreachable(call);
    }
  }

  /** Starts the module. What the answer offers belongs to the call with this number. */
  async #begin(id: number, options: LoadOptions, signal: AbortSignal): Promise<LoadContext> {
    this.#wasm = await startWasm(this.#module, { url: options.wasmUrl, binary: options.wasmBinary });
    return {
      module: this.#module,
      signal,
      fetch: options.ownFetch ? this.#resources.fetch : (input, init) => fetch(input, init),
      openStream: this.#resources.stream,
      findOnHub: (model) => this.#resources.find(model, options.headers, signal),
      onProgress: rising((progress) => this.#post({ type: 'progress', id, progress })),
    };
  }

  async #load(id: number, options: LoadOptions, signal: AbortSignal): Promise<LoadedFacts> {
    const context = await this.#begin(id, options, signal);
    const wanted = options.engine.threads - 1;
    const { started, fault } = (await this.#wasm?.threads?.add(wanted)) ?? { started: 0, fault: null };
    this.#threads = started;
    try {
      const loaded = await loadModel({ ...options, engine: { ...options.engine, threads: 1 + started } }, context);
      if (signal.aborted) {
        // The caller left during the last step.
        loaded.engine.free();
        loaded.gpu?.destroy();
        throw new EdgeError('closed', 'the load was called off');
      }
      loaded.gpu?.onLost((reason) => this.#crash({ code: 'device-lost', message: `the GPU device was lost: ${reason}` }, false));
      this.#loaded = loaded;
      this.#grammars = new Grammars(options.grammarWasmUrl, () => this.#exclusive(({ engine }) => engine.grammarVocabulary()));
      return { ...loaded.facts, wasmReason: fault ?? '' };
    } catch (error) {
      if (!hasTrapped()) void this.#releaseThreads();
      throw error;
    }
  }

  /** Runs what is being made when its turn comes. What cannot be made, or was called off, need not wait to hear so. */
  #inTurn<Work, Result>(work: Promise<Work>, calledOff: Promise<void>, run: (work: Work) => Promise<Result>): Promise<Result> {
    const before = this.#lastGeneration;
    const turn = Promise.all([work, Promise.race([before, calledOff])]).then(([made]) => run(made));
    this.#lastGeneration = Promise.allSettled([before, turn]);
    return turn;
  }

  #generate(id: number, request: GenerateRequest, running: Running): Promise<GenerateReport> {
    const generation = this.#exclusive(({ engine }) => engine.start(JSON.stringify(request)));
    return this.#inTurn(generation, aborted(running.control.signal), (made) => this.#generateNow(id, made, running));
  }

  /** Each input takes a turn, so that an answer need not wait for a whole collection. */
  async #embed(id: number, request: EmbedRequest, signal: AbortSignal): Promise<Uint32Array[]> {
    const work = this.#exclusive(({ engine }) => engine.embed(JSON.stringify(request)));
    const calledOff = aborted(signal);
    const vectors: Uint32Array[] = [];
    const next = async (embedding: Embedding) => {
      let step: Uint32Array;
      do {
        await nextTask();
        signal.throwIfAborted();
        step = await this.#exclusive(() => embedding.next());
        this.#post({ type: 'progress', id, progress: { phase: 'prompt', loaded: step[0] ?? 0, total: step[1] ?? 0 } });
      } while (step.length === 2);
      vectors.push(step);
    };
    try {
      while (vectors.length < request.inputs.length) await this.#inTurn(work, calledOff, next);
      return vectors;
    } finally {
      if (!hasTrapped()) work.then((embedding) => embedding.free(), () => {});
    }
  }

  async #generateNow(id: number, generation: Generation, running: Running): Promise<GenerateReport> {
    running.generation = generation;
    let turnBegan = performance.now();
    let grammar: Follower | null = null;
    try {
      const wanted = generation.grammar();
      grammar = wanted && this.#grammars && !running.control.signal.aborted ? await this.#grammars.open(wanted) : null;
      for (;;) {
        if (running.control.signal.aborted) generation.cancel();
        const event = JSON.parse(await this.#exclusive(() => generation.next())) as GenerationEvent;
        switch (event.event) {
          case 'prompt':
            this.#post({ type: 'progress', id, progress: { phase: 'prompt', loaded: event.done, total: event.total } });
            break;
          case 'piece':
            this.#post({ type: 'piece', id, piece: event.piece });
            break;
          case 'thought':
            this.#post({ type: 'thought', id, piece: event.piece });
            break;
          case 'logprob':
            this.#post({ type: 'logprob', id, entry: event.entry });
            break;
          case 'toolCall':
            this.#post({ type: 'toolCall', id, delta: event.delta });
            break;
          case 'mask':
            generation.supplyMask(grammar?.mask(event.accepted) ?? new Uint32Array());
            continue;
          case 'done':
            return { ...event.result, tokens: Uint32Array.from(event.result.tokens) };
          default:
            unreachable(event);
        }
        // The tokens of one submit come at once.
        if (performance.now() - turnBegan < TURN_MS) continue;
        await nextTask();
        turnBegan = performance.now();
      }
    } finally {
      running.generation = null;
      grammar?.free();
      if (!hasTrapped()) generation.free();
    }
  }

  /** Calls into the module when the calls before are over. */
  async #exclusive<T>(work: (loaded: Loaded) => T | Promise<T>): Promise<T> {
    const call = this.#lastCall.catch(() => {}).then(() => {
      const loaded = this.#loaded;
      if (this.#isClosed || !loaded) throw new EdgeError('closed', 'the engine is closed');
      // Another engine of this thread may have stopped the module.
      if (hasTrapped()) throw stopped();
      return callExport(() => work(loaded));
    });
    this.#lastCall = call;
    return call;
  }

  #cancel(id: number): void {
    const running = this.#running.get(id);
    running?.control.abort();
    running?.generation?.cancel();
  }

  #memoryReport(report: string): MemoryReport {
    const parts = JSON.parse(report) as Pick<MemoryReport, 'weightsBytes' | 'kvBytes' | 'scratchBytes' | 'gpuBytes'>;
    const wasmBytes = this.#wasm?.memory.buffer.byteLength ?? 0;
    // WASM memory never shrinks, so that its size is also its peak.
    return { ...parts, wasmBytes, peakBytes: wasmBytes + parts.gpuBytes };
  }

  async #close(): Promise<null> {
    for (const id of this.#running.keys()) this.#cancel(id);
    await this.#lastCall.catch(() => {});
    const loaded = this.#loaded;
    this.#loaded = null;
    if (!hasTrapped()) {
      loaded?.engine.free();
      this.#grammars?.free();
      await this.#releaseThreads();
    }
    loaded?.gpu?.destroy();
    return null;
  }

  #freeAfterLoss(loaded: Loaded | null): void {
    if (hasTrapped()) return;
    loaded?.engine.free();
    void this.#releaseThreads();
  }

  async #releaseThreads(): Promise<void> {
    const count = this.#threads;
    this.#threads = 0;
    await this.#wasm?.threads?.release(count);
  }

  /** Tells the end. After a trap the module's memory must not be touched; otherwise the model is freed. */
  #crash(error: ErrorData, isTrap: boolean): void {
    this.#post({ type: 'crash', error });
    this.#isClosed = true;
    const loaded = this.#loaded;
    this.#loaded = null;
    loaded?.gpu?.destroy();
    for (const { control } of this.#running.values()) control.abort();
    if (isTrap) this.#wasm?.threads?.end();
    else void this.#lastCall.catch(() => {}).then(() => this.#freeAfterLoss(loaded));
  }
}

/** Makes this worker an engine's host. */
export function serveEngine(module: WasmModule): void {
  const scope = globalThis as unknown as { postMessage(message: FromHost): void; onmessage: ((event: MessageEvent<ToHost>) => void) | null };
  const host = new EngineHost(module, (message) => scope.postMessage(message));
  scope.onmessage = (event) => host.receive(event.data);
}

/** Resolves when the signal says so. */
function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Lets other tasks run: messages arrive, a page repaints. */
const nextTask: () => Promise<void> = isNode() ? () => new Promise((resolve) => { setImmediate(resolve); }) : makeNextTask();

function makeNextTask(): () => Promise<void> {
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.onmessage = () => waiting.shift()?.();
  return () => new Promise((resolve) => {
    waiting.push(resolve);
    port2.postMessage(null);
  });
}
