// A folder on disk as a store, for Node.

import { fileNameOf, parseMeta } from './store.js';
import type { Store, StoreEntry, StoredMeta } from './store.js';
import { node } from './node.js';
import type { FileHandle } from 'node:fs/promises';

const READ_BYTES = 4 << 20;

/** The store in `downloads/` of the cache folder. */
export function diskStore(cache: string): Store {
  const folder = node().path.join(cache, 'downloads');
  return {
    kind: 'disk',
    async find(key) {
      const place = placeOf(folder, key);
      const meta = await readMeta(place, key);
      const size = await sizeOf(place.file);
      return meta && meta.size !== null && meta.size === size ? { size, read: () => readFile(place.file) } : null;
    },
    async open(key) {
      const { fs } = node();
      const place = placeOf(folder, key);
      try {
        await fs.mkdir(folder, { recursive: true });
        const meta = await readMeta(place, key);
        const bytes = meta && meta.size === null ? ((await sizeOf(place.part)) ?? 0) : 0;
        return new DiskEntry(place, key, meta?.validator ?? null, bytes);
      } catch {
        return null;
      }
    },
  };
}

interface Place { file: string; part: string; meta: string }

class DiskEntry implements StoreEntry {
  readonly bytes: number;
  readonly validator: string | null;
  readonly #place: Place;
  readonly #key: string;
  #handle: FileHandle | null = null;
  #size = 0;
  #beganWith: string | null = null;
  #isOff = false;

  constructor(place: Place, key: string, validator: string | null, bytes: number) {
    this.#place = place;
    this.#key = key;
    this.validator = validator;
    this.bytes = bytes;
  }

  readPart(): AsyncIterable<Uint8Array> {
    return readFile(this.#place.part, this.bytes);
  }

  async begin(validator: string | null, keepPart: boolean): Promise<void> {
    await this.#orOff(async () => {
      this.#beganWith = validator;
      this.#size = keepPart ? this.bytes : 0;
      await writeMeta(this.#place, { key: this.#key, validator, size: null });
      this.#handle = await node().fs.open(this.#place.part, keepPart ? 'a' : 'w');
    });
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#orOff(async () => {
      if (!this.#handle) return;
      await this.#handle.appendFile(bytes);
      this.#size += bytes.length;
    });
  }

  async commit(): Promise<void> {
    await this.#orOff(async () => {
      await this.#close();
      await node().fs.rename(this.#place.part, this.#place.file);
      await writeMeta(this.#place, { key: this.#key, validator: this.#beganWith, size: this.#size });
    });
  }

  async abandon(discard: boolean): Promise<void> {
    await this.#close();
    if (!discard) return;
    for (const path of [this.#place.meta, this.#place.part]) await node().fs.rm(path, { force: true });
  }

  async #close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    await handle?.close();
  }

  async #orOff(step: () => Promise<void>): Promise<void> {
    if (this.#isOff) return;
    try {
      await step();
    } catch {
      this.#isOff = true;
      await this.abandon(true).catch(() => {});
    }
  }
}

/** A file's bytes in chunks, up to `end`. */
export async function* readFile(path: string, end = Number.POSITIVE_INFINITY): AsyncGenerator<Uint8Array> {
  const file = await node().fs.open(path, 'r');
  try {
    for (let at = 0; at < end;) {
      const chunk = new Uint8Array(Math.min(READ_BYTES, end - at));
      const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) return;
      yield chunk.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}

function placeOf(folder: string, key: string): Place {
  const file = node().path.join(folder, fileNameOf(key));
  return { file, part: `${file}.part`, meta: `${file}.json` };
}

async function sizeOf(path: string): Promise<number | null> {
  return node().fs.stat(path).then((info) => info.size, () => null);
}

async function readMeta(place: Place, key: string): Promise<StoredMeta | null> {
  return node().fs.readFile(place.meta, 'utf8').then((text) => parseMeta(text, key), () => null);
}

async function writeMeta(place: Place, meta: StoredMeta): Promise<void> {
  const { fs } = node();
  await fs.writeFile(`${place.meta}.new`, JSON.stringify(meta));
  await fs.rename(`${place.meta}.new`, place.meta);
}
