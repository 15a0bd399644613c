// The package in Next: a server component imports it without harm, a client component runs it. Slow and large, so that it
// only runs under HANZO_EDGE_FULL=1.

import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launchChromium } from '../../scripts/lib/chromium.mjs';
import { needPackages } from '../../scripts/lib/packages.mjs';
import { run } from '../../scripts/lib/shell.mjs';
import { makeProject } from './lib/install.mjs';
import { rightOutcomes, servePages } from './lib/pages.mjs';

const HERE = fileURLToPath(new URL('next', import.meta.url));
const BUILD_MS = 300_000;

for (const bundler of ['turbopack', 'webpack']) {
  test(`next_with_${bundler}_renders_on_the_server_and_answers_in_the_page`, { skip: !process.env.HANZO_EDGE_FULL }, async (context) => {
    await needPackages(HERE);
    const folder = makeProject(`next-${bundler}`, 'app', 'next');
    cpSync(join(HERE, 'node_modules'), join(folder, 'node_modules'), { recursive: true, verbatimSymlinks: true });
    const { code, output } = await run(process.execPath, [join('node_modules', 'next', 'dist', 'bin', 'next'), 'build', `--${bundler}`], {
      cwd: folder, env: { NEXT_TELEMETRY_DISABLED: '1' }, quiet: true, timeoutMs: BUILD_MS,
    });
    assert.equal(code, 0, output);
    assert.doesNotMatch(output, /\bwarn|critical dependency/i);
    const site = await servePages(context, join(folder, 'out'));
    const browser = await launchChromium();
    context.after(() => browser.close());
    const [threads, inPage] = await rightOutcomes(browser, site.url, [{ threads: 2 }, { worker: false }]);
    assert.deepEqual([threads.worker.used, inPage.worker.used], [true, false]);
    const page = await browser.newPage();
    await page.goto(site.url);
    assert.match(await page.textContent('#server'), /^function \d+$/);
  });
}
