// Memory of this thread as a place, where there is no other or it was asked for.

import type { Place } from './place.js';

/** More than this is not kept: the memory is wanted for the model itself. */
const MOST_BYTES = 1 << 30;

interface Kept {
  journal: string;
  usedMs: number;
  chunks: Map<number, Uint8Array>;
}

const files = new Map<string, Kept>();

function usedBytes(): number {
  let sum = 0;
  for (const { chunks } of files.values()) for (const chunk of chunks.values()) sum += chunk.length;
  return sum;
}

/** The place. There is one a thread. */
export function memoryPlace(): Place {
  return {
    kind: 'memory',
    async names() { return [...files.keys()]; },
    async journal(name) {
      const file = files.get(name);
      return file ? { text: file.journal, usedMs: file.usedMs } : null;
    },
    async read(name, start) { return files.get(name)?.chunks.get(start) ?? null; },
    async edit(name) {
      const file: Kept = files.get(name) ?? { journal: '', usedMs: Date.now(), chunks: new Map() };
      files.set(name, file);
      return {
        async reserve() {},
        async restart(journal) { file.journal = journal; },
        async put(start, bytes, line) {
          if (usedBytes() + bytes.length > MOST_BYTES) throw new Error(`more than ${MOST_BYTES} bytes are not kept in memory`);
          file.chunks.set(start, bytes.slice());
          file.journal += line;
        },
        async note(line) { file.journal += line; },
        async close() {},
      };
    },
    async touch(name) {
      const file = files.get(name);
      if (file) file.usedMs = Date.now();
    },
    async remove(name) { files.delete(name); },
    async room() { return { freeBytes: MOST_BYTES - usedBytes(), quotaBytes: MOST_BYTES, usedBytes: usedBytes() }; },
  };
}
