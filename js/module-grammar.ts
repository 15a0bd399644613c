// The grammar engine's module with its glue. Only the glue is loaded with the engine; the module is fetched on first use.

import * as glue from './hanzo-edge-grammar.js';

export const GRAMMAR_MODULE = {
  name: 'hanzo-edge-grammar',
  get url() { return new URL('./hanzo-edge-grammar.wasm', import.meta.url); },
  glue,
};
