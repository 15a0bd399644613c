// The package in pages without a bundler, under a path of the site, from another origin, and under a strict
// Content-Security-Policy.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launchChromium } from '../../scripts/lib/chromium.mjs';
import { serve } from '../../scripts/lib/serve.mjs';
import { must } from '../../scripts/lib/shell.mjs';
import { INSTALLED, expectedAnswer, makeProject } from './lib/install.mjs';
import { outcomesOf, rightOutcomes, servePages } from './lib/pages.mjs';

let browser;
before(async () => { browser = await launchChromium(); });
after(async () => { await browser?.close(); });

/** A page without a bundler that takes the package from this URL. */
function pageWithout(name, packageUrl) {
  const folder = makeProject(name, 'app', 'import-map');
  for (const file of ['index.html', 'own-worker.js']) {
    const path = join(folder, file);
    writeFileSync(path, readFileSync(path, 'utf8').replace('PACKAGE', packageUrl));
  }
  return folder;
}

test('a_page_without_a_bundler_answers_under_a_path_of_the_site', async (context) => {
  const folder = pageWithout('no-bundler', './node_modules/@hanzo/edge/dist');
  const site = await servePages(context, folder, { base: '/app/' });
  const [inWorker, inPage, named] = await rightOutcomes(browser, site.url, [{}, { worker: false }, { wasmUrl: 'node_modules/@hanzo/edge/dist/' }]);
  assert.deepEqual([inWorker.worker.used, inPage.worker.used, named.worker.used], [true, false, true]);
});

test('a_package_of_another_origin_runs_in_the_page_and_says_why_and_in_a_worker_of_the_pages_own', async (context) => {
  const cdn = await serve({ '/edge/': join(INSTALLED, 'dist') + '/' }, { headers: { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' } });
  context.after(() => cdn.close());
  const site = await servePages(context, pageWithout('other-origin', `${cdn.url}edge`));
  const [inPage, own] = await rightOutcomes(browser, site.url, [{}, { worker: './own-worker.js' }]);
  assert.equal(inPage.worker.used, false);
  assert.match(inPage.worker.reason, /a worker could not be started: .*origin/);
  assert.match(inPage.wasmReason, /one thread: /);
  assert.equal(own.worker.used, true);
});

const POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; script-src 'self'";

test('a_strict_content_security_policy_is_enough_in_every_place', async (context) => {
  const folder = makeProject('strict-csp', 'app', 'esbuild');
  await must('building', process.execPath, ['build.mjs'], { cwd: folder, quiet: true });
  const strict = await servePages(context, join(folder, 'dist'), { headers: { 'content-security-policy': `${POLICY} 'wasm-unsafe-eval'` } });
  const [threads, inPage] = await rightOutcomes(browser, strict.url, [{ threads: 2 }, { worker: false }]);
  assert.deepEqual([threads.worker.used, inPage.worker.used], [true, false]);
  const { outcomes: [gpu], faults } = await outcomesOf(browser, strict.url, [{ backend: 'webgpu' }]);
  assert.deepEqual([gpu.backend, gpu.worker?.used, gpu.text?.length > 0, faults], ['webgpu', true, true, []], JSON.stringify(gpu));
  const stricter = await servePages(context, join(folder, 'dist'), { headers: { 'content-security-policy': POLICY } });
  const { outcomes } = await outcomesOf(browser, stricter.url, [{}, { worker: false }]);
  for (const { error } of outcomes) assert.match(error?.message ?? 'no error', /script-src 'wasm-unsafe-eval'/);
});

test('under_trusted_types_the_page_runs_the_engine_and_says_why', async (context) => {
  const folder = makeProject('trusted-types', 'app', 'esbuild');
  await must('building', process.execPath, ['build.mjs'], { cwd: folder, quiet: true });
  const site = await servePages(context, join(folder, 'dist'), { headers: { 'content-security-policy': `${POLICY} 'wasm-unsafe-eval'; require-trusted-types-for 'script'` } });
  const { outcomes: [outcome] } = await outcomesOf(browser, site.url);
  assert.equal(outcome.text, await expectedAnswer(), JSON.stringify(outcome));
  assert.equal(outcome.worker.used, false);
  assert.match(outcome.worker.reason, /TrustedScriptURL/);
});
