// The demo page with its package and the models in the cache folder, as one site.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MODELS, isCached, modelPath } from './models.mjs';
import { serve } from './serve.mjs';
import { ROOT } from './shell.mjs';
import { DIST } from './wasm.mjs';

/**
 * Serves `www/` at `/`, `dist/` at `/dist/`, the models of the cache folder at `/models/FILE`, and at
 * `/models/index.json` the registry's rows of those models, each with its `url`. `extra` adds routes; other options are those of `serve`.
 */
export async function serveSite({ extra = {}, ...options } = {}) {
  const rows = [];
  const files = {};
  for (const model of MODELS) {
    if (!(await isCached(model))) continue;
    const url = `/models/${model.file}`;
    files[url] = modelPath(model);
    rows.push({ ...model, url });
  }
  const routes = { '/': join(ROOT, 'www'), '/dist/': DIST, '/models/index.json': rows, ...files, ...extra };
  if (!existsSync(join(ROOT, 'www'))) delete routes['/'];
  return serve(routes, options);
}
