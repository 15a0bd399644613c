// `@hanzo/edge/ai-sdk`: a provider for the Vercel AI SDK (the package `ai`), whose language and embedding model is
// a loaded engine. Only types come from the SDK.

import type {
  EmbeddingModelV4, LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Content, LanguageModelV4FinishReason, LanguageModelV4StreamPart,
  LanguageModelV4ToolCall, LanguageModelV4Usage, SharedV4Warning,
} from '@ai-sdk/provider';
import { readCall } from './ai-sdk-call.js';
import { EdgeEmbeddingModel } from './ai-sdk-embedding.js';
import { resumed, runChoices } from './choices.js';
import type { ChoiceEvent } from './choices.js';
import type { HanzoEdge } from './edge.js';
import { EdgeError } from './errors.js';
import { makeId } from './openai-body.js';
import { toReadable } from './stream.js';
import type { FinishReason, GenerateResult, ToolCall, ToolCallDelta } from './types.js';

/** What this file needs of an engine. */
export type ProviderEngine = Pick<HanzoEdge, 'chat' | 'embed' | 'diagnostics'>;

/** A provider of one model. */
export interface HanzoEdgeProvider {
  /** The engine as a language model; `modelId` is a label. */
  (modelId?: string): LanguageModelV4;
  readonly specificationVersion: 'v4';
  languageModel(modelId?: string): LanguageModelV4;
  /** The engine as an embedding model: `embed({ model: provider.embeddingModel(), value })`. */
  embeddingModel(modelId?: string): EmbeddingModelV4;
  /** Throws an `EdgeError` with the code 'not-found': there is none. */
  imageModel(modelId: string): never;
}

/**
 * The provider of an engine: `generateText({ model: createHanzoEdge(edge)(), prompt })`. Options of this package that the
 * SDK does not name go into `providerOptions.hanzoEdge`, under their own names.
 */
export function createHanzoEdge(engine: ProviderEngine): HanzoEdgeProvider {
  const languageModel = (modelId = engine.diagnostics.model) => new EdgeLanguageModel(engine, modelId);
  const embeddingModel = (modelId = engine.diagnostics.model) => new EdgeEmbeddingModel(engine, modelId);
  const imageModel = (modelId: string): never => {
    throw new EdgeError('not-found', `there is no image model here: found ${modelId}`, { path: modelId });
  };
  return Object.assign(languageModel.bind(null), { specificationVersion: 'v4' as const, languageModel, embeddingModel, imageModel });
}

class EdgeLanguageModel implements LanguageModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'hanzo-edge';
  readonly modelId: string;
  /** No URL is fetched by the model itself. */
  readonly supportedUrls = {};
  readonly #engine: ProviderEngine;

  constructor(engine: ProviderEngine, modelId: string) {
    this.#engine = engine;
    this.modelId = modelId;
  }

  async doGenerate(call: LanguageModelV4CallOptions) {
    const { messages, options, warnings } = readCall(call);
    const result = await this.#engine.chat(messages, options).result;
    return { content: contentOf(result), finishReason: finishReason(result.finishReason), usage: usageOf(result), response: this.#response(), warnings };
  }

  async doStream(call: LanguageModelV4CallOptions) {
    const { messages, options, warnings } = readCall(call);
    const choices = runChoices(1, (_index, listeners) => this.#engine.chat(messages, { ...options, ...listeners }));
    const parts = streamParts(choices.events, warnings, this.#response());
    // What is wrong with the call rejects it, not its stream.
    return { stream: toReadable(resumed(await parts.next(), parts, () => choices.cancel())) };
  }

  #response() {
    return { id: makeId('edge'), timestamp: new Date(), modelId: this.modelId };
  }
}

function contentOf({ text, reasoning, toolCalls = [] }: GenerateResult): LanguageModelV4Content[] {
  return [
    ...(reasoning === undefined ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...toolCalls.map(toolCallOf),
  ];
}

function toolCallOf({ id, function: { name, arguments: input } }: ToolCall): LanguageModelV4ToolCall {
  return { type: 'tool-call', toolCallId: id, toolName: name, input };
}

async function* streamParts(events: AsyncIterable<ChoiceEvent>, warnings: SharedV4Warning[], response: { id: string; timestamp: Date; modelId: string }): AsyncGenerator<LanguageModelV4StreamPart, undefined> {
  const blocks = new Blocks();
  let isBegun = false;
  for await (const event of events) {
    if (!isBegun) {
      yield { type: 'stream-start', warnings };
      yield { type: 'response-metadata', ...response };
      isBegun = true;
    }
    switch (event.kind) {
      case 'reasoning': yield* blocks.add('reasoning', event.piece); break;
      case 'piece': yield* blocks.add('text', event.piece); break;
      case 'tool': yield* blocks.addToolInput(event.delta); break;
      case 'end':
        yield* blocks.end();
        yield* (event.result.toolCalls ?? []).map(toolCallOf);
        yield { type: 'finish', finishReason: finishReason(event.result.finishReason), usage: usageOf(event.result) };
    }
  }
  return undefined;
}

/** The blocks of a streamed answer: one is open at a time. */
class Blocks {
  #open: { kind: 'text' | 'reasoning' | 'tool-input'; id: string; index: number } | null = null;
  #count = 0;

  *add(kind: 'text' | 'reasoning', delta: string): Generator<LanguageModelV4StreamPart> {
    if (this.#open?.kind !== kind) {
      yield* this.end();
      this.#open = { kind, id: String(this.#count), index: -1 };
      this.#count += 1;
      yield { type: `${kind}-start`, id: this.#open.id };
    }
    yield { type: `${kind}-delta`, id: this.#open.id, delta };
  }

  *addToolInput({ index, id, name, argumentsDelta }: ToolCallDelta): Generator<LanguageModelV4StreamPart> {
    if (this.#open?.kind !== 'tool-input' || this.#open.index !== index) {
      yield* this.end();
      this.#open = { kind: 'tool-input', id: id ?? String(index), index };
      yield { type: 'tool-input-start', id: this.#open.id, toolName: name ?? '' };
    }
    if (argumentsDelta !== '') yield { type: 'tool-input-delta', id: this.#open.id, delta: argumentsDelta };
  }

  *end(): Generator<LanguageModelV4StreamPart> {
    if (this.#open) yield { type: `${this.#open.kind}-end`, id: this.#open.id };
    this.#open = null;
  }
}

function finishReason(raw: FinishReason): LanguageModelV4FinishReason {
  const unified = { stop: 'stop', length: 'length', context: 'length', tool_calls: 'tool-calls', abort: 'other' } as const;
  return { unified: unified[raw], raw };
}

function usageOf({ usage: { promptTokens, completionTokens, cachedTokens } }: GenerateResult): LanguageModelV4Usage {
  return {
    inputTokens: { total: promptTokens, noCache: promptTokens - cachedTokens, cacheRead: cachedTokens, cacheWrite: undefined },
    outputTokens: { total: completionTokens, text: undefined, reasoning: undefined },
  };
}
