// Checks what callers pass and turns it into what the protocol carries, once, at the edge. Ranges of sampling values are
// the engine's to check, with the same messages on every platform.

import { EdgeError } from './errors.js';
import { BASE_CHOICE } from './modules.js';
import type { ModuleChoice } from './modules.js';
import type { EngineOptions, GenerateRequest, LoadOptions, PlainMessage, SamplingOptions } from './protocol.js';
import { describeSource, modelName } from './source.js';
import type { KeepStream } from './source.js';
import { plainJson, plainResponseFormat, plainToolChoice, plainTools } from './structured.js';
import type { ChatMessage, ChatOptions, DownloadOptions, EdgeOptions, GenerateOptions, SessionOptions, ToolCall } from './types.js';

const DEFAULT_MODEL = 'smollm2-135m-instruct';

/** The names of an options type, each exactly once: the compiler complains when one is missing. */
export type NamesOf<T> = { [Name in keyof Required<T>]: true };

const EDGE_NAMES: NamesOf<EdgeOptions> = {
  model: true, quantization: true, kvCache: true, maxContextTokens: true, maxMemoryBytes: true, prefixCacheBytes: true, backend: true, threads: true,
  powerPreference: true, chatTemplate: true, wasmUrl: true, grammarWasmUrl: true, wasmBinary: true, worker: true, cache: true, fetch: true,
  headers: true, signal: true, onProgress: true,
};
const DOWNLOAD_NAMES: NamesOf<DownloadOptions> = {
  cache: true, fetch: true, headers: true, signal: true, onProgress: true, wasmUrl: true, wasmBinary: true, worker: true,
};
const GENERATE_NAMES: NamesOf<GenerateOptions> = {
  maxTokens: true, temperature: true, topK: true, topP: true, minP: true, repeatPenalty: true, frequencyPenalty: true,
  presencePenalty: true, seed: true, stop: true, logprobs: true, topLogprobs: true, onLogprob: true, logitBias: true, speculative: true,
  responseFormat: true, profile: true, signal: true, onProgress: true,
};
const CHAT_NAMES: NamesOf<ChatOptions> = {
  ...GENERATE_NAMES, tools: true, toolChoice: true, onToolCallDelta: true, onReasoning: true, chatTemplateKwargs: true, prefill: true,
};
const SESSION_NAMES: NamesOf<SessionOptions> = { ...CHAT_NAMES, initialPrompts: true, overflow: true };

const CHOICES = {
  quantization: ['auto', 'none', 'afq-2', 'afq-3', 'afq-4', 'afq-6', 'afq-8', 'int8'],
  kvCache: ['auto', 'f16', 'q8', 'f32'],
  backend: ['auto', 'webgpu', 'cpu'],
  powerPreference: ['low-power', 'high-performance'],
  cache: ['auto', 'opfs', 'cache-api', 'memory', 'none'],
  overflow: ['error', 'drop-oldest', 'slide'],
  role: ['system', 'user', 'assistant', 'tool'],
} as const;

/** Checks the options of `init`. */
export function checkEdgeOptions(options: EdgeOptions): void {
  checkNames(options, EDGE_NAMES);
  for (const name of ['quantization', 'kvCache', 'backend', 'powerPreference', 'cache'] as const) checkChoice(name, options[name]);
  checkWhole('maxContextTokens', options.maxContextTokens, 1, 2 ** 31);
  checkWhole('maxMemoryBytes', options.maxMemoryBytes, 1, Number.MAX_SAFE_INTEGER);
  checkWhole('prefixCacheBytes', options.prefixCacheBytes, 0, Number.MAX_SAFE_INTEGER);
  checkWhole('threads', options.threads, 1, 256);
  checkType('chatTemplate', options.chatTemplate, 'string');
  checkType('fetch', options.fetch, 'function');
  checkType('onProgress', options.onProgress, 'function');
  checkSignal(options.signal);
}

/** Checks the options of a download. */
export function checkDownloadOptions(options: DownloadOptions): void {
  checkNames(options, DOWNLOAD_NAMES);
  checkEdgeOptions(options);
}

/** The name of the model that these options load. */
export function nameOfModel(options: EdgeOptions): string {
  return modelName(describeSource(options.model ?? DEFAULT_MODEL, () => 0));
}

/** What a load request says; streams among the files stay with `keepStream`. */
export function loadOptions(options: EdgeOptions, keepStream: KeepStream, { threads }: ModuleChoice = BASE_CHOICE): LoadOptions {
  const { powerPreference } = options;
  const wasmUrl = absoluteUrl(options.wasmUrl);
  return {
    files: describeSource(options.model ?? DEFAULT_MODEL, keepStream),
    backend: options.backend ?? 'auto',
    ...(powerPreference ? { powerPreference } : {}),
    cache: options.cache ?? 'auto',
    headers: [...new Headers(options.headers)],
    ownFetch: options.fetch !== undefined,
    wasmUrl,
    grammarWasmUrl: absoluteUrl(options.grammarWasmUrl) ?? (wasmUrl?.endsWith('/') ? wasmUrl : null),
    wasmBinary: (options.wasmBinary as BufferSource | undefined) ?? null,
    engine: engineOptions(options, threads),
  };
}

/** A URL of the page's as a worker finds it too. */
function absoluteUrl(url: string | URL | undefined): string | null {
  if (url === undefined) return null;
  return url instanceof URL || typeof location === 'undefined' ? String(url) : new URL(url, location.href).href;
}

function engineOptions({ maxContextTokens, maxMemoryBytes, prefixCacheBytes, kvCache, quantization, chatTemplate }: EdgeOptions, threads: number): EngineOptions {
  return {
    kvCache: kvCache ?? 'auto',
    quantization: quantization ?? 'auto',
    threads,
    ...(maxContextTokens === undefined ? {} : { maxContextTokens }),
    ...(maxMemoryBytes === undefined ? {} : { maxMemoryBytes }),
    ...(prefixCacheBytes === undefined ? {} : { prefixCacheBytes }),
    ...(chatTemplate === undefined ? {} : { chatTemplate }),
  };
}

/** A chat's request. */
export function chatRequest(messages: readonly ChatMessage[], options: ChatOptions): GenerateRequest {
  checkNames(options, CHAT_NAMES);
  checkType('prefill', options.prefill, 'string');
  checkType('chatTemplateKwargs', options.chatTemplateKwargs, 'object');
  checkType('onToolCallDelta', options.onToolCallDelta, 'function');
  checkType('onReasoning', options.onReasoning, 'function');
  const { chatTemplateKwargs, prefill, tools, toolChoice } = options;
  return {
    kind: 'chat',
    messages: plainMessages(messages),
    ...(chatTemplateKwargs ? { templateKwargs: { ...chatTemplateKwargs } } : {}),
    ...(prefill ? { prefill: wellFormed(prefill) } : {}),
    ...(tools ? { tools: plainTools(tools) } : {}),
    ...(toolChoice ? { toolChoice: plainToolChoice(toolChoice) } : {}),
    sampling: sampling(options),
  };
}

/** A raw completion's request. */
export function completeRequest(prompt: string, options: GenerateOptions): GenerateRequest {
  checkNames(options, GENERATE_NAMES);
  if (typeof prompt !== 'string') throw wrong('prompt', 'a string', prompt);
  return { kind: 'complete', prompt: wellFormed(prompt), sampling: sampling(options) };
}

/** Checks the options of a session that are not its prompts'. */
export function checkSessionOptions(options: SessionOptions): void {
  checkNames(options, SESSION_NAMES);
  checkChoice('overflow', options.overflow);
  if (options.initialPrompts !== undefined && !Array.isArray(options.initialPrompts)) throw wrong('initialPrompts', 'a list of messages', options.initialPrompts);
}

/** Messages with their content as one string. */
export function plainMessages(messages: readonly ChatMessage[]): PlainMessage[] {
  if (!Array.isArray(messages) || messages.length === 0) throw wrong('messages', 'a list of at least one message', messages);
  return messages.map((message: unknown, index) => plainMessage(message, `messages[${index}]`));
}

function plainMessage(message: unknown, path: string): PlainMessage {
  if (typeof message !== 'object' || message === null) throw wrong(path, '{ role, content }', message);
  const { role, content, name, tool_calls: calls, tool_call_id: callId } = message as Partial<ChatMessage>;
  if (!CHOICES.role.includes(role as 'user')) throw wrong(`${path}.role`, CHOICES.role.join(', '), role);
  checkType(`${path}.name`, name, 'string');
  checkType(`${path}.tool_call_id`, callId, 'string');
  const hasCalls = role === 'assistant' && Array.isArray(calls) && calls.length > 0;
  const isEmpty = hasCalls && (content === null || content === undefined);
  return {
    role: role as PlainMessage['role'],
    content: isEmpty ? null : wellFormed(textOf(content, `${path}.content`)),
    ...(name === undefined ? {} : { name }),
    ...(hasCalls ? { tool_calls: plainJson(calls, `${path}.tool_calls`) as ToolCall[] } : {}),
    ...(callId === undefined ? {} : { tool_call_id: callId }),
  };
}

function textOf(content: unknown, path: string): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw wrong(path, 'a string or a list of text parts', content);
  return content.map((part: unknown, index) => {
    const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown };
    if (type !== 'text' || typeof text !== 'string') throw wrong(`${path}[${index}]`, "{ type: 'text', text }", part);
    return text;
  }).join('');
}

function sampling(options: GenerateOptions): SamplingOptions {
  const { signal, onProgress, onLogprob, stop, logprobs, logitBias, responseFormat, speculative, ...rest } = options;
  checkSignal(signal);
  checkType('onProgress', onProgress, 'function');
  checkType('onLogprob', onLogprob, 'function');
  checkType('profile', options.profile, 'boolean');
  const result: SamplingOptions = options.profile ? { profile: true } : {};
  for (const name of ['maxTokens', 'temperature', 'topK', 'topP', 'minP', 'repeatPenalty', 'frequencyPenalty', 'presencePenalty', 'seed', 'topLogprobs'] as const) {
    const value = rest[name];
    if (value === undefined || value === null) continue;
    // JSON knows neither NaN nor the infinities; they would arrive as "not given".
    if (typeof value !== 'number' || !Number.isFinite(value)) throw wrong(name, 'a finite number', value);
    result[name] = value;
  }
  if (logprobs !== undefined && typeof logprobs !== 'boolean') throw wrong('logprobs', 'true or false', logprobs);
  if (logprobs) result.logprobs = true;
  if (stop !== undefined) result.stop = stopStrings(stop);
  if (speculative !== undefined) {
    if (typeof speculative !== 'boolean' && (typeof speculative !== 'object' || speculative === null)) throw wrong('speculative', 'true, false or { maxTokens }', speculative);
    result.speculative = speculative;
  }
  if (logitBias !== undefined) result.logitBias = Object.fromEntries(Object.entries(logitBias).map(([id, bias]) => biasOf(id, bias)));
  if (responseFormat !== undefined && responseFormat !== null) result.responseFormat = plainResponseFormat(responseFormat);
  return result;
}

function stopStrings(stop: string | readonly string[]): string[] {
  const list: readonly unknown[] = typeof stop === 'string' ? [stop] : stop;
  if (!Array.isArray(list)) throw wrong('stop', 'a string or a list of strings', stop);
  return list.map((text: unknown, index) => {
    if (typeof text !== 'string') throw wrong(`stop[${index}]`, 'a string', text);
    return wellFormed(text);
  });
}

function biasOf(id: string, bias: unknown): [string, number] {
  if (!/^\d{1,10}$/.test(id)) throw wrong('logitBias', 'token ids as keys', id);
  if (typeof bias !== 'number' || !Number.isFinite(bias)) throw wrong(`logitBias[${id}]`, 'a finite number', bias);
  return [id, bias];
}

/** Text without lone surrogates, which cannot be encoded. */
export function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd');
}

/** Checks that every option is known. */
export function checkNames(options: object, known: Record<string, true>): void {
  for (const name of Object.keys(options)) {
    if (!(name in known)) throw new EdgeError('invalid-argument', `unknown option ${name}; known: ${Object.keys(known).join(', ')}`, { path: name });
  }
}

function checkChoice(name: keyof typeof CHOICES, value: unknown): void {
  const choices: readonly unknown[] = CHOICES[name];
  if (value !== undefined && !choices.includes(value)) throw wrong(name, choices.join(', '), value);
}

/** Checks that an option, where it is given, is a whole number in this range. */
export function checkWhole(name: string, value: unknown, least: number, most: number): void {
  if (value === undefined) return;
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) throw wrong(name, `a whole number from ${least} to ${most}`, value);
}

/** Checks the type of an option, where it is given. */
export function checkType(name: string, value: unknown, type: 'string' | 'function' | 'object' | 'boolean'): void {
  if (value !== undefined && (typeof value !== type || value === null)) throw wrong(name, `a ${type}`, value);
}

/** Checks a signal, where one is given. */
export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw wrong('signal', 'an AbortSignal', signal);
}

/** The error for a value of the wrong kind. */
export function wrong(name: string, expected: string, found: unknown): EdgeError {
  return new EdgeError('invalid-argument', `${name}: expected ${expected}, found ${describe(found)}`, { path: name });
}

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  if (typeof value !== 'object' || value === null) return String(value);
  return Array.isArray(value) ? `a list of ${value.length}` : 'an object';
}
