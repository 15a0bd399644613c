// Small values kept in this browser's storage. Where storage is blocked or full they last as long as the page.

/** The value under a key, or the fallback. */
export function read(key, fallback) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? fallback;
  } catch {
    return fallback;
  }
}

/** Keeps a value; whether that worked. */
export function keep(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** Forgets a value. */
export function forget(key) {
  try {
    localStorage.removeItem(key);
  } catch {
    // Blocked: there is nothing to forget.
  }
}

/** The keys that begin with a prefix. */
export function keysOf(prefix) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return [];
  }
}
