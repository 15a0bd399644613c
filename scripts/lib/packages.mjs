// The npm packages of the repository: installed exactly as package-lock.json says, and only when it changed.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, must, say } from './shell.mjs';

/** Installs the packages of `folder` unless they are those of its lock file already. Browsers are never downloaded. */
export async function needPackages(folder = ROOT) {
  const hash = createHash('sha256').update(readFileSync(join(folder, 'package-lock.json'))).digest('hex');
  const stamp = join(folder, 'node_modules', '.hanzo-edge-lock');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return 'installed';
  say('setup: npm ci');
  const env = { PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: '1', PUPPETEER_SKIP_DOWNLOAD: '1' };
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  await must('installing npm packages', npm, ['ci', '--no-audit', '--no-fund'], { cwd: folder, env, quiet: true });
  writeFileSync(stamp, hash);
  return 'installed now';
}
