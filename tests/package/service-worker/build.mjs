// A service worker has no `import()`: it is bundled into one file without splitting, as a module or as a classic script.

import { build } from 'esbuild';
import { copyFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const options = { entryPoints: ['sw.js'], bundle: true, minify: true, target: 'es2022', logLevel: 'warning' };
await build({ ...options, format: 'esm', outfile: 'dist/module.js' });
// The place of the WASM files is given by `wasmUrl`, so that nothing is missed.
await build({ ...options, format: 'iife', outfile: 'dist/classic.js', logOverride: { 'empty-import-meta': 'silent' } });
await build({ ...options, format: 'esm', splitting: true, outdir: 'dist/split' });
for (const name of ['hanzo-edge', 'hanzo-edge-relaxed']) copyFileSync(require.resolve(`@hanzo/edge/${name}.wasm`), `dist/${name}.wasm`);
for (const name of ['index.html', 'page.js']) copyFileSync(name, `dist/${name}`);
