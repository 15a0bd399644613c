// Locks by name: of all tabs of an origin where the browser has Web Locks, else of this thread. A lock goes with its tab,
// so that nobody waits for one that is gone.

/** Gives a lock back. */
export type Release = () => void;

/** The locks of this thread, each with the promise of its end. */
const held = new Map<string, Promise<void>>();

/** Takes a lock if it is free. */
export async function tryLock(name: string): Promise<Release | null> {
  const locks = webLocks();
  if (locks) return webLock(locks, name, { ifAvailable: true });
  return held.has(name) ? null : hold(name);
}

/** Waits for a lock; rejects with the signal's reason. */
export async function waitForLock(name: string, signal: AbortSignal): Promise<Release> {
  const locks = webLocks();
  if (locks) return (await webLock(locks, name, { signal })) ?? (() => {});
  for (;;) {
    signal.throwIfAborted();
    const before = held.get(name);
    if (!before) return hold(name);
    let stop = () => {};
    const aborted = new Promise<void>((resolve) => { stop = resolve; });
    signal.addEventListener('abort', stop, { once: true });
    await Promise.race([before, aborted]);
    signal.removeEventListener('abort', stop);
  }
}

/** Whether anyone holds a lock. */
export async function isLocked(name: string): Promise<boolean> {
  const locks = webLocks();
  if (!locks) return held.has(name);
  return ((await locks.query()).held ?? []).some((lock) => lock.name === name);
}

function webLocks(): LockManager | undefined {
  return (globalThis.navigator as Navigator | undefined)?.locks as LockManager | undefined;
}

/** Holds a Web Lock until it is given back. */
function webLock(locks: LockManager, name: string, options: LockOptions): Promise<Release | null> {
  return new Promise((resolve, reject) => {
    const end = locks.request(name, options, (lock) => {
      if (!lock) return resolve(null);
      return new Promise<void>((free) => { resolve(() => free()); });
    });
    end.catch(reject);
  });
}

function hold(name: string): Release {
  let free = () => {};
  held.set(name, new Promise<void>((resolve) => { free = resolve; }));
  return () => {
    held.delete(name);
    free();
  };
}
