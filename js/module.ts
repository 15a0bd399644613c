// The module hanzo-edge with its glue.

import * as glue from './hanzo-edge.js';
import type { WasmModule } from './modules.js';

export const MODULE: WasmModule = {
  name: 'hanzo-edge',
  get url() { return new URL('./hanzo-edge.wasm', import.meta.url); },
  glue,
  threads: null,
};
