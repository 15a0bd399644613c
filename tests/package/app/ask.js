// What every browser project asks: loads the tiny model, asks it, closes it. The answer is what was said and what ran it, or
// the error.

import { HanzoEdge } from '@hanzo/edge';

/** Asks with these options of `HanzoEdge.init`, for an answer that follows a pattern if one is given; with a list, all at once. */
export async function ask(asked = {}) {
  if (Array.isArray(asked)) return Promise.all(asked.map(ask));
  const { pattern, ...options } = asked;
  try {
    const model = new URL('tiny.gguf', globalThis.document?.baseURI ?? location.href);
    const edge = await HanzoEdge.init({ model, cache: 'none', backend: 'cpu', ...options });
    const stream = edge.chat([{ role: 'user', content: 'hello world' }], { temperature: 0, maxTokens: 8, ...(pattern ? { responseFormat: { type: 'regex', regex: pattern } } : {}) });
    let text = '';
    for await (const piece of stream) text += piece;
    const { backend, threads, wasmModule, wasmReason, worker } = edge.diagnostics;
    await edge.close();
    return { text, backend, threads, wasmModule, wasmReason, worker };
  } catch (error) {
    return { error: { name: error.name, code: error.code, message: error.message } };
  }
}
