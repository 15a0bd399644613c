// npm run docs: the reference of every public entry from its types, in target-docs/. A warning is an error: what is public is
// described and named.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { subpaths } from './lib/pack.mjs';
import { needPackages } from './lib/packages.mjs';
import { ROOT, main, must, say } from './lib/shell.mjs';

/** Writes the reference into `out`. */
export async function buildReference(out = join(ROOT, 'target-docs')) {
  const tools = join(ROOT, 'tests', 'package');
  await needPackages(tools);
  const entries = subpaths().filter(([path, { types }]) => types && !/^\.\/(worker|thread)/.test(path));
  const sources = entries.flatMap(([, { types }]) => ['--entryPoints', types.replace(/^dist\/(.*)\.d\.ts$/, 'js/$1.ts')]);
  const typedoc = join(tools, 'node_modules', 'typedoc', 'bin', 'typedoc');
  await must('writing the reference', process.execPath, [typedoc, ...sources, '--tsconfig', 'tsconfig.json', '--readme', 'none', '--treatWarningsAsErrors', '--intentionallyNotExported', 'Platform', '--disableGit', '--sourceLinkTemplate', 'https://github.com/hanzoai/edge/blob/main/{path}#L{line}', '--out', out], { quiet: true });
  return out;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main(async () => {
    await needPackages();
    say(`docs: ${await buildReference()}`);
  });
}
