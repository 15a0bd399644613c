// The Cache API as a place: every chunk and every journal is an entry of its own, which appears whole or not at all.

import type { Place } from './place.js';
import { storageRoom } from './quota.js';

const BASE = 'https://hanzo-edge.invalid/';
const CACHE = 'hanzo-edge';

/** Opens the place. */
export async function cacheApiPlace(): Promise<Place> {
  const cache = await caches.open(CACHE);
  const chunkAt = (name: string, start: number) => `${BASE}${name}/${start}`;
  const journalAt = (name: string) => `${BASE}${name}/journal`;
  const usedAt = (name: string) => `${BASE}${name}/used`;
  const textAt = async (url: string) => (await cache.match(url))?.text() ?? null;
  return {
    kind: 'cache-api',
    async names() {
      const urls = (await cache.keys()).map(({ url }) => url);
      return urls.flatMap((url) => (url.endsWith('/journal') ? [url.slice(BASE.length, -'/journal'.length)] : []));
    },
    async journal(name) {
      const text = await textAt(journalAt(name));
      return text === null ? null : { text, usedMs: Number((await textAt(usedAt(name))) ?? 0) };
    },
    async read(name, start) {
      const response = await cache.match(chunkAt(name, start));
      return response ? new Uint8Array(await response.arrayBuffer()) : null;
    },
    async edit(name) {
      let journal = '';
      const write = async (text: string) => {
        journal = text;
        await cache.put(journalAt(name), new Response(journal));
      };
      await cache.put(usedAt(name), new Response(String(Date.now())));
      return {
        async reserve() {},
        restart: write,
        async put(start, bytes, line) {
          await cache.put(chunkAt(name, start), new Response(bytes as Uint8Array<ArrayBuffer>));
          await write(journal + line);
        },
        note: (line) => write(journal + line),
        async close() {},
      };
    },
    async touch(name) { await cache.put(usedAt(name), new Response(String(Date.now()))); },
    async remove(name) {
      const prefix = `${BASE}${name}/`;
      for (const request of await cache.keys()) if (request.url.startsWith(prefix)) await cache.delete(request);
    },
    room: storageRoom,
  };
}
