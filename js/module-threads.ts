// The module hanzo-edge-threads with its glue.

import * as glue from './hanzo-edge-threads.js';
import type { WasmModule } from './modules.js';
import { Threads } from './threads.js';

export const MODULE: WasmModule = {
  name: 'hanzo-edge-threads',
  get url() { return new URL('./hanzo-edge-threads.wasm', import.meta.url); },
  glue,
  threads: { glue, start: () => new Worker(new URL('./thread.js', import.meta.url), { type: 'module' }), file: './thread.js', Threads },
};
