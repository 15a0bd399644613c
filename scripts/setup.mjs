// npm run setup: finds or installs what building, testing and running need, and says what it does.
// Plain Node without packages, since it runs before `npm ci`. Nothing is installed twice; nothing calls sudo.

import { pathToFileURL } from 'node:url';
import { needBindgen } from './lib/bindgen.mjs';
import { findChromium, findVulkan } from './lib/graphics.mjs';
import { DEFAULT_MODEL, findModel, hasPip, pullModel } from './lib/models.mjs';
import { needPackages } from './lib/packages.mjs';
import { progressPrinter } from './lib/progress.mjs';
import { findRust, findWasmTarget } from './lib/rust.mjs';
import { Stop, main, say } from './lib/shell.mjs';
import { aptInstall, hasApt } from './lib/system.mjs';

/** What can be looked for on the system, by name. */
const SYSTEM = { rust: findRust, wasm: findWasmTarget, chromium: findChromium, vulkan: findVulkan };

/** Everything that can be set up, in order. */
export const EVERYTHING = ['rust', 'wasm', 'chromium', 'vulkan', 'bindgen', 'packages', 'model'];

/** Sets up the named parts; `model` names the registry model to fetch. Silent about parts that are there when `quiet`. */
export async function setup({ parts = EVERYTHING, model = DEFAULT_MODEL, quiet = false } = {}) {
  const report = (what, found) => { if (!quiet) say(`setup: ${what}: ${found}`); };
  await needSystem(parts.filter((part) => part in SYSTEM), report);
  if (parts.includes('bindgen')) report('bindgen', await needBindgen());
  if (parts.includes('packages')) report('packages', await needPackages());
  if (parts.includes('model')) report('model', await needModel(model));
}

/** Looks for all the parts, installs what is missing in one go, and looks again. */
async function needSystem(parts, report) {
  const missing = [];
  for (const part of parts) {
    const result = await SYSTEM[part]();
    if (result.found) report(part, result.found);
    else missing.push({ part, ...result });
  }
  if (missing.length === 0) return;
  const byHand = missing.filter((item) => !item.apt || !hasApt());
  if (byHand.length > 0) throw new Stop(byHand.map((item) => `${item.missing} is missing: ${item.hint}`).join('\n'));
  await aptInstall(missing.flatMap((item) => item.apt));
  for (const { part } of missing) {
    const result = await SYSTEM[part]({ install: false });
    if (!result.found) throw new Stop(`${result.missing} is still missing after the installation: ${result.hint}`);
    report(part, result.found);
  }
}

async function needModel(name) {
  const model = findModel(name);
  try {
    return await pull(model);
  } catch (error) {
    if ((await hasPip()) || !hasApt()) throw error;
    await aptInstall(['python3', 'python3-pip']);
    return pull(model);
  }
}

async function pull(model) {
  const onProgress = progressPrinter(model.name);
  try {
    return await pullModel(model, { onProgress, note: (line) => say(`setup: ${line}`) });
  } finally {
    onProgress.end();
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main(() => setup());
}
