// OpenAI's text completions over `edge.complete`. It knows no HTTP.

import { resumed, runChoices } from './choices.js';
import type { Choices } from './choices.js';
import { finishReason } from './completions.js';
import type { HanzoEdge } from './edge.js';
import { checkFields, inBodyWords, makeId, nowSeconds, optionsOf, readBody, usageOf, wrong } from './openai-body.js';
import type { BodyRequest } from './openai-body.js';
import type { CompletionUsage } from './openai-types.js';
import type { GenerateOptions, GenerateResult, TokenLogprob } from './types.js';

/** OpenAI's answer or chunk of this kind. */
export interface TextCompletion {
  id: string;
  object: 'text_completion';
  created: number;
  model: string;
  choices: { index: number; text: string; logprobs: TextLogprobs | null; finish_reason: string | null }[];
  usage?: CompletionUsage | null;
}

interface TextLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Record<string, number>[];
  text_offset: number[];
}

type TextChoice = TextCompletion['choices'][number];

/** OpenAI's default for this endpoint. */
const DEFAULT_MAX_TOKENS = 16;

type Head = Omit<TextCompletion, 'choices' | 'usage'>;

/** Answers a text completion's body: whole, or as chunks where it asks for a stream. */
export async function createText(engine: Pick<HanzoEdge, 'complete' | 'diagnostics'>, body: object, signal: AbortSignal | null): Promise<TextCompletion | AsyncIterable<TextCompletion>> {
  const { prompts, request, logprobs } = readTextBody(body);
  const { count, isStream, model } = request;
  const options: GenerateOptions = { maxTokens: DEFAULT_MAX_TOKENS, ...request.options, ...logprobs, ...(signal ? { signal } : {}) };
  const start = (index: number) => engine.complete(prompts[Math.floor(index / count)] ?? '', optionsOf(options, index % count));
  const choices = runChoices(prompts.length * count, start);
  const head: Head = { id: makeId('cmpl'), object: 'text_completion', created: nowSeconds(), model: model ?? engine.diagnostics.model };
  try {
    if (!isStream) return await whole(head, choices, count);
    const chunks = stream(head, choices, request);
    return resumed(await chunks.next(), chunks, () => choices.cancel());
  } catch (error) {
    throw inBodyWords(error, body);
  }
}

async function whole(head: Head, { events }: Choices, count: number): Promise<TextCompletion> {
  const results: GenerateResult[] = [];
  for await (const event of events) if (event.kind === 'end') results.push(event.result);
  return { ...head, choices: results.map(choiceOf), usage: usageOfPrompts(results, count) };
}

async function* stream(head: Head, { events }: Choices, { count, includeUsage }: BodyRequest<GenerateOptions>): AsyncGenerator<TextCompletion, undefined> {
  const usage = includeUsage ? { usage: null } : {};
  const results: GenerateResult[] = [];
  /** Of the answer under way, and how many of them were told. */
  let logprobs: TokenLogprob[] = [];
  let told = 0;
  for await (const event of events) {
    if (event.kind === 'logprob') logprobs.push(event.entry);
    if (event.kind !== 'piece' && event.kind !== 'end') continue;
    const { index } = event;
    const news = logprobs.length > told ? textLogprobs(logprobs, told) : null;
    told = logprobs.length;
    if (event.kind === 'piece') yield { ...head, choices: [{ index, text: event.piece, logprobs: news, finish_reason: null }], ...usage };
    if (event.kind !== 'end') continue;
    yield { ...head, choices: [{ index, text: '', logprobs: news, finish_reason: finishReason(event.result.finishReason) }], ...usage };
    results.push(event.result);
    logprobs = [];
    told = 0;
  }
  if (includeUsage) yield { ...head, choices: [], usage: usageOfPrompts(results, count) };
  return undefined;
}

/** Fields beside the common ones. */
const FIELDS = [
  'prompt', 'logprobs', 'echo', 'best_of', 'suffix', 'max_tokens', 'temperature', 'top_p', 'top_k', 'min_p', 'repeat_penalty',
  'frequency_penalty', 'presence_penalty', 'seed', 'stop', 'logit_bias',
];

function readTextBody(body: object): { prompts: string[]; request: BodyRequest<GenerateOptions>; logprobs: GenerateOptions } {
  checkFields(body, FIELDS);
  const { prompt, logprobs, echo, best_of: bestOf, suffix } = body as Record<string, unknown>;
  const prompts: unknown[] = Array.isArray(prompt) ? prompt : [prompt];
  if (prompts.length === 0 || !prompts.every((text) => typeof text === 'string')) throw wrong('prompt', 'a string or a list of strings', prompt);
  if (echo) throw wrong('echo', 'false or nothing', echo);
  if ((bestOf ?? 1) !== 1) throw wrong('best_of', '1 or nothing', bestOf);
  if (suffix) throw wrong('suffix', 'nothing', suffix);
  const wanted: GenerateOptions = typeof logprobs === 'number' ? { logprobs: true, topLogprobs: logprobs } : {};
  if (logprobs !== undefined && logprobs !== null && typeof logprobs !== 'number') throw wrong('logprobs', 'a whole number from 0 to 20', logprobs);
  return { prompts: prompts as string[], request: readBody<GenerateOptions>(body), logprobs: wanted };
}

function choiceOf({ text, logprobs, finishReason: reason }: GenerateResult, index: number): TextChoice {
  return { index, text, logprobs: logprobs ? textLogprobs(logprobs, 0) : null, finish_reason: finishReason(reason) };
}

/** The entries of an answer from the one at `begin` on. */
function textLogprobs(all: readonly TokenLogprob[], begin: number): TextLogprobs {
  let end = 0;
  const offsets = all.map(({ token }) => { end += token.length; return end - token.length; });
  const logprobs = all.slice(begin);
  return {
    tokens: logprobs.map(({ token }) => token),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.map(({ topLogprobs = [] }) => Object.fromEntries(topLogprobs.map(({ token, logprob }) => [token, logprob]))),
    text_offset: offsets.slice(begin),
  };
}

/** Usage over several prompts, each with `count` answers. */
function usageOfPrompts(results: readonly GenerateResult[], count: number): CompletionUsage {
  const total = usageOf([]);
  for (let index = 0; index < results.length; index += count) {
    const part = usageOf(results.slice(index, index + count));
    total.prompt_tokens += part.prompt_tokens;
    total.completion_tokens += part.completion_tokens;
    total.total_tokens += part.total_tokens;
    total.prompt_tokens_details.cached_tokens += part.prompt_tokens_details.cached_tokens;
  }
  return total;
}

