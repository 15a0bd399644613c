// npm start: sets up, builds, and serves the demo page. With `--prompt TEXT` it answers in headless Chromium instead and
// streams to the terminal.

import { parseArgs } from 'node:util';
import { build } from './build.mjs';
import { ask } from './lib/ask.mjs';
import { DEFAULT_MODEL, MODELS } from './lib/models.mjs';
import { Stop, main, say } from './lib/shell.mjs';
import { serveSite } from './lib/site.mjs';
import { setup } from './setup.mjs';

const USAGE = `npm start [-- OPTIONS]
  --port N            the demo page's port (8080, or the next free one)
  --prompt TEXT       answer TEXT in headless Chromium and stream the answer to stdout
  --model NAME        a registry name (${MODELS.map((row) => row.name).join(', ')}), a path or a URL
  --backend B         auto, webgpu or cpu (webgpu for --prompt, a software GPU if need be)
  --max-tokens N      the longest answer
  --temperature X     0 for the most likely answer
  --seed N            makes sampling repeatable`;

const OPTIONS = Object.fromEntries(
  ['port', 'prompt', 'model', 'backend', 'max-tokens', 'temperature', 'seed'].map((name) => [name, { type: 'string' }]),
);

main(async () => {
  const values = readArguments();
  if (values.help) return void process.stdout.write(`${USAGE}\n`);
  const model = values.model ?? DEFAULT_MODEL;
  const isRow = MODELS.some((row) => row.name === model);
  const parts = ['rust', 'wasm', 'bindgen', 'packages', ...(isRow ? ['model'] : []), ...(values.prompt === undefined ? [] : ['chromium'])];
  await setup({ parts, model: isRow ? model : undefined, quiet: true });
  await build();
  return values.prompt === undefined ? demo(values) : answer(values, model);
});

function readArguments() {
  try {
    const { values } = parseArgs({ options: { ...OPTIONS, help: { type: 'boolean', short: 'h' } } });
    if (values.backend && !['auto', 'webgpu', 'cpu'].includes(values.backend)) throw new Error(`--backend is auto, webgpu or cpu, not ${values.backend}`);
    return values;
  } catch (error) {
    throw new Stop(`${error.message}\n${USAGE}`);
  }
}

async function demo(values) {
  const port = values.port === undefined ? 8080 : number(values, 'port');
  const site = await serveSite({ port, orNext: values.port === undefined });
  say(`Hanzo Edge is at ${site.url} (Ctrl-C ends it)`);
  await new Promise((resolve) => { process.once('SIGINT', resolve); process.once('SIGTERM', resolve); });
  await site.close();
}

async function answer(values, model) {
  const generate = { maxTokens: number(values, 'max-tokens'), temperature: number(values, 'temperature'), seed: number(values, 'seed') };
  for (const [key, value] of Object.entries(generate)) if (value === undefined) delete generate[key];
  const onPiece = (piece) => process.stdout.write(piece);
  const { stats, usage, finishReason, reason } = await ask({ prompt: values.prompt, model, init: { backend: values.backend ?? 'webgpu' }, generate, onPiece });
  process.stdout.write('\n');
  const speed = stats?.decodeTokensPerSecond;
  say(`[${stats?.backend}; ${usage?.completionTokens} tokens${speed ? `, ${speed.toFixed(1)} a second` : ''}; ${finishReason}; ${reason}]`);
}

/** A numeric option, undefined when it is not given. */
function number(values, name) {
  if (values[name] === undefined) return undefined;
  const value = Number(values[name]);
  if (values[name].trim() === '' || !Number.isFinite(value)) throw new Stop(`--${name} is a number, not ${JSON.stringify(values[name])}`);
  return value;
}
