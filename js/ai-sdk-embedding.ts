// The Vercel AI SDK's embedding model over `edge.embed`. Only types come from the SDK.

import type { EmbeddingModelV4, EmbeddingModelV4CallOptions } from '@ai-sdk/provider';
import type { HanzoEdge } from './edge.js';
import type { EmbedOptions } from './types.js';

/** An engine as an embedding model. Options that the SDK does not name go into `providerOptions.hanzoEdge`. */
export class EdgeEmbeddingModel implements EmbeddingModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'hanzo-edge';
  readonly modelId: string;
  readonly maxEmbeddingsPerCall = Infinity;
  /** They would be computed one after the other. */
  readonly supportsParallelCalls = false;
  readonly #engine: Pick<HanzoEdge, 'embed'>;

  constructor(engine: Pick<HanzoEdge, 'embed'>, modelId: string) {
    this.#engine = engine;
    this.modelId = modelId;
  }

  async doEmbed({ values, dimensions, abortSignal, providerOptions }: EmbeddingModelV4CallOptions) {
    let tokens = 0;
    const options: EmbedOptions = {
      ...(providerOptions?.['hanzoEdge'] as EmbedOptions | undefined),
      ...(dimensions === undefined ? {} : { dimensions }),
      ...(abortSignal ? { signal: abortSignal } : {}),
      onProgress: ({ total }) => { tokens = total ?? 0; },
    };
    const vectors = await this.#engine.embed(values, options);
    return { embeddings: vectors.map((vector) => Array.from(vector)), usage: { tokens }, warnings: [] };
  }
}
