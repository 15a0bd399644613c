// One prompt answered in headless Chromium by the package, streamed to a terminal.

import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { launchChromium } from './chromium.mjs';
import { MODELS, findModel, modelPath } from './models.mjs';
import { progressPrinter } from './progress.mjs';
import { ROOT, Stop } from './shell.mjs';
import { serveSite } from './site.mjs';

/**
 * Answers `prompt` with `model` (a registry name, a path or a URL); pieces go to `onPiece` as they come.
 * Returns the page's report: `{ finishReason, usage, stats, backend, reason, adapter }`.
 */
export async function ask({ prompt, model, init = {}, generate = {}, onPiece }) {
  const place = modelPlace(model);
  const site = await serveSite({ extra: { '/prompt/': join(ROOT, 'scripts', 'prompt'), ...place.routes } });
  let browser;
  const progress = progressPrinter('model');
  try {
    browser = await launchChromium();
    const page = await browser.newPage();
    const faults = [];
    page.on('pageerror', (error) => faults.push(error.message));
    await page.exposeFunction('tell', (message) => {
      if (message.kind === 'piece') onPiece(message.piece);
      // A local server is fast: progress is only for someone who watches.
      else if (process.stderr.isTTY && message.total && message.phase === 'download') progress(message);
    });
    await page.goto(`${site.url}prompt/`);
    await page.waitForFunction(() => 'answer' in globalThis, null, { timeout: 30_000 }).catch(() => {
      throw new Stop(`the page did not load the package: ${faults.join('; ') || 'no error was reported'}`);
    });
    const request = { prompt, init: { ...init, model: place.url ?? new URL(place.path, site.url).href }, generate };
    const report = await page.evaluate((options) => globalThis.answer(options), request);
    if (report.error) throw new Stop(`${report.error.code}: ${report.error.message}`);
    return report;
  } finally {
    progress.end();
    await browser?.close();
    await site.close();
  }
}

/** How the page reaches a model: `{ url }`, or `{ path, routes }` on the site. */
function modelPlace(model) {
  if (/^https?:/.test(model)) return { url: model };
  const row = MODELS.find((entry) => entry.name === model);
  if (row) return { path: `/models/${row.file}`, routes: { [`/models/${row.file}`]: modelPath(row) } };
  // A name with neither a dot nor a slash is a mistyped registry name rather than a file.
  if (!/[./\\]/.test(model)) findModel(model);
  if (!existsSync(model)) throw new Stop(`there is no model file ${resolve(model)}`);
  const path = `/models/${encodeURIComponent(basename(model))}`;
  return { path, routes: { [`/models/${basename(model)}`]: resolve(model) } };
}
