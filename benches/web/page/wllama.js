// wllama behind the bench's one function.

import { Wllama } from '/wllama/index.js';

/** Loads a model; answers its `run(prompt, count)` and what it runs on. */
export async function load({ model, threads, context }) {
  const wllama = new Wllama({ default: '/wllama/wasm/wllama.wasm' }, { suppressNativeLog: true });
  await wllama.loadModelFromUrl(model, { n_ctx: context, n_threads: threads, n_gpu_layers: 0, useCache: false });
  return {
    runsOn: { module: 'wllama.wasm', threads: wllama.isMultithread() ? wllama.getNumThreads() : 1 },
    async run(prompt, count) {
      const { choices, timings } = await wllama.createCompletion({ prompt, max_tokens: count, temperature: 0, cache_prompt: false });
      return {
        text: choices[0].text, promptTokens: timings.prompt_n, decodedTokens: timings.predicted_n,
        promptTokensPerSecond: timings.prompt_per_second, decodeTokensPerSecond: timings.predicted_per_second,
      };
    },
  };
}
