// Types of site.mjs, for the tests.

import type { Route, Site } from './serve.mjs';

/** Serves `www/` at `/`, `dist/` at `/dist/`, and the models of the cache folder at `/models/FILE` and `/models/index.json`. */
export function serveSite(options?: { port?: number; orNext?: boolean; isolated?: boolean; extra?: Record<string, Route> }): Promise<Site>;
