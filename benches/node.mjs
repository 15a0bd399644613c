// The npm package in Node on WebGPU (Dawn): `node benches/node.mjs MODEL [--prompt N] [--decode N] [--reps N]` prints
// medians as JSON. The file needs a tokenizer. Needs the built package (`npm run build`).

import { parseArgs } from 'node:util';
import { HanzoEdge } from '../dist/index.js';
import { provideGpu } from '../scripts/lib/dawn.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    prompt: { type: 'string', default: '512' },
    decode: { type: 'string', default: '128' },
    reps: { type: 'string', default: '5' },
  },
});
const [model] = positionals;
if (positionals.length !== 1) throw new Error('usage: node benches/node.mjs MODEL [--prompt N] [--decode N] [--reps N]');
const { prompt, decode, reps } = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Number(value)]));

/** A text of letters that begins like no other run's, of about as many tokens as asked for. */
async function promptText(edge, run) {
  const letter = (place) => String.fromCharCode(97 + ((place * 7 + run * 11 + ((place * place) >> 3)) % 26));
  let text = '';
  while ((await edge.tokenize(text)).length < prompt) text += Array.from({ length: 32 }, (_, i) => letter(text.length + i)).join('') + (run % 10);
  return text;
}

function median(figures) {
  const sorted = figures.toSorted((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

await provideGpu();
const begin = performance.now();
const edge = await HanzoEdge.init({ model, backend: 'webgpu', maxContextTokens: prompt + decode + 64 });
const loadMs = performance.now() - begin;
const runs = [];
// The first run compiles and warms what later ones find ready.
for (let run = 0; run <= reps; run++) {
  const text = await promptText(edge, run);
  const { stats, usage } = await edge.complete(text, { temperature: 0, maxTokens: decode }).result;
  if (run > 0) runs.push({ ...stats, ...usage });
}
const of = (name) => median(runs.map((run) => run[name]));
const { backend, device, adapter } = edge.diagnostics;
const { gpuBytes, wasmBytes } = await edge.memory();
console.log(JSON.stringify({
  decodeTokensPerSecond: of('decodeTokensPerSecond'),
  promptTokensPerSecond: of('promptTokensPerSecond'),
  timeToFirstTokenMs: of('timeToFirstTokenMs'),
  promptTokens: of('promptTokens'),
  completionTokens: of('completionTokens'),
  loadMs, gpuBytes, wasmBytes, backend, device, adapter,
}));
await edge.close();
