// Chooses where downloaded files are kept. Knows which places there are, and nothing of what they hold.

import { cacheApiPlace } from './cache-api.js';
import { memoryPlace } from './cache-memory.js';
import { opfsPlace } from './cache-opfs.js';
import type { Place } from './place.js';
import { isNode, isWebWorker } from './platform.js';
import { Store } from './store.js';
import type { EdgeOptions } from './types.js';

/** Opens the folder on disk, in Node. */
let openDisk: (() => Place) | null = null;

/** Lends the code of the folder on disk, which no page and no worker has to carry: `node-disk.ts` brings it. */
export function lendDisk(open: () => Place): void {
  openDisk = open;
}

/** The store for an option; null for 'none' or where the one asked for does not exist. */
export async function openStore(option: NonNullable<EdgeOptions['cache']>): Promise<Store | null> {
  if (option === 'none') return null;
  const place = await choosePlace(option);
  return place && new Store(place);
}

async function choosePlace(option: Exclude<NonNullable<EdgeOptions['cache']>, 'none'>): Promise<Place | null> {
  if (option === 'memory') return memoryPlace();
  if (openDisk) return openDisk();
  // Storage may be denied (private windows, blocked cookies); then the next place is tried.
  if (option !== 'cache-api' && canWriteOpfs()) {
    const place = await opfsPlace().catch(() => null);
    if (place) return place;
  }
  if (option !== 'opfs' && hasCacheApi()) {
    const place = await cacheApiPlace().catch(() => null);
    if (place) return place;
  }
  return option === 'auto' ? memoryPlace() : null;
}

/** The stores of every place there is, to list and remove what they hold. */
export async function everyStore(): Promise<Store[]> {
  const opening: (Promise<Place | null> | Place)[] = [memoryPlace()];
  if (openDisk) opening.push(openDisk());
  if (hasOpfs()) opening.push(opfsPlace().catch(() => null));
  if (hasCacheApi()) opening.push(cacheApiPlace().catch(() => null));
  const places = await Promise.all(opening);
  return places.flatMap((place) => (place ? [new Store(place)] : []));
}

/** Whether the origin's private file system can be read. */
function hasOpfs(): boolean {
  return !isNode() && typeof navigator.storage?.getDirectory === 'function' && typeof FileSystemFileHandle === 'function';
}

/** Whether the origin's private file system can be written with synchronous handles, as it can in workers. */
function canWriteOpfs(): boolean {
  return isWebWorker() && hasOpfs() && 'createSyncAccessHandle' in FileSystemFileHandle.prototype;
}

/** Whether the Cache API can be used (only in secure contexts). */
function hasCacheApi(): boolean {
  return !isNode() && typeof caches !== 'undefined';
}
