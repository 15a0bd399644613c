// esbuild leaves `new URL('./worker.js', import.meta.url)` as it is: the workers are entries of their own beside the page,
// and the WASM files are copied.

import { build } from 'esbuild';
import { copyFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const parts = Object.keys(require('@hanzo/edge/package.json').exports).map((path) => path.replace('./', ''));
const entries = parts.filter((name) => /^(worker|thread)/.test(name)).map((name) => [name, `@hanzo/edge/${name}`]);

await build({
  entryPoints: { main: './main.js', ...Object.fromEntries(entries) },
  outdir: 'dist', bundle: true, splitting: true, minify: true, format: 'esm', target: 'es2022', logLevel: 'warning',
});
for (const name of parts.filter((name) => name.endsWith('.wasm'))) copyFileSync(require.resolve(`@hanzo/edge/${name}`), `dist/${name}`);
copyFileSync('index.html', 'dist/index.html');
