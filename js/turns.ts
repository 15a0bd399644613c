// Whose turn it is to download a file: one tab's at a time. The others wait and then read what that one stored.

import { tryLock, waitForLock } from './locks.js';
import type { Release } from './locks.js';
import { pause } from './pause.js';

const LOOK_MS = 500;
/** A tab that stores nothing for so long is not waited for: it may be asleep. */
const PATIENCE_MS = 120_000;

/** The name of a file's lock. */
export function lockOf(key: string): string {
  return `hanzo-edge/${key}`;
}

/**
 * Waits for the turn of a file. `look` tells how many bytes are stored by now. Null when the tab whose turn it is does not
 * get on; rejects with the signal's reason.
 */
export async function takeTurn(key: string, signal: AbortSignal, look: () => Promise<number>, patienceMs = PATIENCE_MS): Promise<Release | null> {
  const free = await tryLock(lockOf(key));
  if (free) return free;
  const control = new AbortController();
  const turn = waitForLock(lockOf(key), control.signal).catch(() => null);
  let [stored, sinceMs] = [await look(), performance.now()];
  try {
    for (;;) {
      const first = await Promise.race([turn, pause(LOOK_MS, signal).then(() => 'look' as const)]);
      if (first !== 'look') return first;
      const now = await look();
      if (now !== stored) [stored, sinceMs] = [now, performance.now()];
      if (performance.now() - sinceMs > patienceMs) break;
    }
  } catch (error) {
    giveUp(control, turn);
    throw error;
  }
  giveUp(control, turn);
  return null;
}

/** Ends waiting; a turn that came at the last moment is given back. */
function giveUp(control: AbortController, turn: Promise<Release | null>): void {
  control.abort();
  void turn.then((release) => release?.());
}
