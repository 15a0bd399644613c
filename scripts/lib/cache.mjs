// Where models and tools are kept on the user's machine. The same rule as `src/registry/cache.rs`.

import { homedir } from 'node:os';
import { join } from 'node:path';

/** `$HANZO_EDGE_CACHE`, else `hanzo-edge` in the platform's cache folder. */
export function cacheFolder(env = process.env, platform = process.platform, home = homedir()) {
  if (env.HANZO_EDGE_CACHE) return env.HANZO_EDGE_CACHE;
  if (platform === 'darwin') return join(home, 'Library', 'Caches', 'hanzo-edge');
  if (platform === 'win32') return join(env.LOCALAPPDATA || join(home, 'AppData', 'Local'), 'hanzo-edge');
  return join(env.XDG_CACHE_HOME || join(home, '.cache'), 'hanzo-edge');
}
