// The models that this browser has stored, with their sizes, and how to let them go.

import { HanzoEdge } from '@hanzo/edge';
import { button, byId, make, showFault } from './dom.js';
import { bytes, explain } from './format.js';

const PLACES = { opfs: 'private files', 'cache-api': 'the browser’s cache', memory: 'memory, as long as this page', disk: 'a folder' };

/** Builds the list. `show()` reads it anew. */
export function makeStored() {
  const list = byId('stored-list');

  async function show() {
    try {
      const models = await HanzoEdge.models.list();
      list.replaceChildren(...models.map(rowOf));
      byId('stored-empty').hidden = models.length > 0;
      byId('stored-sum').textContent = models.length === 0 ? '' : await roomOf(models);
      byId('persist').hidden = models.length === 0 || (await navigator.storage?.persisted?.()) !== false;
      showFault(byId('stored-fault'), null);
    } catch (error) {
      showFault(byId('stored-fault'), explain(error));
    }
  }

  function rowOf(model) {
    const size = model.complete ? bytes(model.bytes) : `${bytes(model.bytes)}${model.totalBytes ? ` of ${bytes(model.totalBytes)}` : ''}, unfinished`;
    return make('li', {},
      make('span', { className: 'stored-name', textContent: shortName(model.name), title: model.name }),
      make('span', { className: 'note', textContent: `${size} · in ${PLACES[model.where]} · last used ${model.lastUsed.toLocaleDateString()}` }),
      button('Delete', () => remove(model), { 'aria-label': `Delete ${model.name}` }));
  }

  async function remove(model) {
    try {
      await HanzoEdge.models.delete(model.name);
      await show();
    } catch (error) {
      showFault(byId('stored-fault'), explain(error));
    }
  }

  byId('persist').addEventListener('click', async () => {
    const isKept = await HanzoEdge.models.persist();
    byId('persist').hidden = isKept;
    byId('persist-note').textContent = isKept ? '' : 'The browser did not agree; it may when you visit more often.';
  });
  return { show };
}

/** A model that was named by its address goes by its file's name. */
function shortName(name) {
  return URL.canParse(name) && /^https?:/.test(name) ? decodeURIComponent(new URL(name).pathname.split('/').at(-1)) : name;
}

async function roomOf(models) {
  const sum = bytes(models.reduce((total, model) => total + model.bytes, 0));
  const { quota } = (await navigator.storage?.estimate?.()) ?? {};
  return quota ? `${sum} stored; this site may use ${bytes(quota)}.` : `${sum} stored.`;
}
