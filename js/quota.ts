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
  return room && bytes > room.freeBytes ? quotaError(bytes, room) : null;
}

/** Whether a place refused to keep something for want of room. */
export function isQuotaFault(error: unknown): boolean {
  return error instanceof Error && (error.name === 'QuotaExceededError' || (error as { code?: unknown }).code === 'ENOSPC');
}

/** What a load fails with that finds no room for its download. */
export function quotaError(bytes: number, room: Room): EdgeError {
  const quota = room.quotaBytes === null ? '' : ` (${room.usedBytes} of ${room.quotaBytes} are used)`;
  return fault(`the download needs ${bytes} bytes of storage, but ${room.freeBytes} are free${quota}`);
}

/** The same where the place itself refused. */
export function refusedError(bytes: number | null): EdgeError {
  return fault(`the download needs ${bytes ?? 'an unknown number of'} bytes of storage, which this device refuses to give`);
}

function fault(what: string): EdgeError {
  return new EdgeError('quota', `${what}; delete a stored model with HanzoEdge.models.delete, or load with cache: 'none'`, { path: 'cache' });
}
