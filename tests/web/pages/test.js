// The page of the browser tests: the package under a strict Content-Security-Policy, and what the tests ask of it.

import { EdgeError, HanzoEdge } from '/dist/index.js';
import { Connection } from '/dist/connection.js';
import { loadOptions } from '/dist/options.js';

const engines = new Map();
let engineCount = 0;

/** An error as plain data. */
const plain = (error) => ({ isEdgeError: error instanceof EdgeError, code: error?.code, message: error?.message ?? String(error) });

/** Runs the work and answers its value or its error. */
async function attempt(work) {
  try {
    return { value: await work() };
  } catch (error) {
    return { error: plain(error) };
  }
}

globalThis.tests = {
  /** Loads a model; `bytes` are an array of numbers. Answers the engine's number. */
  init: ({ bytes, ...options }) => attempt(async () => {
    const edge = await HanzoEdge.init({ ...options, ...(bytes ? { model: new Uint8Array(bytes) } : {}) });
    engineCount += 1;
    engines.set(engineCount, edge);
    return { engine: engineCount, diagnostics: edge.diagnostics };
  }),
  /** An answer with its pieces; `stopAfter` pieces the reader leaves. */
  chat: (engine, options, stopAfter = Infinity) => attempt(async () => {
    const stream = engines.get(engine).chat([{ role: 'user', content: 'What is gravity?' }], options);
    const pieces = [];
    for await (const piece of stream) {
      pieces.push(piece);
      if (pieces.length >= stopAfter) break;
    }
    const result = await stream.result;
    return { pieces, ...result, tokens: [...result.tokens] };
  }),
  /** Aborts by signal after a number of pieces. */
  abort: (engine, after) => attempt(async () => {
    const control = new AbortController();
    const stream = engines.get(engine).chat([{ role: 'user', content: 'What is gravity?' }], { signal: control.signal });
    let count = 0;
    try {
      for await (const _ of stream) {
        count += 1;
        if (count === after) control.abort('enough');
      }
    } catch (error) {
      return { reader: error, result: await stream.result.catch((reason) => reason) };
    }
    return { reader: 'no rejection' };
  }),
  tokenize: (engine, texts) => attempt(async () => {
    const ids = [];
    for (const text of texts) ids.push([...(await engines.get(engine).tokenize(text))]);
    return ids;
  }),
  memory: (engine) => attempt(() => engines.get(engine).memory()),
  diagnostics: (engine) => engines.get(engine).diagnostics,
  close: (engine) => attempt(() => engines.get(engine).close()),
  /** Teacher-forced argmax of token lists, over a line of its own. */
  score: (options, lists) => attempt(async () => {
    const connection = new Connection(options.worker, null);
    const facts = await connection.call('load', loadOptions(options, () => 0)).answer;
    const argmax = [];
    for (const ids of lists) argmax.push([...(await connection.call('score', Uint32Array.from(ids)).answer)]);
    await connection.close(new EdgeError('closed', 'done'));
    return { facts, argmax };
  }),
};
