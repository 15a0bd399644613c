// Reads the bodies of OpenAI's requests into this package's options, and names OpenAI's fields in errors. It checks what
// the engine cannot see: unknown fields, and shapes that have another form here. Ranges are the engine's to check.

import { EdgeError } from './errors.js';
import type { ChatBody, ChatBodyMessage, CompletionUsage } from './openai-types.js';
import type { ChatMessage, ChatOptions, GenerateOptions, GenerateResult } from './types.js';

/** Fields that are options of a generation, by the option's name. */
const SAMPLING = {
  temperature: 'temperature', top_p: 'topP', top_k: 'topK', min_p: 'minP', repeat_penalty: 'repeatPenalty',
  frequency_penalty: 'frequencyPenalty', presence_penalty: 'presencePenalty', seed: 'seed', stop: 'stop', logit_bias: 'logitBias',
  max_tokens: 'maxTokens',
} as const satisfies Record<string, keyof GenerateOptions>;

/** Fields that are options of a chat, by the option's name. */
const CHAT = {
  ...SAMPLING, logprobs: 'logprobs', top_logprobs: 'topLogprobs', chat_template_kwargs: 'chatTemplateKwargs',
  tools: 'tools', tool_choice: 'toolChoice', response_format: 'responseFormat', max_completion_tokens: 'maxTokens',
} as const satisfies Record<string, keyof ChatOptions>;

/** Fields of every request that are not options. */
const COMMON = ['model', 'n', 'stream', 'stream_options'];

/** Fields that change nothing about an answer of this engine. */
const IGNORED = [
  'metadata', 'prediction', 'prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'safety_identifier',
  'service_tier', 'store', 'user',
];

/** What a request asks for beside its prompt. */
export interface BodyRequest<Options> {
  options: Options;
  /** How many answers. */
  count: number;
  model: string | null;
  isStream: boolean;
  includeUsage: boolean;
}

/** A chat request. */
export function readChatBody(body: ChatBody): BodyRequest<ChatOptions> & { messages: ChatMessage[]; isOneCall: boolean } {
  checkFields(body, [...Object.keys(CHAT), 'messages', 'modalities', 'parallel_tool_calls']);
  const { modalities, parallel_tool_calls: isParallel } = body as ChatBody & { modalities?: unknown };
  if (isGiven(modalities) && String(modalities) !== 'text') throw wrong('modalities', "['text']", modalities);
  if (!Array.isArray(body.messages)) throw wrong('messages', 'a list of at least one message', body.messages);
  return { ...readBody(body, CHAT), messages: body.messages.map(readMessage), isOneCall: isParallel === false };
}

/** Checks that every field is one of `known`, common to all requests, or harmless. */
export function checkFields(body: object, known: readonly string[]): void {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw wrong('body', 'an object', body);
  const all = [...known, ...COMMON];
  for (const [field, value] of Object.entries(body)) {
    if (all.includes(field) || IGNORED.includes(field) || !isGiven(value)) continue;
    throw new EdgeError('invalid-argument', `${field}: this field is unknown or not supported; supported: ${all.join(', ')}`, { path: field });
  }
}

/** The options and the common fields of a body. A later field of the table wins over an earlier one for the same option. */
export function readBody<Options extends GenerateOptions>(body: object, table: Readonly<Record<string, string>> = SAMPLING): BodyRequest<Options> {
  const given = body as Readonly<Record<string, unknown>>;
  const options: Record<string, unknown> = {};
  for (const [field, option] of Object.entries(table)) if (isGiven(given[field])) options[option] = given[field];
  const { n, model, stream, stream_options: streamOptions } = given as Partial<ChatBody>;
  if (isGiven(model) && typeof model !== 'string') throw wrong('model', 'a string', model);
  if (isGiven(stream) && typeof stream !== 'boolean') throw wrong('stream', 'true or false', stream);
  if (isGiven(n) && !(Number.isInteger(n) && n >= 1 && n <= 128)) throw wrong('n', 'a whole number from 1 to 128', n);
  return {
    options: options as Options,
    count: n ?? 1,
    model: model ?? null,
    isStream: stream ?? false,
    includeUsage: streamOptions?.include_usage === true,
  };
}

/** The options of the answer with this index: a seed of its own. */
export function optionsOf<Options extends GenerateOptions>(options: Options, index: number): Options {
  return typeof options.seed === 'number' && index > 0 ? { ...options, seed: options.seed + index } : options;
}

/** The failure of a request, in the words of its body: its option is named as the field is. */
export function inBodyWords(error: unknown, body: object): unknown {
  if (!(error instanceof EdgeError) || error.code !== 'invalid-argument') return error;
  const option = /^\w+/.exec(error.message)?.[0] ?? '';
  const field = Object.entries(CHAT).find(([name, itsOption]) => itsOption === option && name in body)?.[0];
  if (!field) return error;
  return new EdgeError(error.code, error.message.replace(option, field), { path: error.path?.replace(option, field) ?? field, cause: error });
}

/** Usage over all answers to one prompt, which counts once. */
export function usageOf(results: readonly GenerateResult[]): CompletionUsage {
  const { promptTokens = 0, cachedTokens = 0 } = results[0]?.usage ?? {};
  const completion = results.reduce((sum, { usage }) => sum + usage.completionTokens, 0);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completion,
    total_tokens: promptTokens + completion,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

/** An identifier like OpenAI's. */
export function makeId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `${prefix}-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** Now, in seconds since 1970. */
export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

function readMessage(message: ChatBodyMessage, index: number): ChatMessage {
  const path = `messages[${index}]`;
  if (typeof message !== 'object' || message === null) throw wrong(path, '{ role, content }', message);
  const { function_call: call, audio } = message as { function_call?: unknown; audio?: unknown };
  if (isGiven(call)) throw wrong(`${path}.function_call`, 'tool_calls in its place', call);
  if (isGiven(audio)) throw wrong(`${path}.audio`, 'text', audio);
  const { role, content, name, tool_calls: calls, tool_call_id: callId } = message;
  const hasCalls = isGiven(calls) && calls.length > 0;
  return {
    role: role === 'developer' ? 'system' : role,
    // An answer without a word can be handed back as it came.
    content: role === 'assistant' && !hasCalls ? content ?? '' : content ?? null,
    ...(isGiven(name) ? { name } : {}),
    ...(hasCalls ? { tool_calls: calls } : {}),
    ...(isGiven(callId) ? { tool_call_id: callId } : {}),
  } as ChatMessage;
}

/** Whether a field was given; null counts as absent. */
function isGiven<T>(value: T): value is NonNullable<T> {
  return value !== undefined && value !== null;
}

/** The error for a field of the wrong kind. */
export function wrong(field: string, expected: string, found: unknown): EdgeError {
  const shown = JSON.stringify(found)?.slice(0, 60) ?? String(found);
  return new EdgeError('invalid-argument', `${field}: expected ${expected}, found ${shown}`, { path: field });
}
