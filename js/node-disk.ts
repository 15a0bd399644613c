// Brings the code that keeps downloads in a folder on disk, in Node alone.

import { lendDisk } from './cache.js';
import { cacheFolder } from './platform.js';

/** Lends the folder on disk to the caches of this thread. */
export async function bringDisk(): Promise<void> {
  const { diskPlace } = await import('./cache-disk.js');
  lendDisk(() => diskPlace(cacheFolder()));
}
