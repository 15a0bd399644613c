// This package behind the bench's one function.

import { HanzoEdge } from '/dist/index.js';

/** Loads a model; answers its `run(prompt, count)` and what it runs on. */
export async function load({ model, backend, threads, context }) {
  const edge = await HanzoEdge.init({ model, backend, threads, maxContextTokens: context, cache: 'none' });
  const { diagnostics } = edge;
  return {
    runsOn: { module: diagnostics.wasmModule, threads: diagnostics.threads, device: diagnostics.device },
    async run(prompt, count) {
      const { text, usage, stats } = await edge.complete(prompt, { temperature: 0, maxTokens: count }).result;
      return {
        text, promptTokens: usage.promptTokens, decodedTokens: usage.completionTokens,
        promptTokensPerSecond: stats.promptTokensPerSecond, decodeTokensPerSecond: stats.decodeTokensPerSecond,
      };
    },
  };
}
