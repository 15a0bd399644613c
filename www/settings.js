// The settings sheet: system prompt and sampling. Kept in the browser's storage.

import { byId, make } from './dom.js';
import { keep, read } from './kept.js';

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

/** Builds the sheet. */
export function makeSettings() {
  const dialog = byId('settings');
  const form = byId('settings-form');
  byId('sampling').append(...DIALS.map(makeDial));
  fill(form, read(KEY, {}));
  form.addEventListener('input', () => keep(KEY, values(form)));
  byId('open-settings').addEventListener('click', () => dialog.showModal());
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  byId('reset').addEventListener('click', () => { fill(form, {}); keep(KEY, {}); });
  return {
    get isOpen() { return dialog.open; },
    /** The system prompt, or an empty string. */
    system: () => values(form).system ?? '',
    /** The options of an answer; what is empty is left to the model. */
    sampling: () => Object.fromEntries(DIALS.flatMap(({ name }) => (values(form)[name] === undefined ? [] : [[name, values(form)[name]]]))),
  };
}

function makeDial({ name, label, note, ...range }) {
  const input = make('input', { type: 'number', name, placeholder: 'default', inputMode: 'decimal', ...range });
  return make('label', { className: 'dial' }, label, make('small', { textContent: note }), input);
}

function values(form) {
  const result = {};
  for (const { name } of DIALS) {
    const input = form.elements[name];
    if (input.value !== '' && input.validity.valid) result[name] = Number(input.value);
  }
  const system = form.elements.system.value.trim();
  if (system) result.system = system;
  return result;
}

function fill(form, stored) {
  for (const { name } of DIALS) form.elements[name].value = stored[name] ?? '';
  form.elements.system.value = stored.system ?? '';
}
