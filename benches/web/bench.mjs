// Compares the package with wllama and transformers.js in headless Chromium, in one run and in turns, so that a busy
// machine slows all alike. Prints a table on stdout, progress on stderr.

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../scripts/lib/chromium.mjs';
import { Stop, main, say } from '../../scripts/lib/shell.mjs';
import { serveSite } from '../../scripts/lib/site.mjs';
import { chart } from './chart.mjs';
import { ONNX_FOLDER, modelFiles } from './models.mjs';
import { heading, summarize, table } from './report.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const PACKAGES = join(HERE, 'node_modules');
const CONTEXT = 1024;

/** Every engine: the module of the page, its options beyond the common ones, the package whose version is told. */
const ENGINES = {
  edge: { module: 'edge', options: { backend: 'cpu' } },
  'edge-webgpu': { module: 'edge', options: { backend: 'webgpu' }, threadless: true },
  wllama: { module: 'wllama', package: '@wllama/wllama' },
  transformers: { module: 'transformers', package: '@huggingface/transformers', needsOnnx: true },
};

const OPTIONS = {
  formats: { type: 'string', default: 'Q4_1,Q4_0,Q8_0,Q4_K_M' },
  engines: { type: 'string', default: 'edge,wllama,transformers' },
  threads: { type: 'string', default: '1,2' },
  decode: { type: 'string', default: '64' },
  reps: { type: 'string', default: '3' },
  model: { type: 'string', multiple: true, default: [] },
  json: { type: 'string' },
  svg: { type: 'string' },
};

main(async () => {
  const options = readOptions();
  const models = [...(await modelFiles(options.formats)), ...options.model.map((path) => ({ format: basename(path), path, onnx: null }))];
  const site = await serveSite({ extra: {
    '/bench/': `${HERE}/page/`, '/onnx/': `${ONNX_FOLDER}/`, '/wllama/': join(PACKAGES, '@wllama/wllama/esm/'),
    '/transformers/': join(PACKAGES, '@huggingface/transformers/dist/'), '/onnxruntime/': join(PACKAGES, 'onnxruntime-web/dist/'),
    ...Object.fromEntries(models.map(({ path }, index) => [`/bench-models/${index}.gguf`, path])),
  } });
  const browser = await launchChromium();
  try {
    const report = { browser: browser.version(), cpu: cpus()[0].model, decode: options.decode, reps: options.reps, versions: versions(), rows: [] };
    process.stdout.write(`${heading(report)}\n`);
    for (const [index, model] of models.entries()) {
      const url = new URL(`/bench-models/${index}.gguf`, site.url).href;
      const rows = summarize(model.format, await compare(browser, `${site.url}bench/`, { ...model, url }, options));
      process.stdout.write(`\n${table(model.format, rows)}\n`);
      report.rows.push(...rows);
      save(report, options);
    }
  } finally {
    await browser.close();
    await site.close();
  }
});

/** Writes what there is after every format, so that a run that is cut short leaves something. */
function save(report, { json, svg }) {
  if (json) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
  if (svg) writeFileSync(svg, chart(report));
}

/** The command line's options, each checked. */
function readOptions() {
  const { values } = parseArgs({ options: OPTIONS });
  const list = (text) => text.split(',').filter((item) => item !== '');
  const whole = (name, text) => {
    if (/^[1-9]\d*$/.test(text)) return Number(text);
    throw new Stop(`--${name}: expected a whole number from 1, found ${JSON.stringify(text)}`);
  };
  const engines = list(values.engines);
  const unknown = engines.find((name) => !(name in ENGINES));
  if (unknown) throw new Stop(`--engines: expected some of ${Object.keys(ENGINES).join(', ')}, found ${unknown}`);
  return {
    ...values, engines, formats: list(values.formats), threads: list(values.threads).map((text) => whole('threads', text)),
    decode: whole('decode', values.decode), reps: whole('reps', values.reps),
  };
}

/** Loads the model in every engine at every thread count, a page each, and lets them answer in turns. */
async function compare(browser, address, model, { engines, threads, decode, reps }) {
  const runners = [];
  try {
    for (const [turn, count] of threads.entries()) {
      for (const engine of engines) {
        const { needsOnnx, threadless } = ENGINES[engine];
        if ((needsOnnx && !model.onnx) || (threadless && turn > 0)) continue;
        runners.push(await loadRunner(browser, address, engine, count, model));
      }
    }
    // Rep 0 warms up and is not counted; every other rep goes backwards, so that drift falls on all.
    for (let rep = 0; rep <= reps; rep += 1) {
      for (const runner of rep % 2 === 0 ? runners : runners.toReversed()) {
        const result = await runner.page.evaluate(([prompt, tokens]) => globalThis.bench.run(prompt, tokens), [promptFor(rep), decode]);
        if (rep > 0) runner.runs.push(result);
      }
      say(`bench: ${model.format}: ${rep === 0 ? 'warmed up' : `run ${rep} of ${reps}`}`);
    }
  } finally {
    for (const { page } of runners) await page.close();
  }
  return runners.map(({ page, ...measured }) => measured);
}

async function loadRunner(browser, address, engine, threads, { url, onnx, format }) {
  const page = await browser.newPage();
  page.on('pageerror', (error) => say(`bench: ${engine}: ${error.message}`));
  await page.goto(address);
  await page.waitForFunction(() => 'bench' in globalThis);
  const { module, options } = ENGINES[engine];
  const loaded = await page.evaluate(([name, given]) => globalThis.bench.load(name, given), [module, { model: url, onnx, threads, context: CONTEXT, ...options }]);
  say(`bench: ${format}: ${engine}, ${threads} thread(s): ${JSON.stringify(loaded.runsOn)}`);
  return { page, engine, threads, ...loaded, runs: [] };
}

/** 145 tokens that differ from the first word on, so that no engine reuses an earlier prompt. */
function promptFor(rep) {
  const sentence = 'The history of the lighthouse begins long before the first stone tower was raised above the harbour, when fires were lit on hills to guide the ships home through the dark.';
  return `Chapter ${rep}. ${`${sentence} `.repeat(4)}The history of the lighthouse begins long before the`;
}

/** The versions of the packages that are compared. */
function versions() {
  const named = Object.values(ENGINES).flatMap((engine) => engine.package ?? []);
  return Object.fromEntries([...named, 'onnxruntime-web'].map((name) => [name, JSON.parse(readFileSync(join(PACKAGES, name, 'package.json'), 'utf8')).version]));
}
