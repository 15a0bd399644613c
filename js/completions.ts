// `edge.chat.completions`: OpenAI's chat requests and answers over `edge.chat`. It knows neither HTTP nor the engine.

import { resumed, runChoices } from './choices.js';
import type { ChoiceEvent, Choices } from './choices.js';
import { inBodyWords, makeId, nowSeconds, optionsOf, readChatBody, usageOf } from './openai-body.js';
import type {
  ChatBody, ChatCompletion, ChatCompletionChoice, ChatCompletionChunk, ChatCompletionChunkChoice, ChatCompletions, ChatFinishReason, ChatLogprobs,
} from './openai-types.js';
import type { ChatMessage, ChatOptions, FinishReason, GenerateResult, TokenLogprob, TokenStream } from './types.js';

type AnswerChat = (messages: readonly ChatMessage[], options?: ChatOptions) => TokenStream;

/** What every answer or chunk of one request repeats. */
interface Head {
  id: string;
  created: number;
  model: string;
}

/** The completions of one engine. `modelName` is asked for at each request. */
export function chatCompletions(chat: AnswerChat, modelName: () => string): ChatCompletions {
  async function create(body: ChatBody, { signal }: { signal?: AbortSignal | null | undefined } = {}): Promise<ChatCompletion | AsyncIterable<ChatCompletionChunk>> {
    const { messages, options, count, model, isStream, includeUsage } = readChatBody(body);
    const withSignal: ChatOptions = { ...options, ...(signal ? { signal } : {}) };
    const choices = runChoices(count, (index) => chat(messages, optionsOf(withSignal, index)));
    const head: Head = { id: makeId('chatcmpl'), created: nowSeconds(), model: model ?? modelName() };
    try {
      if (!isStream) return await whole(head, choices);
      const chunks = stream(head, choices, includeUsage);
      // What is wrong with the request rejects it, not its stream.
      return resumed(await chunks.next(), chunks, () => choices.cancel());
    } catch (error) {
      throw inBodyWords(error, body);
    }
  }
  return { create: create as ChatCompletions['create'] };
}

/** The finish_reason of a result. */
export function finishReason(reason: FinishReason): ChatFinishReason {
  return reason === 'context' ? 'length' : reason === 'abort' ? 'stop' : reason;
}

async function whole(head: Head, { events }: Choices): Promise<ChatCompletion> {
  const results: GenerateResult[] = [];
  for await (const event of events) if (event.kind === 'end') results.push(event.result);
  return { ...head, object: 'chat.completion', choices: results.map(choiceOf), usage: usageOf(results) };
}

function choiceOf({ text, logprobs, finishReason: reason }: GenerateResult, index: number): ChatCompletionChoice {
  return {
    index,
    message: { role: 'assistant', content: text, refusal: null },
    logprobs: logprobsOf(logprobs),
    finish_reason: finishReason(reason),
  };
}

async function* stream(head: Head, { events }: Choices, includeUsage: boolean): AsyncGenerator<ChatCompletionChunk, undefined> {
  const usage = includeUsage ? { usage: null } : {};
  const results: GenerateResult[] = [];
  let begun = -1;
  for await (const event of events) {
    const chunks = deltasOf(event);
    if (event.index > begun) chunks.unshift(chunkChoice(event.index, { role: 'assistant', content: '', refusal: null }));
    begun = event.index;
    for (const choice of chunks) yield { ...head, object: 'chat.completion.chunk', choices: [choice], ...usage };
    if (event.kind === 'end') results.push(event.result);
  }
  if (includeUsage) yield { ...head, object: 'chat.completion.chunk', choices: [], usage: usageOf(results) };
  return undefined;
}

function deltasOf(event: ChoiceEvent): ChatCompletionChunkChoice[] {
  switch (event.kind) {
    case 'piece': return [chunkChoice(event.index, { content: event.piece })];
    case 'end': return [{ ...chunkChoice(event.index, {}), logprobs: logprobsOf(event.result.logprobs), finish_reason: finishReason(event.result.finishReason) }];
  }
}

function chunkChoice(index: number, delta: ChatCompletionChunkChoice['delta']): ChatCompletionChunkChoice {
  return { index, delta, logprobs: null, finish_reason: null };
}

function logprobsOf(logprobs: readonly TokenLogprob[] | undefined): ChatLogprobs | null {
  if (!logprobs) return null;
  const plain = ({ token, bytes, logprob }: TokenLogprob) => ({ token, bytes: [...bytes], logprob });
  return { content: logprobs.map((entry) => ({ ...plain(entry), top_logprobs: (entry.topLogprobs ?? []).map(plain) })), refusal: null };
}
