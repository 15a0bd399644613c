// The model card: what to load and what that takes, how far the load is, and what runs the model once it is there.

import { byId, fillTerms, showFault } from './dom.js';
import { BACKENDS, bytes, duration, explain } from './format.js';
import { makePicker } from './picker.js';
import { makePlan } from './plan.js';

const PHASES = { download: 'Downloading', upload: 'Reading', verify: 'Checking', compile: 'Preparing the device', warmup: 'Testing the kernels' };

/** Builds the card for an engine's holder. */
export function makeModelCard(engine) {
  const plan = makePlan();
  const picker = makePicker({ onChoice });

  function onChoice() {
    const choice = picker.choice();
    byId('load').disabled = choice === null;
    plan.show(choice && { model: choice.model, ...picker.options() });
  }

  /** Loads what is chosen. */
  async function load() {
    await picker.ready;
    const choice = picker.choice();
    if (choice) await engine.load(choice.title, { model: choice.model, ...picker.options() });
  }

  byId('load').addEventListener('click', load);
  byId('cancel-load').addEventListener('click', engine.cancel);
  byId('unload').addEventListener('click', engine.unload);
  byId('open-file').addEventListener('click', () => byId('file').click());
  byId('file').addEventListener('change', ({ target }) => {
    const files = [...target.files];
    const [first] = files;
    if (first) engine.load(first.name, { model: files.length === 1 ? first : files, ...picker.options() });
    target.value = '';
  });
  engine.onChange(show);
  // Loading tells it all, and reads the same files.
  engine.onChange(({ progress }) => { if (progress) plan.stop(); });
  show(engine);
  return { load };
}

/** Shows the engine's state. */
function show({ edge, title, progress, fault }) {
  byId('choosing').hidden = edge !== null;
  byId('loaded').hidden = edge === null;
  byId('loading').hidden = progress === null;
  for (const id of ['load', 'open-file', 'model', 'link', 'load-fields']) byId(id).disabled = progress !== null;
  showFault(byId('load-fault'), fault && explain(fault));
  if (progress) showProgress(progress);
  if (edge) showFacts(edge, title);
}

function showProgress({ phase, loaded, total, bytesPerSecond, etaMs }) {
  const isBytes = ['download', 'upload', 'verify'].includes(phase);
  byId('loading-what').textContent = PHASES[phase] ?? phase;
  byId('loading-share').textContent = isBytes && total ? `${Math.floor((loaded / total) * 100)} %` : '';
  const bar = byId('progress');
  if (isBytes && total) bar.value = loaded / total;
  else bar.removeAttribute('value');
  const parts = [];
  if (isBytes) parts.push(total ? `${bytes(loaded)} of ${bytes(total)}` : bytes(loaded));
  if (isBytes && bytesPerSecond) parts.push(`${bytes(bytesPerSecond)}/s`);
  if (isBytes && etaMs > 1500) parts.push(`${duration(etaMs)} left`);
  byId('loading-bytes').textContent = parts.join(' · ');
}

/** What runs the model and why, and the memory it takes. */
async function showFacts(edge, title) {
  const { backend, device, reason, threads, wasmModule, wasmReason, contextTokens, worker, cache } = edge.diagnostics;
  byId('loaded-title').textContent = title;
  fillTerms(byId('facts'), {
    Backend: `${BACKENDS[backend]} (${reason})`,
    Device: device,
    Threads: backend === 'cpu' ? String(threads) : '',
    'WASM module': `${wasmModule} (${wasmReason})`,
    Context: `${contextTokens} tokens`,
    'Runs in': worker.used ? 'a worker' : `the page (${worker.reason})`,
    'Came from': originOf(cache),
  });
  const report = await edge.memory().catch(() => null);
  if (!report) return;
  fillTerms(byId('memory'), {
    Weights: bytes(report.weightsBytes),
    'Keys and values': bytes(report.kvBytes),
    Working: report.scratchBytes > 0 ? bytes(report.scratchBytes) : '',
    'WASM memory': bytes(report.wasmBytes),
    'GPU memory': report.gpuBytes > 0 ? bytes(report.gpuBytes) : '',
    Peak: bytes(report.peakBytes),
  });
}

function originOf({ kind, hit, fault }) {
  if (hit) return `this browser’s storage (${kind})`;
  if (kind === 'none') return 'your file, or nowhere that is kept';
  return fault ? `the network, and could not be stored: ${fault}` : `the network, now stored (${kind})`;
}
