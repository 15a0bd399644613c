// The grammar engine on the engine's side: a WASM module of its own, fetched when the first answer has to follow a grammar.
// A grammar can stop the module; then it is started afresh, and the engine's own module never notices.

import { EdgeError, toErrorData } from './errors.js';
import type { Compiler } from './hanzo-edge-grammar.js';
import { GRAMMAR_MODULE } from './module-grammar.js';
import { fetchModule, moduleUrl } from './wasm.js';

const { glue } = GRAMMAR_MODULE;

/** What an answer has to follow, as the engine's module says it. */
interface Wanted {
  grammar: unknown;
  /** The option that asks for it. */
  option: string;
}

/** The grammar of one answer. */
export interface Follower {
  /** The tokens that may come after `accepted`, as bits; none when the answer is complete. */
  mask(accepted: readonly number[]): Uint32Array;
  free(): void;
}

/** The start of the module, once in this thread. A failure is not remembered. */
let starting: Promise<unknown> | null = null;
/** How often the module was started afresh: what was made before is gone. */
let restarts = 0;

/** The grammars of one engine. */
export class Grammars {
  readonly #url: string | null;
  readonly #vocabulary: () => Promise<Uint8Array>;
  #compiler: { made: Compiler; restarts: number } | null = null;

  /** `vocabulary` is asked once. */
  constructor(url: string | null, vocabulary: () => Promise<Uint8Array>) {
    this.#url = url;
    this.#vocabulary = vocabulary;
  }

  /** Compiles what an answer has to follow. */
  async open(json: string): Promise<Follower> {
    const { grammar, option } = JSON.parse(json) as Wanted;
    await start(moduleUrl(GRAMMAR_MODULE, this.#url));
    const compiler = await this.#compilerNow();
    const constraint = guarded(option, () => compiler.compile(JSON.stringify(grammar)));
    const madeAt = restarts;
    return {
      mask: (accepted) => guarded(option, () => constraint.mask(Uint32Array.from(accepted))),
      free: () => { if (madeAt === restarts) constraint.free(); },
    };
  }

  /** Lets go of what the module holds for this engine. */
  free(): void {
    if (this.#compiler?.restarts === restarts) this.#compiler.made.free();
    this.#compiler = null;
  }

  async #compilerNow(): Promise<Compiler> {
    if (this.#compiler?.restarts === restarts) return this.#compiler.made;
    const vocabulary = await this.#vocabulary();
    const made = guarded('responseFormat', () => new glue.Compiler(vocabulary));
    this.#compiler = { made, restarts };
    return made;
  }
}

function start(url: URL): Promise<unknown> {
  starting ??= fetchModule(url, 'grammarWasmUrl').then((compiled) => glue.default({ module_or_path: compiled })).catch((error: unknown) => {
    starting = null;
    throw error;
  });
  return starting;
}

/** Calls the module; its errors name the option. A trap is the grammar's fault, and leaves a fresh module. */
function guarded<T>(option: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) {
      const detail = panicOf() ?? error.message;
      restarts += 1;
      glue.__wbg_reset_state();
      throw new EdgeError('invalid-argument', `${option}: this grammar stopped the grammar engine: ${detail.slice(0, 300)}`, { path: option });
    }
    const { code, message } = toErrorData(error);
    throw new EdgeError(code, `${option}: ${message}`, { path: option });
  }
}

function panicOf(): string | undefined {
  try {
    return glue.lastPanic();
  } catch {
    return undefined;
  }
}
