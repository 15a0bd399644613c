// The page of the bench: every engine behind the same two functions.

import { HanzoEdge } from '/dist/index.js';
import { Wllama } from '/wllama/index.js';

const CONTEXT = 1024;
const engines = new Map();

/** Loads an engine; answers the milliseconds it took. */
async function load(name, model) {
  const started = performance.now();
  engines.set(name, name === 'wllama' ? await loadWllama(model) : await loadEdge(name.replace('edge-', ''), model));
  return performance.now() - started;
}

async function loadEdge(backend, model) {
  const edge = await HanzoEdge.init({ model, backend, threads: 1, maxContextTokens: CONTEXT, cache: 'none' });
  return async (prompt, count) => {
    const { usage, stats } = await edge.complete(prompt, { temperature: 0, maxTokens: count }).result;
    return {
      promptTokens: usage.promptTokens, decodedTokens: usage.completionTokens,
      promptTokensPerSecond: stats.promptTokensPerSecond, decodeTokensPerSecond: stats.decodeTokensPerSecond,
    };
  };
}

async function loadWllama(model) {
  const wllama = new Wllama({ default: '/wllama/wasm/wllama.wasm' }, { suppressNativeLog: true });
  await wllama.loadModelFromUrl(model, { n_ctx: CONTEXT, n_threads: 1, n_gpu_layers: 0, useCache: false });
  return async (prompt, count) => {
    const { timings } = await wllama.createCompletion({ prompt, max_tokens: count, temperature: 0, cache_prompt: false });
    return {
      promptTokens: timings.prompt_n, decodedTokens: timings.predicted_n,
      promptTokensPerSecond: timings.prompt_per_second, decodeTokensPerSecond: timings.predicted_per_second,
    };
  };
}

globalThis.bench = { load, run: (name, prompt, count) => engines.get(name)(prompt, count) };
