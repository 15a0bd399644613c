// The module hanzo-edge-relaxed with its glue.

import * as glue from './hanzo-edge-relaxed.js';
import type { WasmModule } from './modules.js';

export const MODULE: WasmModule = {
  name: 'hanzo-edge-relaxed',
  get url() { return new URL('./hanzo-edge-relaxed.wasm', import.meta.url); },
  glue,
  threads: null,
};
