// npm run bench:web: the side-by-side comparison with browser engines, whose packages live in benches/web alone.

import { join } from 'node:path';
import { build } from './build.mjs';
import { needPackages } from './lib/packages.mjs';
import { ROOT, main, run } from './lib/shell.mjs';
import { setup } from './setup.mjs';

main(async () => {
  const folder = join(ROOT, 'benches', 'web');
  await setup({ parts: ['rust', 'wasm', 'chromium', 'bindgen', 'packages', 'model'], quiet: true });
  await build();
  await needPackages(folder);
  const { code } = await run(process.execPath, [join(folder, 'bench.mjs'), ...process.argv.slice(2)]);
  return code;
});
