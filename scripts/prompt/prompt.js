// The page behind `npm start -- --prompt`: loads the package, streams one answer to the script that opened the page.
// `tell` is given by that script.

import { HanzoEdge } from '/dist/index.js';

/** Answers one prompt; `init` and `generate` are the package's own options. Errors come back as plain data. */
globalThis.answer = async ({ prompt, init, generate }) => {
  try {
    const onProgress = ({ phase, loaded, total }) => globalThis.tell({ kind: 'progress', phase, loaded, total });
    const edge = await HanzoEdge.init({ ...init, onProgress });
    const stream = edge.chat([{ role: 'user', content: prompt }], generate);
    for await (const piece of stream) await globalThis.tell({ kind: 'piece', piece });
    const { finishReason, usage, stats } = await stream.result;
    const { backend, reason, adapter } = edge.diagnostics;
    await edge.close();
    return { finishReason, usage, stats, backend, reason, adapter };
  } catch (error) {
    return { error: { code: error?.code ?? 'internal', message: error?.message ?? String(error) } };
  }
};
