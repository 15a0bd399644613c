// The page of the tests of an engine's life: devices and workers that go away, engines that come and go, long tasks.

import { EdgeError, HanzoEdge } from '/dist/index.js';

const GREEDY = { temperature: 0, maxTokens: 6 };

/** An error as plain data. */
const plain = (error) => ({ isEdgeError: error instanceof EdgeError, code: error?.code, message: error?.message ?? String(error) });

/** Every device of this page, in the order they were asked for, with the bytes of the buffers that it has. */
const devices = [];
if (globalThis.GPUAdapter) {
  const request = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function requestDevice(descriptor) {
    const device = await request.call(this, descriptor);
    devices.push(device);
    onDevice?.(device);
    return device;
  };
}
/** Called with each new device. */
let onDevice = null;

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());

/** The outcome of a promise with the time it took. */
async function timed(promise) {
  const start = performance.now();
  const outcome = await promise.then((value) => ({ value }), (error) => ({ error: plain(error) }));
  return { ...outcome, ms: performance.now() - start };
}

globalThis.tests = {
  /**
   * Destroys the device behind an engine's back: in a prompt, in an answer, between answers, and in a load. What was under
   * way each time, and an answer after it. The `HanzoEdge` stays one and the same up to the load.
   */
  async loseDevices(options) {
    const model = await bytes(options.model);
    const load = () => HanzoEdge.init({ ...options, model, worker: false });
    const ask = async (engine) => (await engine.complete('1 hello the world', GREEDY).result).text;
    const before = devices.length;
    const edge = await load();
    const texts = [await ask(edge)];
    const lost = {};
    const destroy = () => devices.at(-1).destroy();
    lost.prefill = await timed(edge.complete('hello the world '.repeat(30), { ...GREEDY, onProgress: destroy }).result);
    texts.push(await ask(edge));
    const stream = edge.complete('2 hello the world', { temperature: 0, maxTokens: 200 });
    lost.decode = await timed((async () => { for await (const _ of stream) destroy(); return (await stream.result).text; })());
    texts.push(await ask(edge));
    destroy();
    await pause(50);
    texts.push(await ask(edge));
    await edge.close();
    onDevice = (device) => { onDevice = null; setTimeout(() => device.destroy(), 30); };
    lost.load = await timed(load());
    return { lost, texts, devices: devices.length - before };
  },
  /** Loads, answers and closes again and again; the memory each time. */
  async reload(times, options) {
    const model = await bytes(options.model);
    const rows = [];
    for (let round = 0; round < times; round += 1) {
      const edge = await HanzoEdge.init({ ...options, model, worker: false });
      const { text } = await edge.complete('1 hello the world', GREEDY).result;
      const { gpuBytes, wasmBytes } = await edge.memory();
      await edge.close();
      rows.push({ text, gpuBytes, wasmBytes });
    }
    return rows;
  },
  /** Conversations that alternate on one engine; each answer's usage, and the last of each as another engine gives it. */
  async alternate(options) {
    const model = await bytes(options.model);
    const load = () => HanzoEdge.init({ ...options, model, worker: false });
    const before = devices.length;
    const edge = await load();
    const fresh = await edge.memory();
    const open = (engine, number) => engine.session({ ...GREEDY, initialPrompts: [{ role: 'system', content: `${number} ${'hello the world '.repeat(6)}` }] });
    const sessions = [await open(edge, 1), await open(edge, 2)];
    const usages = [];
    const texts = [];
    for (let round = 0; round < 2; round += 1) {
      for (const session of sessions) {
        const { text, usage } = await session.promptStreaming(`question ${round}`).result;
        usages.push(usage);
        texts.push(text);
      }
    }
    const memory = await edge.memory();
    await edge.close();
    const other = await load();
    const sizes = [fresh.gpuBytes, (await other.memory()).gpuBytes];
    const alone = await open(other, 2);
    const expected = [await alone.prompt('question 0'), await alone.prompt('question 1')];
    await other.close();
    const reasons = await Promise.race([Promise.all(devices.slice(before).map(({ lost }) => lost)), pause(2000).then(() => [])]);
    return { usages, texts: [texts[1], texts[3]], expected, fresh, memory, sizes, reasons: reasons.map(({ reason }) => reason) };
  },
  /** Two engines at once, each in a worker, that answer at the same time. */
  async two(options) {
    const edges = await Promise.all([1, 2].map(() => HanzoEdge.init(options)));
    const ask = (edge) => edge.chat([{ role: 'user', content: 'What is gravity?' }], { temperature: 0, maxTokens: 12 }).result;
    const results = await Promise.all([...edges, ...edges].map(ask));
    await edges[0].close();
    const last = await ask(edges[1]);
    const closed = await edges[0].tokenize('x').then(() => null, plain);
    await edges[1].close();
    return { texts: [...results, last].map(({ text }) => text), closed };
  },
  /** The page's long tasks while an engine loads and answers, in milliseconds. */
  async longTasks(options) {
    const tasks = [];
    const observer = new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) tasks.push(duration); });
    observer.observe({ type: 'longtask' });
    const edge = await HanzoEdge.init(options);
    const messages = [{ role: 'system', content: 'You are a patient teacher. '.repeat(30) }, { role: 'user', content: 'What is gravity?' }];
    const { tokens } = await edge.chat(messages, { temperature: 0, maxTokens: 64 }).result;
    await edge.close();
    // One of our own, so that a list without entries means something.
    const own = performance.now();
    while (performance.now() - own < 120);
    await pause(200);
    observer.disconnect();
    return { tasks, tokens: tokens.length };
  },
  /** A worker that fails in the middle of an answer; what was under way, and an answer after it. */
  async workerDies(options) {
    const workers = [];
    const Real = globalThis.Worker;
    globalThis.Worker = class extends Real {
      constructor(...args) {
        super(...args);
        workers.push(this);
      }
    };
    const edge = await HanzoEdge.init(options);
    const ask = (more) => edge.chat([{ role: 'user', content: 'What is gravity?' }], { ...GREEDY, ...more });
    const expected = (await ask().result).text;
    const stream = ask({ maxTokens: 200 });
    const queued = timed(ask().result);
    const lost = await timed((async () => { for await (const _ of stream) workers[0].dispatchEvent(new ErrorEvent('error', { message: 'on purpose' })); })());
    const text = (await ask().result).text;
    await edge.close();
    globalThis.Worker = Real;
    return { lost, queued: await queued, text, expected, workers: workers.length };
  },
};
