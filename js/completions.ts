// `edge.chat.completions`: OpenAI's chat requests and answers over `edge.chat`. It knows neither HTTP nor the engine.

import { resumed, runChoices } from './choices.js';
import type { ChoiceEvent, Choices } from './choices.js';
import { inBodyWords, makeId, nowSeconds, optionsOf, readChatBody, usageOf } from './openai-body.js';
import type {
  ChatBody, ChatCompletion, ChatCompletionChoice, ChatCompletionChunk, ChatCompletionChunkChoice, ChatCompletions, ChatFinishReason, ChatLogprobs,
} from './openai-types.js';
import type { ChatMessage, ChatOptions, FinishReason, GenerateResult, TokenLogprob, TokenStream, ToolCallDelta } from './types.js';

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
    const { messages, options, isOneCall, count, model, isStream, includeUsage } = readChatBody(body);
    const withSignal: ChatOptions = { ...options, ...(signal ? { signal } : {}) };
    const answer = isOneCall ? untilSecondCall(chat) : chat;
    const choices = runChoices(count, (index, listeners) => answer(messages, { ...optionsOf(withSignal, index), ...listeners }));
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

/** The chat, whose answers end where the model begins a second call. */
function untilSecondCall(chat: AnswerChat): AnswerChat {
  return (messages, options = {}) => {
    const onToolCallDelta = (delta: ToolCallDelta) => {
      if (delta.index === 0) options.onToolCallDelta?.(delta);
      else stream.cancel();
    };
    const stream = chat(messages, { ...options, onToolCallDelta });
    const result = stream.result.then((all): GenerateResult => {
      const [first, second] = all.toolCalls ?? [];
      return first && second ? { ...all, toolCalls: [first], finishReason: 'tool_calls' } : all;
    });
    result.catch(() => {});
    return Object.create(stream, { result: { value: result } }) as TokenStream;
  };
}

async function whole(head: Head, { events }: Choices): Promise<ChatCompletion> {
  const results: GenerateResult[] = [];
  for await (const event of events) if (event.kind === 'end') results.push(event.result);
  return { ...head, object: 'chat.completion', choices: results.map(choiceOf), usage: usageOf(results) };
}

function choiceOf({ text, reasoning, toolCalls, logprobs, finishReason: reason }: GenerateResult, index: number): ChatCompletionChoice {
  const hasCalls = toolCalls !== undefined && toolCalls.length > 0;
  return {
    index,
    message: {
      role: 'assistant',
      content: hasCalls && text === '' ? null : text,
      refusal: null,
      ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
      ...(hasCalls ? { tool_calls: toolCalls } : {}),
    },
    logprobs: logprobsOf(logprobs),
    finish_reason: finishReason(reason),
  };
}

async function* stream(head: Head, { events }: Choices, includeUsage: boolean): AsyncGenerator<ChatCompletionChunk, undefined> {
  const chunk = (choice: ChatCompletionChunkChoice): ChatCompletionChunk => ({ ...head, object: 'chat.completion.chunk', choices: [choice], ...(includeUsage ? { usage: null } : {}) });
  const results: GenerateResult[] = [];
  /** Of tokens whose text has not come yet. */
  let logprobs: TokenLogprob[] = [];
  let begun = -1;
  for await (const event of events) {
    if (event.kind === 'logprob') {
      logprobs.push(event.entry);
      continue;
    }
    if (event.index > begun) yield chunk(chunkChoice(event.index, { role: 'assistant', content: '', refusal: null }));
    begun = event.index;
    yield chunk({ ...chunkOf(event), logprobs: logprobs.length > 0 ? logprobsOf(logprobs) : null });
    logprobs = [];
    if (event.kind === 'end') results.push(event.result);
  }
  if (includeUsage) yield { ...head, object: 'chat.completion.chunk', choices: [], usage: usageOf(results) };
  return undefined;
}

function chunkOf(event: Exclude<ChoiceEvent, { kind: 'logprob' }>): ChatCompletionChunkChoice {
  switch (event.kind) {
    case 'reasoning': return chunkChoice(event.index, { reasoning_content: event.piece });
    case 'piece': return chunkChoice(event.index, { content: event.piece });
    case 'tool': return chunkChoice(event.index, { tool_calls: [toolDelta(event.delta)] });
    case 'end': return { ...chunkChoice(event.index, {}), finish_reason: finishReason(event.result.finishReason) };
  }
}

function chunkChoice(index: number, delta: ChatCompletionChunkChoice['delta']): ChatCompletionChunkChoice {
  return { index, delta, logprobs: null, finish_reason: null };
}

/** The first piece of a call carries its id, type and name. */
function toolDelta({ index, id, name, argumentsDelta }: ToolCallDelta): NonNullable<ChatCompletionChunkChoice['delta']['tool_calls']>[number] {
  return { index, ...(id === undefined ? {} : { id, type: 'function' }), function: { ...(name === undefined ? {} : { name }), arguments: argumentsDelta } };
}

function logprobsOf(logprobs: readonly TokenLogprob[] | undefined): ChatLogprobs | null {
  if (!logprobs) return null;
  const plain = ({ token, bytes, logprob }: TokenLogprob) => ({ token, bytes: [...bytes], logprob });
  return { content: logprobs.map((entry) => ({ ...plain(entry), top_logprobs: (entry.topLogprobs ?? []).map(plain) })), refusal: null };
}
