// transformers.js behind the bench's one function: the WASM build of ONNX Runtime that it picks by itself, served from here.

import { AutoModelForCausalLM, AutoTokenizer, env } from '/transformers/transformers.min.js';

const MODULE = 'ort-wasm-simd-threaded.asyncify';

/** Loads the export of a model; answers its `run(prompt, count)` and what it runs on. */
export async function load({ onnx, threads }) {
  Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, localModelPath: '/onnx/', useBrowserCache: false, useWasmCache: false });
  Object.assign(env.backends.onnx.wasm, { numThreads: threads, wasmPaths: { mjs: `/onnxruntime/${MODULE}.mjs`, wasm: `/onnxruntime/${MODULE}.wasm` } });
  const tokenizer = await AutoTokenizer.from_pretrained(onnx.id);
  const model = await AutoModelForCausalLM.from_pretrained(onnx.id, { dtype: onnx.dtype, device: 'wasm' });
  return {
    runsOn: { module: `${MODULE}.wasm, ${onnx.dtype}`, threads: env.backends.onnx.wasm.numThreads },
    async run(prompt, count) {
      const inputs = tokenizer(prompt);
      const times = [];
      // The first call carries the prompt's own ids, each later one a new token.
      const streamer = { put: () => times.push(performance.now()), end() {} };
      const started = performance.now();
      const ids = await model.generate({ ...inputs, max_new_tokens: count, do_sample: false, streamer });
      const promptTokens = inputs.input_ids.dims[1];
      const [first, last] = [times[1], times.at(-1)];
      return {
        text: tokenizer.decode(ids.tolist()[0].slice(promptTokens), { skip_special_tokens: true }), promptTokens, decodedTokens: times.length - 1,
        promptTokensPerSecond: (promptTokens * 1000) / (first - started), decodeTokensPerSecond: ((times.length - 2) * 1000) / (last - first),
      };
    },
  };
}
