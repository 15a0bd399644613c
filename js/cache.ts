// Chooses where downloaded files are kept, and holds the two stores that need no files: memory and the Cache API.
// Stores know keys and bytes, nothing of the network or of models.

import { diskStore } from './cache-disk.js';
import { opfsStore } from './cache-opfs.js';
import { cacheFolder } from './node.js';
import { chunksOf, fileNameOf } from './store.js';
import type { Store } from './store.js';
import { hasCacheApi, hasOpfs, isNode } from './support.js';
import type { EdgeOptions } from './types.js';

/** The store for an option; null for 'none' or where the one asked for does not exist. */
export async function openStore(option: NonNullable<EdgeOptions['cache']>): Promise<Store | null> {
  if (option === 'none') return null;
  if (option === 'memory') return memoryStore();
  if (isNode()) return diskStore(cacheFolder());
  try {
    if (option !== 'cache-api' && hasOpfs()) return await opfsStore();
    if (option !== 'opfs' && hasCacheApi()) return cacheApiStore(await caches.open('hanzo-edge'));
  } catch {
    // Storage is denied (private windows, blocked cookies): memory is what remains.
  }
  return option === 'auto' ? memoryStore() : null;
}

const MEMORY = new Map<string, Uint8Array[]>();

function memoryStore(): Store {
  return {
    kind: 'memory',
    async find(key) {
      const chunks = MEMORY.get(key);
      if (!chunks) return null;
      return { size: chunks.reduce((sum, chunk) => sum + chunk.length, 0), async *read() { yield* chunks; } };
    },
    async open(key) {
      let chunks: Uint8Array[] = [];
      return {
        bytes: 0,
        validator: null,
        async *readPart() {},
        async begin() { chunks = []; },
        async write(bytes) { chunks.push(bytes.slice()); },
        async commit() { MEMORY.set(key, chunks); },
        async abandon() { chunks = []; },
      };
    },
  };
}

/** The Cache API as a store: it cannot continue an unfinished file, and shows a file only when all of it was written. */
function cacheApiStore(cache: Cache): Store {
  const address = (key: string) => `https://hanzo-edge.invalid/${fileNameOf(key)}`;
  return {
    kind: 'cache-api',
    async find(key) {
      const response = await cache.match(address(key));
      const body = response?.body;
      return body ? { size: null, read: () => chunksOf(body) } : null;
    },
    async open(key) {
      const pipe = new TransformStream<Uint8Array, Uint8Array>();
      const writer = pipe.writable.getWriter();
      let isOff = false;
      const off = () => { isOff = true; };
      let put: Promise<void> = Promise.resolve();
      writer.closed.catch(off);
      return {
        bytes: 0,
        validator: null,
        async *readPart() {},
        async begin() {
          put = cache.put(address(key), new Response(pipe.readable));
          put.catch(off);
        },
        async write(bytes) {
          // The caller may reuse or transfer its buffer, so the cache gets a copy.
          if (!isOff) await Promise.race([writer.write(bytes.slice()), put]).catch(off);
        },
        async commit() {
          if (!isOff) await writer.close().then(() => put).catch(off);
        },
        async abandon() {
          await writer.abort().catch(off);
          await put.catch(off);
        },
      };
    },
  };
}
