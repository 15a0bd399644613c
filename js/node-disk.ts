// Brings the code that keeps downloads in a folder on disk, in Node alone.

import { lendDisk } from './cache.js';
import { cacheFolder } from './node.js';
import { isNode } from './support.js';

/** Lends the folder on disk to the caches of this thread; nothing outside Node. */
export async function bringDisk(): Promise<void> {
  if (!isNode()) return;
  const { diskPlace } = await import('./cache-disk.js');
  lendDisk(() => diskPlace(cacheFolder()));
}
