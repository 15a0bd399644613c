// The exports of the grammar engine's module (src/web/grammar.rs), as far as the package uses them. A test compares it
// with the module's own glue.

/** A vocabulary that grammars are compiled for. */
export class Compiler {
  /** `vocabulary`: what `Engine.grammarVocabulary` gave. */
  constructor(vocabulary: Uint8Array);
  /** `grammar`: JSON of a Grammar of the crate. */
  compile(grammar: string): Constraint;
  free(): void;
}

/** A grammar under way. */
export class Constraint {
  private constructor();
  /** The tokens that may come after `accepted`, as bits; none when the answer is complete. */
  mask(accepted: Uint32Array): Uint32Array;
  free(): void;
}

/** The message of the panic that stopped the module; undefined when it was none. */
export function lastPanic(): string | undefined;

/** Starts the module afresh after it stopped. What was made before must not be used any more. */
export function __wbg_reset_state(): void;

export default function init(source: { module_or_path: WebAssembly.Module }): Promise<{ readonly memory: WebAssembly.Memory }>;
