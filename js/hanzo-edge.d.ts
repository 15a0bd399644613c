// The exports of the WASM module (src/web), as far as the package uses them. The build puts the module's own glue beside
// the compiled files; a test compares it with this description.

/** A source of bytes being turned into an engine; see `Loader` of the crate. */
export class Loader {
  /** `options`: JSON of LoaderOptions. */
  constructor(options: string);
  /** JSON of a LoaderNeed. */
  need(): string;
  supply(bytes: Uint8Array): void;
  /** What the model would take on a `machine`, JSON of the crate's Machine; to be asked before `open`. JSON of an Outlook. */
  plan(machine: string): string;
  open(): Promise<void>;
  /** Undefined when the backend failed its test and the next one was chosen: go on with `need`. */
  finish(): Promise<Engine | undefined>;
  free(): void;
}

/** A loaded model. */
export class Engine {
  private constructor();
  tokenize(text: string): Uint32Array;
  detokenize(ids: Uint32Array): string;
  /** Tokens of a conversation with its template; `messages`: JSON of PlainMessage[]. */
  countTokens(messages: string): number;
  /** `request`: JSON of a GenerateRequest. */
  start(request: string): Generation;
  /** `request`: JSON of an EmbedRequest. */
  embed(request: string): Embedding;
  /** The vocabulary as the grammar module takes it. */
  grammarVocabulary(): Uint8Array;
  /** The most likely next token after each token. */
  score(ids: Uint32Array): Promise<Uint32Array>;
  /** JSON of EngineFacts. */
  diagnostics(): string;
  /** JSON of the backend's part of a MemoryReport. */
  memory(): string;
  free(): void;
}

/** An answer under way. */
export class Generation {
  private constructor();
  /** JSON of a GenerationEvent. */
  next(): Promise<string>;
  /** JSON of what the answer has to follow, for the grammar module; undefined when it is free. */
  grammar(): string | undefined;
  /** Answers a 'mask' event. */
  supplyMask(bits: Uint32Array): void;
  cancel(): void;
  free(): void;
}

/** Texts on their way to vectors. */
export class Embedding {
  private constructor();
  /** Runs the next part: tokens run so far, those in all, and when an input is done the bits of its vector. */
  next(): Promise<Uint32Array>;
  free(): void;
}

/** A running SHA-256. */
export class Sha256 {
  constructor();
  update(bytes: Uint8Array): void;
  /** The digest in hexadecimal; uses the hasher up. */
  finish(): string;
}

/** The model registry as JSON. */
export function registry(): string;

/** The message of the panic that stopped the module; undefined when it was none. */
export function lastPanic(): string | undefined;

/** What instantiation gives. */
export interface InitOutput {
  readonly memory: WebAssembly.Memory;
}

/** `memory` and `thread_stack_size` are for modules with threads. */
export default function init(source: { module_or_path: WebAssembly.Module; memory?: WebAssembly.Memory; thread_stack_size?: number }): Promise<InitOutput>;
