// The module hanzo-edge-relaxed-threads with its glue.

import * as glue from './hanzo-edge-relaxed-threads.js';
import type { WasmModule } from './modules.js';
import { Threads } from './threads.js';

export const MODULE: WasmModule = {
  name: 'hanzo-edge-relaxed-threads',
  get url() { return new URL('./hanzo-edge-relaxed-threads.wasm', import.meta.url); },
  glue,
  threads: { glue, start: () => new Worker(new URL('./thread-relaxed.js', import.meta.url), { type: 'module' }), file: './thread-relaxed.js', Threads },
};
