// A service worker that runs the engine itself.

import { ask } from './ask.js';

addEventListener('message', (event) => event.waitUntil(answer(event.ports[0])));

/** The WASM files lie beside this script, whatever format it was bundled to. */
async function answer(port) {
  port.postMessage(await ask({ wasmUrl: new URL('./', location.href) }));
}
