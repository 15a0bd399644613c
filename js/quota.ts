// Whether a download fits into the place where it shall be kept, asked before it begins.

import { EdgeError } from './errors.js';
import type { Place, Room } from './place.js';

/** What the browser allows this origin; null where it does not tell. */
export async function storageRoom(): Promise<Room | null> {
  const estimate = await (globalThis.navigator?.storage as StorageManager | undefined)?.estimate?.().catch(() => null);
  if (estimate?.quota === undefined || estimate.usage === undefined) return null;
  return { freeBytes: Math.max(0, estimate.quota - estimate.usage), quotaBytes: estimate.quota, usedBytes: estimate.usage };
}

/** Why so many further bytes do not fit into a place; null when they do, or nobody knows. */
export async function whyNoRoom(place: Place, bytes: number): Promise<EdgeError | null> {
  const room = await place.room().catch(() => null);
  if (!room || bytes <= room.freeBytes) return null;
  const quota = room.quotaBytes === null ? '' : ` (${room.usedBytes} of ${room.quotaBytes} are used)`;
  return new EdgeError(
    'quota',
    `the download needs ${bytes} bytes of storage, but ${room.freeBytes} are free${quota}; delete a stored model with HanzoEdge.models.delete, or load with cache: 'none'`,
    { path: 'cache' },
  );
}
