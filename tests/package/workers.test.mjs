// The package in service workers and in a Chromium extension.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { launchChromium } from '../../scripts/lib/chromium.mjs';
import { chromiumFlags, chromiumPath } from '../../scripts/lib/graphics.mjs';
import { must } from '../../scripts/lib/shell.mjs';
import { MODEL, expectedAnswer, makeProject } from './lib/install.mjs';
import { outcomesOf, rightOutcomes, servePages } from './lib/pages.mjs';

async function built(name) {
  const folder = makeProject(name, 'app', name);
  await must('building', process.execPath, ['build.mjs'], { cwd: folder, quiet: true });
  return join(folder, 'dist');
}

test('a_service_worker_in_one_file_answers_and_a_split_one_says_what_to_do', async (context) => {
  const site = await servePages(context, await built('service-worker'));
  const browser = await launchChromium();
  try {
    for (const [script, type] of [['./module.js', 'module'], ['./classic.js', 'classic']]) {
      const [outcome] = await rightOutcomes(browser, site.url, [{ script, type }]);
      assert.equal(outcome.worker.used, false);
      assert.match(outcome.worker.reason, /there are no workers here/);
    }
    const { outcomes: [{ error }] } = await outcomesOf(browser, site.url, [{ script: './split/sw.js', type: 'module' }]);
    assert.match(error?.message ?? 'no error', /bundle it with this package into one file, without splitting/);
  } finally {
    await browser.close();
  }
});

test('an_extension_answers_in_its_page_and_in_its_background', async () => {
  const folder = await built('extension');
  copyFileSync(MODEL, join(folder, 'tiny.gguf'));
  const extension = await chromium.launchPersistentContext('', {
    executablePath: chromiumPath(),
    headless: true,
    ignoreDefaultArgs: ['--disable-extensions'],
    args: [...chromiumFlags(), `--disable-extensions-except=${folder}`, `--load-extension=${folder}`],
  });
  try {
    const background = extension.serviceWorkers()[0] ?? await extension.waitForEvent('serviceworker', { timeout: 20_000 });
    const outcome = await background.evaluate(() => globalThis.ask());
    assert.deepEqual([outcome.text, outcome.worker?.used], [await expectedAnswer(), false], JSON.stringify(outcome));
    const pages = { newPage: () => extension.newPage() };
    const [threads, inPage] = await rightOutcomes(pages, new URL('index.html', background.url()).href, [{ threads: 2 }, { worker: false }]);
    assert.deepEqual([threads.threads, threads.worker.used, inPage.worker.used], [Math.min(2, availableParallelism()), true, false]);
  } finally {
    await extension.close();
  }
});
