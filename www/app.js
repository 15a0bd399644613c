// The demo page: connects the model card, the conversation and the settings. Uses nothing but the package's public API.

import { makeConversation } from './conversation.js';
import { makeModelCard } from './model.js';
import { makeSettings } from './settings.js';

const IDEAS = ['What is gravity?', 'Write a short poem about rain on a tin roof.', 'Explain photosynthesis to a child.', 'Give me three ideas for a quick dinner.'];
const BACKENDS = { webgpu: 'WebGPU', cpu: 'CPU' };
const byId = (id) => document.getElementById(id);
const input = byId('input');

let edge = null;
/** A question asked before the model was there. */
let waiting = null;

const settings = makeSettings({ onUnload: unload });
const conversation = makeConversation({ settings, onChange: update, onStats: showStats });
const card = makeModelCard({
  backend: () => new URLSearchParams(location.search).get('backend') ?? settings.backend(),
  onReady(loaded) {
    edge = loaded;
    conversation.use(edge);
    showFacts();
    update();
    input.focus();
    if (waiting !== null) ask(waiting);
  },
});

function ask(text) {
  if (text.trim() === '' || conversation.isBusy) return;
  if (!edge) {
    waiting = text;
    input.value = text;
    card.load();
    return;
  }
  waiting = null;
  input.value = '';
  fit();
  conversation.send(text.trim());
}

/** Shows and enables what the state calls for. */
function update() {
  const { isBusy, isEmpty } = conversation;
  byId('welcome').hidden = !isEmpty;
  byId('model-card').hidden = edge !== null;
  byId('send').hidden = isBusy;
  byId('stop').hidden = !isBusy;
  byId('send').disabled = input.value.trim() === '';
  byId('new-chat').disabled = isEmpty;
  byId('chip').hidden = edge === null;
  byId('chip').classList.toggle('busy', isBusy);
  if (!isBusy && !isEmpty && conversation.lastText) byId('announce').textContent = conversation.lastText;
}

function showStats({ live, result }) {
  const speed = live ?? result?.stats.decodeTokensPerSecond;
  byId('chip-text').textContent = BACKENDS[edge.diagnostics.backend] + (speed ? ` · ${speed.toFixed(1)} tokens/s` : '');
}

function showFacts() {
  showStats({});
  const { backend, device, reason, threads, wasmModule, wasmReason, contextTokens, worker, cache } = edge.diagnostics;
  settings.showFacts({
    Backend: BACKENDS[backend],
    Device: device,
    Why: reason,
    Threads: String(threads),
    'WASM module': `${wasmModule} (${wasmReason})`,
    Context: `${contextTokens} tokens`,
    'Runs in': worker.used ? 'a worker' : 'the page',
    Model: cache.hit ? `from this browser's cache (${cache.kind})` : cache.kind === 'none' ? 'not kept' : `downloaded, kept (${cache.kind})`,
  });
}

async function unload() {
  conversation.clear();
  const old = edge;
  edge = null;
  settings.showFacts(null);
  update();
  await old?.close();
}

/** Lets the field grow with its text. */
function fit() {
  input.style.height = 'auto';
  input.style.height = `${input.scrollHeight}px`;
  byId('send').disabled = input.value.trim() === '';
}

byId('ideas').append(...IDEAS.map((idea) => {
  const button = Object.assign(document.createElement('button'), { type: 'button', textContent: idea });
  button.addEventListener('click', () => ask(idea));
  const row = document.createElement('li');
  row.append(button);
  return row;
}));
byId('composer').addEventListener('submit', (event) => { event.preventDefault(); ask(input.value); });
byId('stop').addEventListener('click', () => { conversation.stop(); input.focus(); });
byId('new-chat').addEventListener('click', () => { conversation.clear(); input.focus(); });
input.addEventListener('input', fit);
input.addEventListener('keydown', (event) => {
  // While an input method composes a word, Enter belongs to it.
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask(input.value);
  }
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !byId('settings').open) conversation.stop();
});
update();
