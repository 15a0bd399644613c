// The one model this page has loaded, shared by every view. It knows no elements: views listen and ask.

import { HanzoEdge } from '@hanzo/edge';

/**
 * Makes the holder. `edge` is the loaded model or null, `progress` the load under way or null, `fault` why the last load
 * failed or null; `onChange(listener)` is told of every change of these.
 */
export function makeEngine() {
  const listeners = [];
  let control = null;
  const state = {
    edge: null,
    title: '',
    progress: null,
    fault: null,
    onChange(listener) { listeners.push(listener); },
    load,
    cancel: () => control?.abort(),
    unload,
  };
  const tell = () => { for (const listener of listeners) listener(state); };

  /** Loads a model in place of the one that is loaded. Resolves when it is there, or when that failed. */
  async function load(title, options) {
    control?.abort();
    const own = new AbortController();
    control = own;
    await unload();
    Object.assign(state, { fault: null, progress: { phase: 'compile', loaded: 0, total: null } });
    tell();
    try {
      const onProgress = (progress) => { if (control === own) { state.progress = progress; tell(); } };
      const edge = await HanzoEdge.init({ ...options, signal: own.signal, onProgress });
      if (own.signal.aborted) return void edge.close();
      Object.assign(state, { edge, title, progress: null });
    } catch (error) {
      if (control !== own) return;
      Object.assign(state, { progress: null, fault: own.signal.aborted ? null : error });
    }
    tell();
  }

  async function unload() {
    const old = state.edge;
    if (!old) return;
    state.edge = null;
    tell();
    await old.close();
  }
  return state;
}
