// WebGPU in Node: Dawn, from the npm package `webgpu`, as `navigator.gpu`. For tests and benches of the npm package.

import { dirname, join } from 'node:path';
import { existsSync } from 'node:fs';
import { chromiumPath, hasGpu } from './graphics.mjs';
import { Stop } from './shell.mjs';

/** Where Debian's Chromium keeps its parts, when the program itself is a script elsewhere. */
const CHROMIUM_FOLDER = '/usr/lib/chromium';

/** Defines `navigator.gpu`. Where there is no GPU, Dawn runs on Chromium's SwiftShader: it takes no other software driver. */
export async function provideGpu() {
  if (!hasGpu()) process.env.VK_ICD_FILENAMES ??= swiftShader();
  const { create, globals } = await import('webgpu');
  Object.assign(globalThis, globals);
  globalThis.navigator ??= {};
  Object.defineProperty(navigator, 'gpu', { value: create([]), configurable: true });
}

function swiftShader() {
  const chromium = chromiumPath();
  const folders = [chromium && dirname(chromium), CHROMIUM_FOLDER].filter(Boolean);
  const file = folders.map((folder) => join(folder, 'vk_swiftshader_icd.json')).find(existsSync);
  if (!file) throw new Stop(`there is no GPU, and no vk_swiftshader_icd.json of Chromium in ${folders.join(' or ')}`);
  return file;
}
