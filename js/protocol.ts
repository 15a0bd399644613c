// The one description of what the caller's side and the engine's side say to each other, by worker messages or directly.
// Everything here can be cloned. The caller numbers its calls; an answer carries the number of its call.

import type { ErrorData } from './errors.js';
import type { HubModel } from './model-names.js';
import type { BackendName, ChatMessage, Diagnostics, EdgeOptions, FinishReason, GenerateStats, MemoryReport, Plan, Pooling, Progress, TokenLogprob, ToolCall, ToolCallDelta } from './types.js';

/** One file of a model, ready to be opened on the engine's side. */
export type FileSpec =
  | { kind: 'url'; urls: string[]; name: string; sha256?: string; bytes?: number }
  | { kind: 'name'; name: string }
  | { kind: 'hub'; owner: string; repo: string; quant: string | null }
  | { kind: 'path'; path: string; name: string }
  | { kind: 'blob'; blob: Blob; name: string }
  | { kind: 'bytes'; bytes: Uint8Array; name: string }
  | { kind: 'handle'; handle: FileSystemFileHandle; name: string }
  /** A stream the caller's side reads; the engine's side pulls from the resource with this number. */
  | { kind: 'stream'; resource: number; name: string };

/** A file whose place is known: names were looked up. */
export type PlacedFile = Exclude<FileSpec, { kind: 'hub' | 'name' }>;

/** What a load needs to know. */
export interface LoadOptions {
  files: FileSpec[];
  backend: 'auto' | BackendName;
  powerPreference?: 'low-power' | 'high-performance';
  cache: NonNullable<EdgeOptions['cache']>;
  headers: [string, string][];
  /** Whether the caller gave a fetch of its own, which then makes every request. */
  ownFetch: boolean;
  wasmUrl: string | null;
  grammarWasmUrl: string | null;
  wasmBinary: BufferSource | null;
  engine: EngineOptions;
}

/** The options that the WASM module itself reads. */
export interface EngineOptions {
  maxContextTokens?: number;
  maxMemoryBytes?: number;
  prefixCacheBytes?: number;
  kvCache: 'auto' | 'f16' | 'q8' | 'f32';
  quantization: NonNullable<EdgeOptions['quantization']>;
  threads: number;
  chatTemplate?: string;
}

/** How the tokens of an answer are chosen. */
export interface SamplingOptions {
  maxTokens?: number;
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repeatPenalty?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  seed?: number;
  stop?: string[];
  logprobs?: boolean;
  topLogprobs?: number;
  /** By token id. */
  logitBias?: Record<string, number>;
  profile?: true;
  speculative?: boolean | { maxTokens?: number };
  responseFormat?: Record<string, unknown>;
}

/** A message as the engine reads it. */
export interface PlainMessage {
  role: ChatMessage['role'];
  content: string | null;
  name?: string;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
}

/** What to generate. */
export type GenerateRequest =
  | { kind: 'chat'; messages: PlainMessage[]; templateKwargs?: Record<string, unknown>; tools?: unknown[]; toolChoice?: unknown; prefill?: string; sampling: SamplingOptions }
  | { kind: 'complete'; prompt: string; sampling: SamplingOptions };

/** What to embed: texts, or token ids. */
export interface EmbedRequest {
  inputs: (string | number[])[];
  pooling?: Pooling;
  normalize: boolean;
  dimensions?: number;
  truncate: boolean;
}

/** A finished generation as the engine reports it. */
export interface GenerateReport {
  text: string;
  reasoning?: string;
  toolCalls?: ToolCall[];
  tokens: Uint32Array;
  finishReason: FinishReason;
  usage: { promptTokens: number; completionTokens: number; cachedTokens: number };
  logprobs?: TokenLogprob[];
  stats: GenerateStats;
}

/** What a look at a model tells, before it is loaded. */
export interface Survey {
  plan: Plan;
  /** Whether its files are here, being downloaded by another tab, or neither. */
  state: 'stored' | 'downloading' | 'missing';
}

/** Every call, with the type of its answer. */
export interface Calls {
  load: { request: LoadOptions; answer: LoadedFacts };
  survey: { request: LoadOptions; answer: Survey };
  store: { request: LoadOptions; answer: null };
  generate: { request: GenerateRequest; answer: GenerateReport };
  /** Of each input two counts of tokens, then the bits of its vector. */
  embed: { request: EmbedRequest; answer: Uint32Array[] };
  tokenize: { request: string; answer: Uint32Array };
  detokenize: { request: Uint32Array; answer: string };
  countTokens: { request: PlainMessage[]; answer: number };
  score: { request: Uint32Array; answer: Uint32Array };
  memory: { request: null; answer: MemoryReport };
  close: { request: null; answer: null };
}

/** What is known once a model is loaded. */
export type LoadedFacts = Omit<Diagnostics, 'worker' | 'model'>;

export type CallName = keyof Calls;

/** One call with its request. */
export type Call = { [Name in CallName]: { name: Name; request: Calls[Name]['request'] } }[CallName];

/** From the caller's side to the engine's. */
export type ToHost =
  | { type: 'call'; id: number; call: Call }
  | { type: 'cancel'; id: number }
  | { type: 'fetched'; resource: number; url: string; status: number; headers: [string, string][] }
  | { type: 'chunk'; resource: number; bytes: Uint8Array | null }
  | { type: 'found'; resource: number; files: PlacedFile[] }
  | { type: 'failed'; resource: number; error: ErrorData };

/** From the engine's side to the caller's. */
export type FromHost =
  | { type: 'ready' }
  | { type: 'answer'; id: number; value: Calls[CallName]['answer'] }
  | { type: 'error'; id: number; error: ErrorData }
  | { type: 'piece'; id: number; piece: string }
  | { type: 'thought'; id: number; piece: string }
  | { type: 'toolCall'; id: number; delta: ToolCallDelta }
  | { type: 'logprob'; id: number; entry: TokenLogprob }
  | { type: 'progress'; id: number; progress: Progress }
  | { type: 'fetch'; resource: number; url: string; headers: [string, string][] }
  | { type: 'find'; resource: number; model: HubModel; headers: [string, string][] }
  | { type: 'pull'; resource: number }
  | { type: 'drop'; resource: number }
  /** The engine is gone, with everything it was doing. */
  | { type: 'crash'; error: ErrorData };

/** The engine's end of the line, wherever it runs. */
export interface Port {
  post(message: ToHost): void;
  close(): Promise<void>;
}
