// What a page loads before any model, with this package and with other engines: a page that only chats, bundled and minified
// by esbuild, and the WASM files it takes. Prints a table; `npm run build` comes before. Not part of the tests.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { Stop, main } from '../../scripts/lib/shell.mjs';
import { DIST } from '../../scripts/lib/wasm.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const PACKAGES = join(HERE, 'node_modules');
const ORT = join(PACKAGES, 'onnxruntime-web', 'dist', 'ort-wasm-simd-threaded.asyncify');

const ASK = "[{ role: 'user', content: 'hello' }]";

/**
 * Every engine: the sources of its page and its worker (or the path of one), where it has one of its own, and the files that
 * are loaded as they are. Scripts that both load are counted once.
 */
const ENGINES = [
  {
    name: '@hanzo/edge', folder: join(HERE, '..', '..'),
    entries: {
      page: `import { HanzoEdge } from '${DIST}/index.js'; const edge = await HanzoEdge.init(); for await (const piece of edge.chat(${ASK})) document.body.append(piece);`,
      worker: join(DIST, 'worker-relaxed.js'),
    },
    files: [join(DIST, 'hanzo-edge-relaxed.wasm')],
  },
  {
    name: '@wllama/wllama',
    entries: { page: `import { Wllama } from '@wllama/wllama'; const llama = new Wllama({ default: 'wllama.wasm' }); await llama.loadModelFromUrl('model.gguf'); for await (const chunk of await llama.createChatCompletion({ messages: ${ASK}, stream: true })) document.body.append(chunk.choices[0].delta.content ?? '');` },
    files: [join(PACKAGES, '@wllama', 'wllama', 'esm', 'wasm', 'wllama.wasm')],
  },
  {
    name: '@huggingface/transformers',
    entries: { page: `import { pipeline, TextStreamer } from '@huggingface/transformers'; const generate = await pipeline('text-generation', 'model', { device: 'webgpu' }); await generate(${ASK}, { streamer: new TextStreamer(generate.tokenizer, { skip_prompt: true, callback_function: (text) => document.body.append(text) }) });` },
    files: [`${ORT}.mjs`, `${ORT}.wasm`],
  },
  {
    name: '@mlc-ai/web-llm', note: 'and a WASM file for each model, which the package does not hold',
    entries: {
      page: `import { CreateWebWorkerMLCEngine } from '@mlc-ai/web-llm'; const engine = await CreateWebWorkerMLCEngine(new Worker('worker.js', { type: 'module' }), 'model'); for await (const chunk of await engine.chat.completions.create({ messages: ${ASK}, stream: true })) document.body.append(chunk.choices[0].delta.content ?? '');`,
      worker: "import { WebWorkerMLCEngineHandler } from '@mlc-ai/web-llm'; const handler = new WebWorkerMLCEngineHandler(); onmessage = (event) => handler.onmessage(event);",
    },
    files: [],
  },
];

main(async () => {
  if (!existsSync(join(DIST, 'hanzo-edge-relaxed.wasm'))) throw new Stop('dist/ is not built: run `npm run build`');
  const rows = [];
  for (const engine of ENGINES) rows.push(await measured(engine));
  const row = ({ name, version, scripts, wasm, note }) => `| \`${name}\` ${version} | ${kilobytes(scripts)} | ${wasm === 0 ? 'within' : kilobytes(wasm)} | ${kilobytes(scripts + wasm)} | ${note ?? ''} |`;
  process.stdout.write(`| package | JavaScript, kB gzipped | WASM, kB gzipped | both | |\n|---|---:|---:|---:|---|\n${rows.map(row).join('\n')}\n`);
});

async function measured({ name, folder = join(PACKAGES, name), entries, files, note }) {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const sizes = files.map((path) => ({ isWasm: path.endsWith('.wasm'), bytes: gzipped(readFileSync(path)) }));
  const sum = (isWasm) => sizes.filter((size) => size.isWasm === isWasm).reduce((total, { bytes }) => total + bytes, 0);
  return { name, version, note, scripts: sum(false) + await bundled(entries), wasm: sum(true) };
}

/** The bytes of the scripts that the entries import statically. */
async function bundled(entries) {
  const sources = { name: 'sources', setup({ onResolve, onLoad }) {
    onResolve({ filter: /^entry:/ }, ({ path }) => ({ path, namespace: 'entry' }));
    onLoad({ filter: /.*/, namespace: 'entry' }, ({ path }) => ({ contents: entries[path.slice('entry:'.length)], resolveDir: HERE }));
  } };
  const outdir = mkdtempSync(join(HERE, 'node_modules', '.size-'));
  try {
    const { metafile } = await build({
      entryPoints: Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, source.startsWith('import') ? `entry:${name}` : source])), plugins: [sources], outdir,
      bundle: true, minify: true, splitting: true, format: 'esm', platform: 'browser', target: 'es2022', metafile: true, logLevel: 'error',
    });
    const loaded = new Set();
    const follow = (path) => {
      if (loaded.has(path)) return;
      loaded.add(path);
      for (const { path: next, kind } of metafile.outputs[path].imports) if (kind === 'import-statement' && next in metafile.outputs) follow(next);
    };
    for (const path of Object.keys(metafile.outputs)) if (basename(path, '.js') in entries) follow(path);
    return [...loaded].reduce((total, path) => total + gzipped(readFileSync(path)), 0);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

function gzipped(bytes) {
  return gzipSync(bytes, { level: 9 }).length;
}

function kilobytes(bytes) {
  return (bytes / 1000).toFixed(bytes < 100_000 ? 1 : 0);
}
