// The types of the browser's `LanguageModel`, as far as `@hanzo/edge/prompt-api` fills them in. Only declarations.

/** What can be said of a model before it is created. */
export type Availability = 'unavailable' | 'downloadable' | 'downloading' | 'available';

/** A part of a message; only text is taken. */
export interface LanguageModelContent {
  type: 'text' | (string & {});
  value: unknown;
}

/** A message. `prefix` makes a last message of the assistant the beginning of the answer. */
export interface LanguageModelMessage {
  role: 'system' | 'user' | 'assistant';
  content: string | readonly LanguageModelContent[];
  prefix?: boolean;
}

/** What a prompt may be; a string is the user's message. */
export type LanguageModelPrompt = string | readonly LanguageModelMessage[];

/** A function that the model may call; what it answers goes back to the model. */
export interface LanguageModelTool {
  name: string;
  description: string;
  /** A JSON schema of the object that `execute` gets. */
  inputSchema: object;
  execute(input: unknown): Promise<string> | string;
}

/** The options that decide whether there is such a model. */
export interface LanguageModelCoreOptions {
  topK?: number;
  temperature?: number;
  expectedInputs?: readonly { type: string; languages?: readonly string[] }[];
  expectedOutputs?: readonly { type: string; languages?: readonly string[] }[];
  tools?: readonly LanguageModelTool[];
}

/** How far a download is. */
export interface DownloadProgress extends Event {
  /** The share that is there, 0 to 1. */
  loaded: number;
  total: number;
}

/** Where 'downloadprogress' events are dispatched: an `EventTarget`. */
export interface CreateMonitor {
  addEventListener(type: 'downloadprogress', listener: (event: DownloadProgress) => void, options?: { once?: boolean; signal?: AbortSignal }): void;
}

/** The options of `create`. */
export interface LanguageModelCreateOptions extends LanguageModelCoreOptions {
  signal?: AbortSignal;
  monitor?(monitor: CreateMonitor): void;
  initialPrompts?: readonly LanguageModelMessage[];
}

/** The options of a prompt. */
export interface LanguageModelPromptOptions {
  /** A JSON schema or a `RegExp` that the answer fits. */
  responseConstraint?: object;
  /** Whether to keep the constraint out of the prompt. */
  omitResponseConstraintInput?: boolean;
  signal?: AbortSignal;
}

/** A session with a model. */
export interface LanguageModelSession extends EventTarget {
  readonly contextUsage: number;
  readonly contextWindow: number;
  oncontextoverflow: ((event: Event) => unknown) | null;
  prompt(input: LanguageModelPrompt, options?: LanguageModelPromptOptions): Promise<string>;
  promptStreaming(input: LanguageModelPrompt, options?: LanguageModelPromptOptions): ReadableStream<string>;
  append(input: LanguageModelPrompt, options?: { signal?: AbortSignal }): Promise<undefined>;
  measureContextUsage(input: LanguageModelPrompt, options?: LanguageModelPromptOptions): Promise<number>;
  clone(options?: { signal?: AbortSignal }): Promise<LanguageModelSession>;
  destroy(): void;
}

/** What `LanguageModel` is: it has no public constructor. */
export interface LanguageModelStatic {
  availability(options?: LanguageModelCoreOptions): Promise<Availability>;
  create(options?: LanguageModelCreateOptions): Promise<LanguageModelSession>;
}
