// The caller's side of the line to one engine's host: numbers calls, matches answers, and notices when the host is gone.

import { EdgeError, toEdgeError, unreachable } from './errors.js';
import { BASE_CHOICE, importFault, importModule, startWorker, withoutThreads } from './modules.js';
import type { ModuleChoice } from './modules.js';
import { hasWorkers, isNode } from './platform.js';
import type { Call, CallName, Calls, FromHost, Port, ToHost } from './protocol.js';
import { CallerResources } from './resources-caller.js';
import type { EdgeOptions, Progress, TokenLogprob, ToolCallDelta } from './types.js';

/** What a call hears before its answer. */
export interface CallEvents {
  onPiece?(piece: string): void;
  onThought?(piece: string): void;
  onToolCall?(delta: ToolCallDelta): void;
  onLogprob?(entry: TokenLogprob): void;
  onProgress?(progress: Progress): void;
}

/** A call under way. `answer` rejects with an `EdgeError`. */
export interface PendingCall<Name extends CallName> {
  answer: Promise<Calls[Name]['answer']>;
  /** Asks the host to stop; the answer still comes. */
  cancel(): void;
}

interface Pending {
  resolve(value: Calls[CallName]['answer']): void;
  reject(error: EdgeError): void;
  events: CallEvents;
}

/** A line to a host. */
export class Connection {
  /** Whether a worker runs the host, and if not, why. */
  readonly worker: { used: boolean; reason: string };
  /** The module of the host, unless the caller's worker has another. */
  readonly choice: ModuleChoice;
  /** The caller's things that the host may use. */
  readonly resources: CallerResources;
  readonly #pending = new Map<number, Pending>();
  #port: Port | null = null;
  #outbox: ToHost[] = [];
  #calls = 0;
  #end: EdgeError | null = null;
  /** Settles when the worker, if there is one of ours, is ended. */
  #ended: Promise<void> = Promise.resolve();

  constructor(worker: EdgeOptions['worker'], ownFetch: typeof fetch | null, choice: ModuleChoice = BASE_CHOICE) {
    this.resources = new CallerResources((message) => this.#post(message), ownFetch);
    const place = placeFor(worker, choice);
    this.worker = { used: place.worker !== null, reason: place.reason };
    this.choice = place.worker || isNode() ? choice : withoutThreads(choice, place.reason);
    if (place.worker) this.#port = workerPort(place.worker, place.isOurs ? endsIn(this.choice) : null, (message) => this.#receive(message), (error) => this.#fail(error));
    else void this.#openLocal();
  }

  /** Why the line is dead; null while it works. */
  get end(): EdgeError | null {
    return this.#end;
  }

  /** Calls the host. */
  call<Name extends CallName>(name: Name, request: Calls[Name]['request'], events: CallEvents = {}): PendingCall<Name> {
    this.#calls += 1;
    const id = this.#calls;
    const answer = new Promise<Calls[Name]['answer']>((resolve, reject) => {
      if (this.#end) return reject(this.#end);
      this.#pending.set(id, { resolve: resolve as Pending['resolve'], reject, events });
      try {
        this.#post({ type: 'call', id, call: { name, request } as Call });
      } catch (error) {
        this.#pending.delete(id);
        reject(postError(error));
      }
    });
    return { answer, cancel: () => { if (this.#pending.has(id)) this.#post({ type: 'cancel', id }); } };
  }

  /** Ends the line and its worker: everything under way is rejected, the host frees what it holds. */
  async close(error: EdgeError): Promise<void> {
    if (this.#end) return this.#ended;
    const freed = this.call('close', null).answer;
    const pending = this.#pending.get(this.#calls);
    this.#pending.delete(this.#calls);
    this.#rejectAll(error);
    if (pending) this.#pending.set(this.#calls, pending);
    await settledWithin(freed, 2000);
    this.#fail(error);
    return this.#ended;
  }

  #post(message: ToHost): void {
    if (this.#end) return;
    if (this.#port) this.#port.post(message);
    else this.#outbox.push(message);
  }

  async #openLocal(): Promise<void> {
    try {
      const disk = isNode() ? import('./node-disk.js').then(({ bringDisk }) => bringDisk()) : null;
      const [{ EngineHost }, module] = await Promise.all([import('./engine-host.js'), importModule(this.choice.name), disk])
        .catch((error: unknown) => { throw importFault(error); });
      if (this.#end) return;
      // Answers arrive as tasks of their own, never inside a call, as they do from a worker.
      const host = new EngineHost(module, (message) => queueMicrotask(() => this.#receive(message)));
      this.#port = { post: (message) => host.receive(message), close: () => Promise.resolve() };
      for (const message of this.#outbox.splice(0)) this.#port.post(message);
    } catch (error) {
      this.#fail(toEdgeError(error));
    }
  }

  #receive(message: FromHost): void {
    if (this.#end) return;
    switch (message.type) {
      case 'ready':
        break;
      case 'answer':
        this.#take(message.id)?.resolve(message.value);
        break;
      case 'error':
        this.#take(message.id)?.reject(toEdgeError(message.error));
        break;
      case 'piece':
        this.#pending.get(message.id)?.events.onPiece?.(message.piece);
        break;
      case 'thought':
        this.#pending.get(message.id)?.events.onThought?.(message.piece);
        break;
      case 'logprob':
        this.#pending.get(message.id)?.events.onLogprob?.(message.entry);
        break;
      case 'toolCall':
        this.#pending.get(message.id)?.events.onToolCall?.(message.delta);
        break;
      case 'progress':
        this.#pending.get(message.id)?.events.onProgress?.(message.progress);
        break;
      case 'fetch':
        void this.resources.fetch(message.resource, message.url, message.headers);
        break;
      case 'find':
        void this.resources.find(message.resource, message.model, message.headers);
        break;
      case 'pull':
        void this.resources.pull(message.resource);
        break;
      case 'drop':
        this.resources.drop(message.resource);
        break;
      case 'crash':
        this.#fail(toEdgeError(message.error));
        break;
      default:
        unreachable(message);
    }
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #fail(error: EdgeError): void {
    if (this.#end) return;
    this.#end = error;
    this.#rejectAll(error);
    this.resources.dropAll();
    if (this.#port) this.#ended = this.#port.close();
  }

  #rejectAll(error: EdgeError): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(error);
  }
}

interface Place {
  worker: Worker | null;
  isOurs: boolean;
  reason: string;
}

/** Why no worker will run the host; null when one will, if it can be started. */
export function whyNoWorker(option: EdgeOptions['worker']): string | null {
  if (option === false) return 'worker: false was asked for';
  if (isNode()) return 'in Node the engine runs in the calling thread';
  return hasWorkers() ? null : 'there are no workers here';
}

/** Where the host shall run. */
function placeFor(option: EdgeOptions['worker'], choice: ModuleChoice): Place {
  const here = (reason: string): Place => ({ worker: null, isOurs: false, reason });
  const reason = whyNoWorker(option);
  if (reason !== null) return here(reason);
  if (typeof option === 'object' && !(option instanceof URL)) return { worker: option, isOurs: false, reason: "the caller's worker" };
  try {
    const isNamed = typeof option === 'string' || option instanceof URL;
    return { worker: isNamed ? new Worker(option, { type: 'module' }) : startWorker(choice.name), isOurs: true, reason: 'the default' };
  } catch (error) {
    // A page may not start a worker from another origin, for instance when the package comes from a CDN.
    return here(`a worker could not be started: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * How long a worker whose threads end goes on. Chromium sometimes never ends a worker, and keeps its memory, that is ended
 * in the moment in which one of its own ends: 27 of 60 times without a wait, 0 of 110 after 50 ms (Chromium 156).
 */
const THREADS_END_MS = 200;

/** After what time the worker of a module can be ended. */
function endsIn({ threads }: ModuleChoice): number {
  return threads > 1 ? THREADS_END_MS : 0;
}

/** A line to a worker, which is ended as long after the line; null where it is the caller's. */
function workerPort(worker: Worker, endMs: number | null, receive: (message: FromHost) => void, fail: (error: EdgeError) => void): Port {
  let isReady = false;
  const onMessage = (event: MessageEvent<FromHost>) => {
    isReady = true;
    receive(event.data);
  };
  const onError = (event: Event) => {
    const detail = 'message' in event && typeof event.message === 'string' && event.message !== '' ? `: ${event.message}` : '';
    fail(new EdgeError(isReady ? 'internal' : 'network', isReady ? `the worker failed${detail}` : `the worker could not be loaded${detail}; see the option worker`));
  };
  worker.addEventListener('message', onMessage);
  worker.addEventListener('error', onError);
  worker.addEventListener('messageerror', onError);
  return {
    post: (message) => worker.postMessage(message),
    close: async () => {
      worker.removeEventListener('message', onMessage);
      worker.removeEventListener('error', onError);
      worker.removeEventListener('messageerror', onError);
      if (endMs === null) return;
      if (endMs > 0) await new Promise((resolve) => { setTimeout(resolve, endMs); });
      worker.terminate();
    },
  };
}

/** Why a call could not be sent: what the caller gave, such as a function in an option, cannot be copied to a worker. */
function postError(error: unknown): EdgeError {
  const isUncloneable = error instanceof DOMException && error.name === 'DataCloneError';
  return isUncloneable ? new EdgeError('invalid-argument', `the options cannot be sent to the worker: ${error.message}`, { cause: error }) : toEdgeError(error);
}

/** Waits until `promise` is settled, but no longer than that; leaves no timer, which would keep Node alive. */
async function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, ms); });
  await Promise.race([promise.catch(() => {}), late]);
  clearTimeout(timer);
}
