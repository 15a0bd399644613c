// The public types of the package. Only declarations: no code, and nothing of how the engine is driven.

import type { EdgeErrorCode } from './errors.js';
import type { ChatCompletions } from './openai-types.js';

/** A class of the platform where the user's library declares it; nothing where it does not, as in Node without DOM types. */
type Platform<Name extends string> = typeof globalThis extends { [Key in Name]: { prototype: infer Instance } } ? Instance : never;

/** One message of a conversation. */
export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  /** Text, or a list of text parts, which are joined. An assistant's turn that calls functions may have none. */
  content?: string | readonly TextPart[] | null;
  name?: string;
  /** In an assistant's turn: the functions it called. */
  tool_calls?: readonly ToolCall[];
  /** In a turn of the role 'tool': the call whose result it holds. */
  tool_call_id?: string;
}

/** A function that the model may call. */
export interface Tool {
  type: 'function';
  function: {
    /** 1 to 64 letters, digits, `_`, `-` and `.`. */
    name: string;
    description?: string;
    /** A JSON schema of the arguments, an object's, or a schema object with `toJSONSchema()`. */
    parameters?: Readonly<Record<string, unknown>> | SchemaObject;
    strict?: boolean | null;
  };
}

/** Whether the model calls functions: it decides, it does not, it calls one or more, or it calls this one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { type: 'function'; function: { name: string } };

/** A call of a function. */
export interface ToolCall {
  id: string;
  type: 'function';
  function: {
    name: string;
    /** JSON; as far as it came where the answer was cut. */
    arguments: string;
  };
}

/** What a piece of an answer adds to a call. `id` and `name` come once, with the first piece of the call. */
export interface ToolCallDelta {
  /** The number of the call in the answer. */
  index: number;
  id?: string;
  name?: string;
  /** To be appended to the arguments. */
  argumentsDelta: string;
}

/** A schema of a validation library, such as Zod's, that can say itself as a JSON schema. */
export type SchemaObject = { toJSONSchema(): unknown } | { toJsonSchema(): unknown };

/**
 * What the answer has to be: text, any JSON object, JSON that a schema accepts (in OpenAI's form or the short one), what
 * a regular expression matches, or what the rule `start` of a Lark grammar derives. A schema object stands for its schema.
 */
export type ResponseFormat =
  | { type: 'text' }
  | { type: 'json_object' }
  | { type: 'json_schema'; json_schema: { name?: string; description?: string; strict?: boolean | null; schema?: Readonly<Record<string, unknown>> | SchemaObject } }
  | { type: 'json_schema'; schema: Readonly<Record<string, unknown>> | SchemaObject }
  | { type: 'regex'; regex: string | RegExp }
  | { type: 'grammar'; grammar: string }
  | SchemaObject;

/** A part of a message's content. */
export interface TextPart {
  type: 'text';
  text: string;
}

/** Where one file of a model comes from, with what is known of it. */
export interface ModelUrl {
  url: string | URL;
  /** The file's SHA-256 in hexadecimal; a download that differs fails with 'integrity'. */
  sha256?: string;
  /** The file's size in bytes. */
  bytes?: number;
  /** Other addresses of the same file, for when the first does not answer. */
  mirrors?: readonly (string | URL)[];
}

/** One file of a model. In Node a string may also be a path. */
export type ModelFile = string | URL | ModelUrl | Blob | Uint8Array | ReadableStream<Uint8Array> | Platform<'FileSystemFileHandle'>;

/**
 * What to load: a registry name, a URL, `hf:owner/repo[:quant]`, a `Blob` or `File`, bytes, a stream, a file handle,
 * or the shards of a split model in any order.
 */
export type ModelSource = ModelFile | readonly ModelFile[];

/** A way to hold weights. */
export type Quantization = 'auto' | 'none' | 'afq-2' | 'afq-3' | 'afq-4' | 'afq-6' | 'afq-8' | 'int8';

/** The options of `HanzoEdge.init`. */
export interface EdgeOptions {
  /** Default: 'smollm2-135m-instruct'. */
  model?: ModelSource;
  /**
   * How weights are held. 'none': as the file stores them. 'auto': so too where they fit `maxMemoryBytes` and the platform,
   * else in the most bits that fit. 'afq-N': affine groups of N bits. 'int8': rows of bytes, on the CPU with activations in
   * bytes too. A weight that would not get smaller stays as it is; `diagnostics.weights` says what was done.
   */
  quantization?: Quantization;
  /** Element type of the key/value cache. 'auto' is 'f16'; 'q8' takes about half its memory. */
  kvCache?: 'auto' | 'f16' | 'q8' | 'f32';
  /** Default: the least of the model's own limit, 4096, and what memory allows. */
  maxContextTokens?: number;
  maxMemoryBytes?: number;
  /**
   * Most bytes for copies of conversations that left the key/value cache, so that going back to one does not run its prompt
   * again; 0 keeps none. Default: as many as the cache itself takes, within `maxMemoryBytes`. `memory().kvBytes` counts them.
   */
  prefixCacheBytes?: number;
  /** 'auto' takes a real GPU where there is one, else the CPU; `diagnostics` says why. */
  backend?: 'auto' | 'webgpu' | 'cpu';
  /**
   * CPU threads, the engine's own included. Default: about half the logical processors, at most 8. One where the page is
   * not cross-origin isolated, where no worker runs the engine, and where a GPU does; `diagnostics.wasmReason` says so.
   */
  threads?: number;
  powerPreference?: 'low-power' | 'high-performance';
  /** A Jinja chat template in place of the file's own. */
  chatTemplate?: string;
  /**
   * Ending in '/': the folder of the package's .wasm files, of which the best is taken. Otherwise one of these files,
   * under its own name, or the base module under another.
   */
  wasmUrl?: string | URL;
  /** The grammar engine's module, hanzo-edge-grammar.wasm, which is fetched when it is first needed. */
  grammarWasmUrl?: string | URL;
  /** The bytes of the base module, hanzo-edge.wasm. */
  wasmBinary?: ArrayBuffer | ArrayBufferView;
  /** `false` runs in the caller's thread; a URL names a copy of the package's worker.js (or another of its workers); or a worker that runs it. */
  worker?: boolean | string | URL | Platform<'Worker'>;
  /** Where downloads are kept. 'auto': the origin's private files, else the Cache API, else memory. In Node a folder. */
  cache?: 'auto' | 'opfs' | 'cache-api' | 'memory' | 'none';
  fetch?: typeof fetch;
  headers?: ConstructorParameters<typeof Headers>[0];
  signal?: AbortSignal;
  onProgress?(progress: Progress): void;
}

/** How far a load or a prompt is. `loaded` and `total` are bytes, or tokens in the phase 'prompt'. */
export interface Progress {
  phase: 'download' | 'verify' | 'compile' | 'upload' | 'warmup' | 'prompt';
  loaded: number;
  total: number | null;
  file?: string;
  bytesPerSecond?: number;
  etaMs?: number;
}

/** Whether a model can be used: at once, after a download, after one that is under way, or not here. */
export type Availability = 'available' | 'downloadable' | 'downloading' | 'unavailable';

/** What loading a model would take, told from the headers of its files. */
export interface Plan {
  /** What is still to be downloaded. */
  downloadBytes: number;
  /** What `memory()` will report, in bytes; `scratch` once a long prompt was read. */
  memoryBytes: { weights: number; kv: number; scratch: number; total: number };
  fits: boolean;
  backend: BackendName;
  /** How most of the weights are stored, by the format's name. */
  quantization: string;
  contextTokens: number;
  /** Why this backend, or why it does not fit. */
  reason: string;
  /** Of what there is too little where it does not fit: 'out-of-memory', 'limits' or 'quota'. */
  code?: EdgeErrorCode;
}

/** A model that is stored, in whole or in part. */
export interface ModelInfo {
  /** The model as it was named when it was downloaded. */
  name: string;
  /** The address of its first file. */
  url: string;
  /** Bytes that are stored. */
  bytes: number;
  /** The model's size; null while unknown. */
  totalBytes: number | null;
  complete: boolean;
  /** The kind of place that holds it. */
  where: 'opfs' | 'cache-api' | 'memory' | 'disk';
  lastUsed: Date;
}

/** The options of a download. */
export type DownloadOptions = Pick<EdgeOptions, 'cache' | 'fetch' | 'headers' | 'signal' | 'onProgress' | 'wasmUrl' | 'wasmBinary' | 'worker'>;

/** The models that are stored here. */
export interface Models {
  list(): Promise<ModelInfo[]>;
  /** Stores a model without loading it; a later `init` finds it, online or not. */
  download(model: ModelSource, options?: DownloadOptions): Promise<void>;
  /** Removes a model, wherever it is stored. One that is not stored is no fault. */
  delete(model: ModelSource): Promise<void>;
  /** Asks the browser not to remove what is stored when space gets short; whether it agreed. */
  persist(): Promise<boolean>;
}

/** The options of one generation. Sampling defaults to the file's generation config. */
export interface GenerateOptions {
  /** Default: the room left in the context. */
  maxTokens?: number;
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repeatPenalty?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  seed?: number;
  stop?: string | readonly string[];
  /** Whether the result lists the log-probability of each token. */
  logprobs?: boolean;
  /** How many of the most likely tokens to list with each, 0 to 20; needs `logprobs`. */
  topLogprobs?: number;
  /** Measures every kernel, for `stats.kernels`; slow. Needs a GPU with timestamp queries, or the CPU. */
  profile?: boolean;
  /** Hears of them token by token, before the piece that the token ends. */
  onLogprob?(entry: TokenLogprob): void;
  /** Added to the logits of these token ids. */
  logitBias?: Readonly<Record<number, number>>;
  /**
   * Guesses tokens ahead: what followed the same words before in prompt and answer. The answer is the same; texts that
   * repeat their prompt come faster. `maxTokens`: the most tokens of a guess, 15 unless given, at most 32.
   */
  speculative?: boolean | { maxTokens?: number };
  /** What the answer has to be; see `ResponseFormat`. */
  responseFormat?: ResponseFormat;
  signal?: AbortSignal;
  onProgress?(progress: Progress): void;
}

/** The options of one chat answer. */
export interface ChatOptions extends GenerateOptions {
  /** Functions that the model may call. */
  tools?: readonly Tool[];
  /** Default: 'auto'. */
  toolChoice?: ToolChoice;
  /** Hears of calls as they are written. */
  onToolCallDelta?(delta: ToolCallDelta): void;
  /** Hears what the model thinks before it answers, piece by piece. */
  onReasoning?(piece: string): void;
  /** Further variables for the chat template. */
  chatTemplateKwargs?: Readonly<Record<string, unknown>>;
  /** The beginning of the answer, which the model continues; not part of the result's text. */
  prefill?: string;
}

/** Why a generation ended. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'abort' | 'context';

/** A token with its log-probability. */
export interface TokenLogprob {
  id: number;
  /** Its text, with replacement characters where it holds part of a character. */
  token: string;
  bytes: number[];
  /** Natural logarithm of its probability at temperature 1, before penalties; -9999 for an impossible token. */
  logprob: number;
  /** The most likely tokens at this place, the likeliest first. */
  topLogprobs?: TokenLogprob[];
}

/** Everything about a finished generation. */
export interface GenerateResult {
  text: string;
  /** What the model thought before it answered, where it says so. */
  reasoning?: string;
  /** The functions it called, all whole where `finishReason` is 'tool_calls'. */
  toolCalls?: ToolCall[];
  tokens: Uint32Array;
  finishReason: FinishReason;
  usage: { promptTokens: number; completionTokens: number; cachedTokens: number };
  /** One entry per token, where `logprobs` was asked for. */
  logprobs?: TokenLogprob[];
  stats: GenerateStats;
}

/** What a generation took. */
export interface GenerateStats {
  timeToFirstTokenMs: number;
  promptMs: number;
  decodeMs: number;
  promptTokensPerSecond: number;
  decodeTokensPerSecond: number;
  backend: 'webgpu' | 'cpu';
  threads?: number;
  /** With `speculative`: tokens guessed ahead, and those of them that were right. */
  draftedTokens?: number;
  acceptedTokens?: number;
  /** Time by kernel, the longest first, where `profile` asked for it. Browsers round a GPU's times. */
  kernels?: KernelTime[];
}

/** What one kernel took in all. 'stream' only reads weights: what the memory gives. */
export interface KernelTime {
  kernel: string;
  calls: number;
  us: number;
  /** Of weights read. */
  bytes: number;
}

/**
 * An answer as it comes. It can be read once, by `for await` or as `readable`; `result` needs no reading.
 * Leaving the loop or `cancel()` ends the work and resolves `result` with finishReason 'abort'. So does dropping the
 * iterator, once it is collected, unless `result` was asked for.
 */
export interface TokenStream extends AsyncIterable<string> {
  readonly result: Promise<GenerateResult>;
  readonly readable: ReadableStream<string>;
  cancel(): void;
}

/** Answers a conversation. */
export interface Chat {
  (messages: readonly ChatMessage[], options?: ChatOptions): TokenStream;
  /** The same with OpenAI's requests and answers. */
  readonly completions: ChatCompletions;
}

/** How the states of a text's tokens become one vector; with 'none' they stay, one after the other. */
export type Pooling = 'none' | 'mean' | 'cls' | 'last';

/** The options of `embed`. */
export interface EmbedOptions {
  /** Default: as the model's file says, else 'last'. */
  pooling?: Pooling;
  /** Whether vectors are scaled to length 1. Default: true. */
  normalize?: boolean;
  /** Leading elements of a vector that are kept, before it is scaled. Default: all. */
  dimensions?: number;
  /** Whether a text that is longer than the context is cut at its end, which otherwise is an error. Default: false. */
  truncate?: boolean;
  signal?: AbortSignal;
  /** `loaded` and `total` are tokens of all texts. */
  onProgress?(progress: Progress): void;
}

/** What to embed: texts, or token ids, which are taken as they are. */
export type EmbedInput = string | Uint32Array | readonly (string | Uint32Array)[];

/** A message as Chrome's Prompt API has it. With `prefix` the last one is the beginning of the answer. */
export interface PromptMessage {
  role: 'system' | 'user' | 'assistant';
  content: string | readonly { type: 'text'; value: string }[];
  prefix?: boolean;
}

/** What a session is asked: a string is the user's message. */
export type SessionInput = string | readonly (ChatMessage | PromptMessage)[];

/** The options of a session: those of its prompts, and how it begins. */
export interface SessionOptions extends ChatOptions {
  /** Never forgotten. */
  initialPrompts?: readonly (ChatMessage | PromptMessage)[];
  /**
   * What to do when the conversation no longer fits. 'error' rejects; 'drop-oldest' forgets the oldest turns before it
   * answers; 'slide' does so in the middle of an answer as well, which then does not end when the context is full.
   * Default 'error'.
   */
  overflow?: 'error' | 'drop-oldest' | 'slide';
}

/** A conversation that remembers its turns. Dispatches 'contextoverflow' when turns are forgotten. */
export interface EdgeSession extends EventTarget {
  prompt(input: SessionInput, options?: ChatOptions): Promise<string>;
  promptStreaming(input: SessionInput, options?: ChatOptions): TokenStream;
  /** Adds messages without an answer. Rejects with 'context-overflow' what does not fit, and stays as it was. */
  append(input: SessionInput, options?: { signal?: AbortSignal }): Promise<void>;
  /** How many tokens the input would add to the context. */
  measureContextUsage(input: SessionInput): Promise<number>;
  /** A session of its own with the same turns. */
  clone(options?: { signal?: AbortSignal }): Promise<EdgeSession>;
  /** Tokens of the context in use, as of the last finished call. */
  readonly contextUsage: number;
  readonly contextWindow: number;
  oncontextoverflow: ((event: Event) => unknown) | null;
  destroy(): void;
}

/** A backend's name as users see it. */
export type BackendName = 'webgpu' | 'cpu';

/** What runs the model and why. */
export interface Diagnostics {
  /** The model's name: the registry's, or the file's without its ending. */
  model: string;
  backend: BackendName;
  reason: string;
  rejected: { backend: BackendName; reason: string }[];
  adapter?: AdapterFacts;
  /** The device as the backend names it: the adapter, or the instruction set. */
  device: string;
  /** The file of the WASM module. */
  wasmModule: string;
  /** Why this module, and why not more threads. */
  wasmReason: string;
  threads: number;
  /** Whether a worker runs it, and if not, why. */
  worker: { used: boolean; reason: string };
  /** Where the model came from: the network, a cache, or the caller. */
  cache: {
    kind: string;
    hit: boolean;
    /** Why the download could not be stored, where that failed. */
    fault?: string;
  };
  contextTokens: number;
  weights: HeldWeights;
  variants: Record<string, string>;
  selfTest: { kernel: string; ok: boolean; error?: string }[];
}

/** How the weights are held. */
export interface HeldWeights {
  /** 'none', or how they were quantized while loading. */
  quantization: Exclude<Quantization, 'auto'>;
  reason: string;
  /** Of all weights. */
  bytes: number;
  /** The matrices by layout, such as 'b4g64a': 4-bit codes in affine groups of 64 columns. */
  matrices: Record<string, { count: number; bytes: number }>;
}

/** The GPU as the browser names it. */
export interface AdapterFacts {
  vendor: string;
  architecture: string;
  device: string;
  description: string;
  isFallback: boolean;
}

/** Memory in bytes by use. */
export interface MemoryReport {
  weightsBytes: number;
  kvBytes: number;
  scratchBytes: number;
  wasmBytes: number;
  gpuBytes: number;
  peakBytes: number;
}
