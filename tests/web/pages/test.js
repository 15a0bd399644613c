// The page of the browser tests: the package under a strict Content-Security-Policy, and what the tests ask of it.

import { EdgeError, HanzoEdge } from '/dist/index.js';
import { Connection } from '/dist/connection.js';
import { loadOptions } from '/dist/options.js';

/** What the browser's compiler said of every shader of this page, not of its workers. */
const shaders = [];
if (globalThis.GPUDevice) {
  const create = GPUDevice.prototype.createShaderModule;
  GPUDevice.prototype.createShaderModule = function createShaderModule(descriptor) {
    const module = create.call(this, descriptor);
    shaders.push(module.getCompilationInfo().then(({ messages }) => ({
      label: descriptor.label ?? '',
      errors: messages.filter(({ type }) => type === 'error').map(({ message, lineNum }) => `line ${lineNum}: ${message}`),
    })));
    return module;
  };
}

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
  /** Answers while the page counts how often it gets to run, and how long it did not. */
  responsiveness: (engine, options) => attempt(async () => {
    const started = performance.now();
    let [last, ticks, longestGapMs] = [started, 0, 0];
    const tick = () => {
      const now = performance.now();
      ticks += 1;
      longestGapMs = Math.max(longestGapMs, now - last);
      last = now;
    };
    const timer = setInterval(tick, 5);
    await engines.get(engine).chat([{ role: 'user', content: 'word '.repeat(200) }], options).result;
    tick();
    clearInterval(timer);
    return { ms: performance.now() - started, ticks, longestGapMs };
  }),
  embed: (engine, input, options) => attempt(async () => (await engines.get(engine).embed(input, options)).map((vector) => [...vector])),
  tokenize: (engine, texts) => attempt(async () => {
    const ids = [];
    for (const text of texts) ids.push([...(await engines.get(engine).tokenize(text))]);
    return ids;
  }),
  /** Gives every kernel the crate can make to the browser's compiler. */
  kernels: () => attempt(async () => {
    const glue = await import('/dist/hanzo-edge.js');
    await glue.default({ module_or_path: await WebAssembly.compileStreaming(fetch('/dist/hanzo-edge.wasm')) });
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice();
    const faults = [];
    let count = 0;
    for (const { name, source } of JSON.parse(glue.kernelSources())) {
      count += 1;
      const { messages } = await device.createShaderModule({ code: source }).getCompilationInfo();
      const errors = messages.filter(({ type }) => type === 'error').map(({ message, lineNum }) => `line ${lineNum}: ${message}`);
      if (errors.length > 0) faults.push(`${name}: ${errors.join('; ')}`);
    }
    device.destroy();
    return { count, faults };
  }),
  shaders: () => attempt(() => Promise.all(shaders)),
  memory: (engine) => attempt(() => engines.get(engine).memory()),
  diagnostics: (engine) => engines.get(engine).diagnostics,
  close: (engine) => attempt(() => engines.get(engine).close()),
  /** Loads with a worker that fails at its first answer, and then with one that does not. */
  workerFailure: (options) => attempt(async () => {
    let workers = 0;
    const worker = new URL('failing-worker.js', location.href);
    const Real = globalThis.Worker;
    globalThis.Worker = class extends Real {
      constructor(url, more) {
        workers += 1;
        super(workers === 1 ? `${url}?fail` : url, more);
      }
    };
    const edge = await HanzoEdge.init({ ...options, worker });
    const ask = () => edge.chat([{ role: 'user', content: 'What is gravity?' }], { temperature: 0, maxTokens: 6 }).result;
    const [first, second] = await Promise.all([ask().catch(plain), edge.memory().then(() => 'memory', plain)]);
    const { text } = await ask();
    await edge.close();
    globalThis.Worker = Real;
    return { first, second, text, workers };
  }),
  /** Destroys the GPU device behind the engine's back, while it answers. */
  deviceLoss: (options) => attempt(async () => {
    const devices = [];
    const real = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = async function requestDevice(descriptor) {
      const device = await real.call(this, descriptor);
      devices.push(device);
      return device;
    };
    const edge = await HanzoEdge.init({ ...options, worker: false });
    const ask = () => edge.chat([{ role: 'user', content: 'What is gravity?' }], { temperature: 0, maxTokens: 3 }).result;
    const stream = edge.chat([{ role: 'user', content: 'Tell me a long story.' }], { temperature: 0 });
    let lostAt = 0;
    let error;
    try {
      for await (const _ of stream) {
        if (lostAt > 0) continue;
        lostAt = performance.now();
        devices[0].destroy();
      }
    } catch (reason) {
      error = plain(reason);
    }
    const ms = performance.now() - lostAt;
    const { text } = await ask();
    GPUAdapter.prototype.requestDevice = real;
    await edge.close();
    return { error, ms, text, devices: devices.length };
  }),
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
