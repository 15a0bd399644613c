// Drives a headless Chromium through playwright-core. Imported late, since it needs the npm packages.

import { chromiumFlags, chromiumPath } from './graphics.mjs';
import { Stop } from './shell.mjs';

/** Starts a headless Chromium with WebGPU; the caller closes it. */
export async function launchChromium({ flags = [] } = {}) {
  const executablePath = chromiumPath();
  if (!executablePath) throw new Stop('Chromium was not found: run `npm run setup`, or set CHROME_PATH');
  const { chromium } = await import('playwright-core');
  return chromium.launch({ executablePath, headless: true, args: [...chromiumFlags(), ...flags], chromiumSandbox: process.getuid?.() !== 0 });
}
