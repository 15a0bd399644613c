// The origin's private file system as a store. Only in workers, where files have synchronous handles.

import { fileNameOf, parseMeta } from './store.js';
import type { Store, StoreEntry, StoredMeta } from './store.js';

const READ_BYTES = 4 << 20;

/** What a synchronous handle can do; the DOM library knows it only in workers. */
interface SyncHandle {
  read(into: Uint8Array, options: { at: number }): number;
  write(from: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

interface WithSyncHandle {
  createSyncAccessHandle(): Promise<SyncHandle>;
}

/** Opens the store in the folder `hanzo-edge` of this origin. */
export async function opfsStore(): Promise<Store> {
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle('hanzo-edge', { create: true });
  return {
    kind: 'opfs',
    async find(key) {
      const meta = await readMeta(folder, key);
      if (!meta || meta.size === null) return null;
      const file = await folder.getFileHandle(fileNameOf(key)).then((handle) => handle.getFile()).catch(() => null);
      if (!file || file.size !== meta.size) return null;
      return { size: file.size, read: () => slicesOf(file) };
    },
    async open(key) {
      const file = await folder.getFileHandle(fileNameOf(key), { create: true });
      // Fails while another tab writes the same file.
      const handle = await (file as unknown as WithSyncHandle).createSyncAccessHandle().catch(() => null);
      if (!handle) return null;
      const meta = await readMeta(folder, key);
      return new OpfsEntry(folder, key, handle, meta?.validator ?? null, meta && meta.size === null ? handle.getSize() : 0);
    },
  };
}

class OpfsEntry implements StoreEntry {
  readonly bytes: number;
  readonly validator: string | null;
  readonly #folder: FileSystemDirectoryHandle;
  readonly #key: string;
  #handle: SyncHandle | null;
  #position = 0;
  #beganWith: string | null = null;

  constructor(folder: FileSystemDirectoryHandle, key: string, handle: SyncHandle, validator: string | null, bytes: number) {
    this.#folder = folder;
    this.#key = key;
    this.#handle = handle;
    this.validator = validator;
    this.bytes = bytes;
  }

  async *readPart(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < this.bytes;) {
      const chunk = new Uint8Array(Math.min(READ_BYTES, this.bytes - at));
      const n = this.#handle?.read(chunk, { at }) ?? 0;
      if (n <= 0) throw new Error('a stored file is shorter than it was');
      yield chunk.subarray(0, n);
      at += n;
    }
  }

  async begin(validator: string | null, keepPart: boolean): Promise<void> {
    await this.#orOff(async (handle) => {
      this.#beganWith = validator;
      this.#position = keepPart ? this.bytes : 0;
      handle.truncate(this.#position);
      await writeMeta(this.#folder, { key: this.#key, validator, size: null });
    });
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#orOff(async (handle) => {
      for (let done = 0; done < bytes.length;) {
        const n = handle.write(bytes.subarray(done), { at: this.#position });
        if (n <= 0) throw new Error('the disk takes no more');
        done += n;
        this.#position += n;
      }
    });
  }

  async commit(): Promise<void> {
    await this.#orOff(async (handle) => {
      handle.flush();
      handle.close();
      this.#handle = null;
      await writeMeta(this.#folder, { key: this.#key, validator: this.#beganWith, size: this.#position });
    });
  }

  async abandon(discard: boolean): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    handle?.flush();
    handle?.close();
    if (discard) await remove(this.#folder, this.#key);
  }

  /** Does a step of storing; one that fails (a full disk) gives the entry up. */
  async #orOff(step: (handle: SyncHandle) => Promise<void>): Promise<void> {
    if (!this.#handle) return;
    try {
      await step(this.#handle);
    } catch {
      await this.abandon(true);
    }
  }
}

async function* slicesOf(file: File): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < file.size; at += READ_BYTES) yield new Uint8Array(await file.slice(at, at + READ_BYTES).arrayBuffer());
}

async function readMeta(folder: FileSystemDirectoryHandle, key: string): Promise<StoredMeta | null> {
  try {
    const handle = await folder.getFileHandle(`${fileNameOf(key)}.json`);
    return parseMeta(await (await handle.getFile()).text(), key);
  } catch {
    return null;
  }
}

/** Written through a swap file, which appears only when it is closed. */
async function writeMeta(folder: FileSystemDirectoryHandle, meta: StoredMeta): Promise<void> {
  const handle = await folder.getFileHandle(`${fileNameOf(meta.key)}.json`, { create: true });
  const stream = await handle.createWritable();
  await stream.write(JSON.stringify(meta));
  await stream.close();
}

async function remove(folder: FileSystemDirectoryHandle, key: string): Promise<void> {
  for (const name of [`${fileNameOf(key)}.json`, fileNameOf(key)]) await folder.removeEntry(name).catch(() => {});
}
