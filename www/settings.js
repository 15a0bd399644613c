// The settings sheet: system prompt, sampling, backend. Kept in the browser's storage.

const KEY = 'hanzo-edge-settings';
const DIALS = [
  { name: 'temperature', label: 'Temperature', note: 'Higher is more varied, 0 always takes the likeliest word.', min: 0, max: 5, step: 0.05 },
  { name: 'topP', label: 'Top P', note: 'Keeps the likeliest words up to this share.', min: 0, max: 1, step: 0.01 },
  { name: 'topK', label: 'Top K', note: 'Keeps this many words; 0 keeps all.', min: 0, max: 1000, step: 1 },
  { name: 'minP', label: 'Min P', note: 'Drops words far less likely than the best.', min: 0, max: 1, step: 0.01 },
  { name: 'repeatPenalty', label: 'Repeat penalty', note: '1 is none.', min: 0.5, max: 2, step: 0.05 },
  { name: 'maxTokens', label: 'Longest answer', note: 'In tokens; empty for the room left.', min: 1, max: 100000, step: 1 },
  { name: 'seed', label: 'Seed', note: 'Makes an answer repeatable; empty for a new one each time.', min: 0, max: 4294967295, step: 1 },
];

/** Builds the sheet. `onUnload` is called when another model is wanted. */
export function makeSettings({ onUnload }) {
  const dialog = document.querySelector('#settings');
  const form = document.querySelector('#settings-form');
  document.querySelector('#sampling').append(...DIALS.map(makeDial));
  fill(form, read());
  form.addEventListener('input', () => store(values(form)));
  document.querySelector('#open-settings').addEventListener('click', () => dialog.showModal());
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  document.querySelector('#reset').addEventListener('click', () => { fill(form, {}); store({}); });
  document.querySelector('#unload').addEventListener('click', () => { dialog.close(); onUnload(); });
  return {
    /** The system prompt, or an empty string. */
    system: () => values(form).system ?? '',
    /** The backend to load on. */
    backend: () => values(form).backend ?? 'auto',
    /** The options of an answer; what is empty is left to the model. */
    sampling: () => Object.fromEntries(DIALS.flatMap(({ name }) => (values(form)[name] === undefined ? [] : [[name, values(form)[name]]]))),
    showFacts: (facts) => showFacts(facts),
  };
}

function makeDial({ name, label, note, ...range }) {
  const row = document.createElement('label');
  row.className = 'dial';
  const input = document.createElement('input');
  Object.assign(input, { type: 'number', name, placeholder: 'default', inputMode: 'decimal', ...range });
  row.append(label, Object.assign(document.createElement('small'), { textContent: note }), input);
  return row;
}

function values(form) {
  const result = {};
  for (const { name } of DIALS) {
    const input = form.elements[name];
    if (input.value !== '' && input.validity.valid) result[name] = Number(input.value);
  }
  const system = form.elements.system.value.trim();
  if (system) result.system = system;
  if (form.elements.backend.value !== 'auto') result.backend = form.elements.backend.value;
  return result;
}

function fill(form, stored) {
  for (const { name } of DIALS) form.elements[name].value = stored[name] ?? '';
  form.elements.system.value = stored.system ?? '';
  form.elements.backend.value = ['webgpu', 'cpu'].includes(stored.backend) ? stored.backend : 'auto';
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

function store(stored) {
  try {
    localStorage.setItem(KEY, JSON.stringify(stored));
  } catch {
    // Storage is blocked: the settings last as long as the page.
  }
}

/** Shows what runs the model; null hides it. */
function showFacts(facts) {
  const about = document.querySelector('#about');
  about.hidden = !facts;
  document.querySelector('#unload').disabled = !facts;
  const list = document.querySelector('#facts');
  list.replaceChildren(...Object.entries(facts ?? {}).flatMap(([term, text]) => [
    Object.assign(document.createElement('dt'), { textContent: term }),
    Object.assign(document.createElement('dd'), { textContent: text }),
  ]));
}
