// The page of the bench: one engine a page, named when it is loaded, so that no engine sees another's settings.

let engine;

/** Loads the engine of the module `./NAME.js`; answers the milliseconds it took and what it runs on. */
async function load(name, options) {
  const module = await import(`./${name}.js`);
  const started = performance.now();
  engine = await module.load(options);
  return { loadMs: performance.now() - started, runsOn: engine.runsOn };
}

globalThis.bench = { load, run: (prompt, count) => engine.run(prompt, count) };
