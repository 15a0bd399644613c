// Choosing what to load: a model this site offers, a link or a Hugging Face name, or a file; and the options of a load.

import { byId, make } from './dom.js';
import { bytes } from './format.js';
import { keep, read } from './kept.js';

const KEY = 'hanzo-edge-loading';
const OTHER = 'other';

/** Builds the picker. `onChoice()` is called when the choice or an option changed. */
export function makePicker({ onChoice }) {
  const select = byId('model');
  const link = byId('link');
  const form = byId('load-options');
  const address = new URLSearchParams(location.search);
  fill(form, { ...read(KEY, {}), ...(address.has('backend') ? { backend: address.get('backend') } : {}) });
  const ready = listModels(address.get('model')).then((rows) => {
    select.replaceChildren(...rows.map(asOption), make('option', { value: OTHER, textContent: 'A link or a Hugging Face name…' }));
    onChoice();
  });
  const showLink = () => { byId('link-row').hidden = select.value !== OTHER; };
  select.addEventListener('change', () => { showLink(); onChoice(); if (select.value === OTHER) link.focus(); });
  link.addEventListener('change', onChoice);
  form.addEventListener('change', () => { keep(KEY, optionsOf(form)); onChoice(); });
  return {
    /** Resolves when the list is there. */
    ready,
    /** What is chosen: `{ title, model }`, or null while the field for a link is empty. */
    choice() {
      if (select.value === '') return null;
      if (select.value !== OTHER) return { title: select.selectedOptions[0].dataset.title, model: JSON.parse(select.value) };
      const model = link.value.trim();
      return model === '' ? null : { title: model, model };
    },
    options: () => optionsOf(form),
  };
}

/** The models this site has; without a list, the package's default from its own source. One named in the address comes first. */
async function listModels(chosen) {
  const response = await fetch('models/index.json').catch(() => null);
  const rows = response?.ok ? await response.json().catch(() => []) : [];
  const offered = rows.map((row) => ({ title: row.title, size: row.bytes, model: { url: new URL(row.url, location.href).href, sha256: row.sha256, bytes: row.bytes } }));
  if (offered.length === 0) offered.push({ title: 'SmolLM2 135M Instruct (Q4_1)', size: 98362432, model: 'smollm2-135m-instruct' });
  return chosen ? [{ title: chosen, model: chosen }, ...offered] : offered;
}

function asOption({ title, size, model }) {
  const option = make('option', { value: JSON.stringify(model), textContent: size ? `${title}, ${bytes(size)}` : title });
  option.dataset.title = title;
  return option;
}

/** The form's fields have the names that the package gives the options. */
const fieldsOf = (form) => [...form.elements].filter((field) => field.name);

function fill(form, stored) {
  for (const field of fieldsOf(form)) {
    const value = stored[field.name];
    const isKnown = field.type === 'number' || [...field.options].some((option) => option.value === value);
    if (value !== undefined && isKnown) field.value = value;
  }
}

function optionsOf(form) {
  const given = fieldsOf(form).filter(({ value, validity }) => value !== '' && value !== 'auto' && validity.valid);
  return Object.fromEntries(given.map(({ name, type, value }) => [name, type === 'number' ? Number(value) : value]));
}
