// Imports every subpath with code, except those that are workers, and finds every other.

import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { exports } = require('@hanzo/edge/package.json');
for (const [path, target] of Object.entries(exports)) {
  const name = `@hanzo/edge${path.slice(1)}`;
  require.resolve(name);
  if (target.default && !/^\.\/(worker|thread)/.test(path)) await import(name);
}
for (const name of ['dist/index.js', 'dist/connection.js']) {
  const error = await import(`@hanzo/edge/${name}`).catch(({ code }) => code);
  if (error !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw new Error(`${name} can be reached`);
}
process.stdout.write(`${Object.keys(exports).length} subpaths`);
