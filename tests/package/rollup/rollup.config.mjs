// Rollup leaves `new URL('./worker.js', import.meta.url)` as it is: the workers are entries of their own beside the page,
// and the WASM files are copied.

import { copyFileSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { nodeResolve } from '@rollup/plugin-node-resolve';

const require = createRequire(import.meta.url);
const parts = Object.keys(require('@hanzo/edge/package.json').exports).map((path) => path.replace('./', ''));
const entries = parts.filter((name) => /^(worker|thread)/.test(name)).map((name) => [name, `@hanzo/edge/${name}`]);

mkdirSync('dist', { recursive: true });
for (const name of parts.filter((name) => name.endsWith('.wasm'))) copyFileSync(require.resolve(`@hanzo/edge/${name}`), `dist/${name}`);
copyFileSync('index.html', 'dist/index.html');

export default {
  input: { main: './main.js', ...Object.fromEntries(entries) },
  output: { dir: 'dist', format: 'es' },
  plugins: [nodeResolve({ browser: true })],
};
