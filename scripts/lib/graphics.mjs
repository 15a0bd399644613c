// Chromium and Vulkan: finds them, and says with which flags Chromium has WebGPU on this machine.

import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isExecutable, run, which } from './shell.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome', 'microsoft-edge'];
const PLACES = {
  darwin: [
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    join(homedir(), 'Applications/Google Chrome.app/Contents/MacOS/Google Chrome'),
  ],
  win32: [process.env.PROGRAMFILES, process.env['PROGRAMFILES(X86)'], process.env.LOCALAPPDATA]
    .filter(Boolean)
    .map((folder) => join(folder, 'Google', 'Chrome', 'Application', 'chrome.exe')),
};
const ICD_FOLDERS = ['/usr/share/vulkan/icd.d', '/usr/local/share/vulkan/icd.d', '/etc/vulkan/icd.d', join(homedir(), '.local/share/vulkan/icd.d')];

/** The path of a Chromium or Chrome, `$CHROME_PATH` first, else null. */
export function chromiumPath() {
  if (process.env.CHROME_PATH) return isExecutable(process.env.CHROME_PATH) ? process.env.CHROME_PATH : null;
  for (const name of NAMES) {
    const path = which(name);
    if (path) return path;
  }
  return (PLACES[process.platform] ?? []).find(isExecutable) ?? null;
}

/** Finds Chromium: `{ found }` or `{ missing, apt?, hint }`. */
export async function findChromium() {
  const path = chromiumPath();
  if (path) return { found: path };
  if (process.env.CHROME_PATH) return { missing: `Chromium (CHROME_PATH names ${process.env.CHROME_PATH}, which is no program)`, hint: 'correct or unset CHROME_PATH' };
  return { missing: 'Chromium', apt: ['chromium'], hint: 'install Chrome or Chromium, or set CHROME_PATH to it' };
}

/** Whether the machine seems to have a GPU of its own. Elsewhere than on Linux it is taken for granted. */
export function hasGpu() {
  if (process.platform !== 'linux') return true;
  if (existsSync('/dev/nvidia0')) return true;
  return existsSync('/dev/dri') && readdirSync('/dev/dri').some((name) => name.startsWith('renderD'));
}

/** Finds a Vulkan driver and loader on Linux (Mesa's software driver where there is no GPU). */
export async function findVulkan() {
  if (process.platform !== 'linux') return { found: 'the platform brings its own graphics interface' };
  const named = (process.env.VK_DRIVER_FILES ?? process.env.VK_ICD_FILENAMES ?? '').split(':').filter((file) => file && existsSync(file));
  const drivers = named.length > 0 ? named : ICD_FOLDERS.filter(existsSync).flatMap((folder) => readdirSync(folder).filter((name) => name.endsWith('.json')));
  const { output } = await run('/sbin/ldconfig', ['-p'], { quiet: true });
  const hasLoader = output.includes('libvulkan.so.1');
  if (drivers.length > 0 && hasLoader) return { found: `${drivers.length} driver file${drivers.length === 1 ? '' : 's'}` };
  return { missing: 'a Vulkan driver', apt: ['mesa-vulkan-drivers', 'libvulkan1'], hint: 'install the Vulkan driver of your GPU, or Mesa' };
}

/** Chromium's flags for a headless run with WebGPU; SwiftShader stands in where there is no GPU. */
export function chromiumFlags() {
  const flags = ['--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--enable-unsafe-webgpu'];
  if (process.platform === 'linux' && hasGpu()) flags.push('--enable-features=Vulkan');
  if (!hasGpu()) flags.push('--use-webgpu-adapter=swiftshader');
  // Chromium's sandbox refuses to run as root.
  if (process.getuid?.() === 0) flags.push('--no-sandbox');
  return flags;
}
