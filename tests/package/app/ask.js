// What every browser project asks: loads the tiny model, asks it, closes it. The answer is what was said and what ran it, or
// the error.

import { HanzoEdge } from '@hanzo/edge';

/** Asks with these options of `HanzoEdge.init`; with a list of them, all at once. */
export async function ask(options = {}) {
  if (Array.isArray(options)) return Promise.all(options.map(ask));
  try {
    const model = new URL('tiny.gguf', globalThis.document?.baseURI ?? location.href);
    const edge = await HanzoEdge.init({ model, cache: 'none', backend: 'cpu', ...options });
    const stream = edge.chat([{ role: 'user', content: 'hello world' }], { temperature: 0, maxTokens: 8 });
    let text = '';
    for await (const piece of stream) text += piece;
    const { backend, threads, wasmModule, wasmReason, worker } = edge.diagnostics;
    await edge.close();
    return { text, backend, threads, wasmModule, wasmReason, worker };
  } catch (error) {
    return { error: { name: error.name, code: error.code, message: error.message } };
  }
}
