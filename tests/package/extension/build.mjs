// The extension's page is split, as any page is; its background script is a service worker and must be one file.

import { build } from 'esbuild';
import { copyFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const parts = Object.keys(require('@hanzo/edge/package.json').exports).map((path) => path.replace('./', ''));
const entries = parts.filter((name) => /^(worker|thread)/.test(name)).map((name) => [name, `@hanzo/edge/${name}`]);
const options = { outdir: 'dist', bundle: true, minify: true, format: 'esm', target: 'es2022', logLevel: 'warning' };

await build({ ...options, entryPoints: { main: './main.js', ...Object.fromEntries(entries) }, splitting: true });
await build({ ...options, entryPoints: ['background.js'] });
for (const name of parts.filter((name) => name.endsWith('.wasm'))) copyFileSync(require.resolve(`@hanzo/edge/${name}`), `dist/${name}`);
for (const name of ['manifest.json', 'index.html']) copyFileSync(name, `dist/${name}`);
