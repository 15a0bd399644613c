// The types of `edge.chat.completions`: OpenAI's shapes, as far as this package fills them in. Only declarations. What is
// taken is wide enough for the `openai` package's own request types; what is given fits its answer types. A test compares.

import type { ResponseFormat, ToolCall } from './types.js';

/** A part of a message's content; only text parts are taken. */
export interface ChatContentPart {
  type: string;
  text?: string;
}

/** A message of a request. */
export interface ChatBodyMessage {
  /** 'developer' counts as 'system'. */
  role: string;
  /** May be null or missing beside `tool_calls`. */
  content?: string | readonly ChatContentPart[] | null;
  name?: string;
  tool_calls?: readonly { id: string; type: string; function?: { name: string; arguments: string } }[];
  /** With the role 'tool': the call it answers. */
  tool_call_id?: string;
}

/** A tool the model may call; only functions are taken. */
export interface ChatTool {
  type: string;
  function?: { name: string; description?: string; parameters?: Record<string, unknown>; strict?: boolean | null };
}

/** Which tool to call. */
export type ChatToolChoice = 'none' | 'auto' | 'required' | { type: string; function?: { name: string } };

/**
 * The body of a chat request. `null` counts as absent. A field that is not here and would change the answer fails with
 * 'invalid-argument'.
 */
export interface ChatBody {
  messages: readonly ChatBodyMessage[];
  /** A label, which the answer repeats: the engine has one model. Default: its name. */
  model?: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean } | null;
  /** Default: the room left in the context. */
  max_completion_tokens?: number | null;
  /** The old name of `max_completion_tokens`, which wins where both are given. */
  max_tokens?: number | null;
  /** How many answers, 1 to 128; they are computed one after the other. */
  n?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  /** The same seed gives the same answers; the answer with index i uses seed + i. */
  seed?: number | null;
  stop?: string | readonly string[] | null;
  logprobs?: boolean | null;
  top_logprobs?: number | null;
  logit_bias?: Readonly<Record<string, number>> | null;
  tools?: readonly ChatTool[] | null;
  tool_choice?: ChatToolChoice | null;
  /** `false`: the answer ends after its first call. */
  parallel_tool_calls?: boolean | null;
  /** OpenAI's forms, and the others of `ResponseFormat`. */
  response_format?: ResponseFormat | null;
  /** Not OpenAI's: see `GenerateOptions` and `ChatOptions`. */
  top_k?: number | null;
  min_p?: number | null;
  repeat_penalty?: number | null;
  chat_template_kwargs?: Readonly<Record<string, unknown>> | null;
  /** Ignored, since they change nothing about the answer here. */
  metadata?: unknown;
  prediction?: unknown;
  prompt_cache_key?: unknown;
  prompt_cache_options?: unknown;
  prompt_cache_retention?: unknown;
  safety_identifier?: unknown;
  service_tier?: unknown;
  store?: unknown;
  user?: unknown;
}

/** Tokens counted. */
export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** `cached_tokens`: of the prompt, those that were still in the cache. */
  prompt_tokens_details: { cached_tokens: number };
}

/** A token with its log-probability; -9999 stands for an impossible one. */
export interface ChatTokenLogprob {
  token: string;
  bytes: number[] | null;
  logprob: number;
  top_logprobs: { token: string; bytes: number[] | null; logprob: number }[];
}

/** The log-probabilities of an answer or a chunk. */
export interface ChatLogprobs {
  content: ChatTokenLogprob[] | null;
  refusal: null;
}

/** Why an answer ended; 'length' also where the context was full. */
export type ChatFinishReason = 'stop' | 'length' | 'tool_calls';

/** An answer. */
export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  /** Seconds since 1970. */
  created: number;
  model: string;
  choices: ChatCompletionChoice[];
  usage: CompletionUsage;
}

/** One of the answers. */
export interface ChatCompletionChoice {
  index: number;
  message: {
    role: 'assistant';
    /** Null beside tool calls without text. */
    content: string | null;
    refusal: null;
    /** What the model thought before it answered. Not OpenAI's. */
    reasoning_content?: string;
    tool_calls?: ToolCall[];
  };
  logprobs: ChatLogprobs | null;
  finish_reason: ChatFinishReason;
}

/** A piece of a streamed answer. */
export interface ChatCompletionChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  /** Empty in the last chunk where `include_usage` was asked for. */
  choices: ChatCompletionChunkChoice[];
  /** With `include_usage`: null in every chunk but the last. */
  usage?: CompletionUsage | null;
}

/** What a chunk adds to one of the answers. */
export interface ChatCompletionChunkChoice {
  index: number;
  delta: {
    role?: 'assistant';
    content?: string | null;
    refusal?: null;
    reasoning_content?: string;
    tool_calls?: { index: number; id?: string; type?: 'function'; function?: { name?: string; arguments?: string } }[];
  };
  logprobs: ChatLogprobs | null;
  /** Null in every chunk of an answer but its last. */
  finish_reason: ChatFinishReason | null;
}

/** `edge.chat.completions`. */
export interface ChatCompletions {
  /**
   * Answers as OpenAI's endpoint of this name does. Rejects with an `EdgeError`, or with the signal's reason. With
   * `stream: true` it resolves when the answer begins; leaving the loop stops the work.
   */
  create(body: ChatBody & { stream: true }, options?: { signal?: AbortSignal | null | undefined }): Promise<AsyncIterable<ChatCompletionChunk>>;
  create(body: ChatBody & { stream?: false | null }, options?: { signal?: AbortSignal | null | undefined }): Promise<ChatCompletion>;
  create(body: ChatBody, options?: { signal?: AbortSignal | null | undefined }): Promise<ChatCompletion | AsyncIterable<ChatCompletionChunk>>;
}
