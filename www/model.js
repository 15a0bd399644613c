// Choosing and loading the model, with its progress.

import { EdgeError, HanzoEdge } from '@hanzo/edge';

const NAMES = { download: 'Downloading', upload: 'Reading', verify: 'Checking', compile: 'Preparing the device', warmup: 'Testing the kernels' };
const byId = (id) => document.getElementById(id);

/** Builds the model card. `onReady(edge)` is called when a model is loaded; `backend()` names the backend to load on. */
export function makeModelCard({ onReady, backend }) {
  let control = null;
  const select = byId('model');
  const ready = listModels().then((rows) => select.append(...rows.map(asOption)));

  async function load(source) {
    control?.abort();
    const own = new AbortController();
    control = own;
    show(true);
    try {
      await ready;
      const model = source ?? JSON.parse(select.value);
      const edge = await HanzoEdge.init({ model, backend: backend(), signal: own.signal, onProgress: showProgress });
      if (own.signal.aborted) return edge.close();
      show(false);
      onReady(edge);
    } catch (error) {
      if (control !== own) return;
      show(false);
      if (!own.signal.aborted) showFault(error);
    }
  }

  byId('load').addEventListener('click', () => load());
  byId('cancel-load').addEventListener('click', () => control?.abort());
  byId('open-file').addEventListener('click', () => byId('file').click());
  byId('file').addEventListener('change', ({ target }) => {
    const files = [...target.files];
    if (files.length > 0) load(files.length === 1 ? files[0] : files);
    target.value = '';
  });
  return { load };
}

/** The models this site has; without a list, the package's default from its own source. */
async function listModels() {
  const chosen = new URLSearchParams(location.search).get('model');
  if (chosen) return [{ title: chosen, source: chosen }];
  const response = await fetch('models/index.json').catch(() => null);
  const rows = response?.ok ? await response.json().catch(() => []) : [];
  if (rows.length === 0) return [{ title: 'SmolLM2 135M Instruct (Q4_1)', source: 'smollm2-135m-instruct' }];
  const urlOf = (row) => new URL(row.url, location.href).href;
  return rows.map((row) => ({ title: `${row.title}, ${megabytes(row.bytes)}`, source: { url: urlOf(row), sha256: row.sha256, bytes: row.bytes } }));
}

function asOption({ title, source }) {
  return new Option(title, JSON.stringify(source));
}

function show(isLoading) {
  byId('loading').hidden = !isLoading;
  for (const id of ['load', 'open-file', 'model']) byId(id).disabled = isLoading;
  if (!isLoading) return;
  byId('load-fault').hidden = true;
  showProgress({ phase: 'compile', loaded: 0, total: null });
}

function showProgress({ phase, loaded, total, bytesPerSecond, etaMs }) {
  const isBytes = phase === 'download' || phase === 'upload';
  byId('loading-what').textContent = NAMES[phase] ?? phase;
  byId('loading-share').textContent = isBytes && total ? `${Math.floor((loaded / total) * 100)} %` : '';
  const bar = byId('progress');
  if (isBytes && total) bar.value = loaded / total;
  else bar.removeAttribute('value');
  const parts = [];
  if (isBytes) parts.push(total ? `${megabytes(loaded)} of ${megabytes(total)}` : megabytes(loaded));
  if (isBytes && bytesPerSecond) parts.push(`${megabytes(bytesPerSecond)}/s`);
  if (isBytes && etaMs > 1500) parts.push(`${Math.ceil(etaMs / 1000)} s left`);
  byId('loading-bytes').textContent = parts.join(' · ');
}

function showFault(error) {
  const text = error instanceof EdgeError ? `${error.message} (${error.code})` : String(error);
  byId('load-fault').textContent = text;
  byId('load-fault').hidden = false;
}

function megabytes(bytes) {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
