// The origin's private file system as a place. Writing needs synchronous handles, which only workers have; the rest works
// in pages too.

import type { Place, PlaceEditor } from './place.js';
import { storageRoom } from './quota.js';

const FOLDER = 'hanzo-edge';
const JOURNAL = '.journal';
/** An empty file whose date says when the other was used. */
const USED = '.used';

/** What a synchronous handle can do; the DOM library knows it only in workers. */
interface SyncHandle {
  write(from: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  close(): void;
}

interface WithSyncHandle {
  createSyncAccessHandle(): Promise<SyncHandle>;
}

interface WithKeys {
  keys(): AsyncIterable<string>;
}

/** Opens the place: a folder of this origin. */
export async function opfsPlace(): Promise<Place> {
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle(FOLDER, { create: true });
  const fileOf = (name: string) => folder.getFileHandle(name).then((handle) => handle.getFile()).catch(() => null);
  return {
    kind: 'opfs',
    async names() {
      const names: string[] = [];
      for await (const name of (folder as unknown as WithKeys).keys()) if (name.endsWith(JOURNAL)) names.push(name.slice(0, -JOURNAL.length));
      return names;
    },
    async journal(name) {
      const file = await fileOf(name + JOURNAL);
      return file ? { text: await file.text(), usedMs: (await fileOf(name + USED))?.lastModified ?? file.lastModified } : null;
    },
    async read(name, start, length) {
      const file = await fileOf(name);
      return file ? new Uint8Array(await file.slice(start, start + length).arrayBuffer()) : null;
    },
    edit: (name) => edit(folder, name),
    async touch(name) {
      const handle = await syncHandle(folder, name + USED);
      handle?.truncate(0);
      handle?.write(new Uint8Array(1), { at: 0 });
      handle?.close();
    },
    async remove(name) {
      // The journal first: without it the rest is nothing.
      for (const suffix of [JOURNAL, '', USED]) await folder.removeEntry(name + suffix).catch(ignoreMissing);
    },
    room: storageRoom,
  };
}

async function edit(folder: FileSystemDirectoryHandle, name: string): Promise<PlaceEditor | null> {
  const data = await syncHandle(folder, name);
  const journal = data && (await syncHandle(folder, name + JOURNAL));
  if (!journal) {
    data?.close();
    return null;
  }
  const add = (text: string) => writeAll(journal, new TextEncoder().encode(text), journal.getSize());
  return {
    // A longer file counts as used, so that a browser refuses now what it would refuse in the middle.
    async reserve(bytes) {
      if (data.getSize() < bytes) data.truncate(bytes);
      // Private windows of some browsers refuse without saying so.
      if (data.getSize() < bytes) throw noSpace();
    },
    async restart(text) {
      journal.truncate(0);
      add(text);
    },
    async put(start, bytes, line) {
      writeAll(data, bytes, start);
      add(line);
    },
    async note(line) { add(line); },
    async close() {
      data.close();
      journal.close();
    },
  };
}

/** Null while another tab has the file open for writing. */
async function syncHandle(folder: FileSystemDirectoryHandle, name: string): Promise<SyncHandle | null> {
  const handle = await folder.getFileHandle(name, { create: true });
  try {
    return await (handle as unknown as WithSyncHandle).createSyncAccessHandle();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'NoModificationAllowedError') return null;
    throw error;
  }
}

function writeAll(handle: SyncHandle, bytes: Uint8Array, start: number): void {
  for (let done = 0; done < bytes.length;) {
    const count = handle.write(bytes.subarray(done), { at: start + done });
    // A private window that is full was seen to answer a number beyond what it was given.
    if (count <= 0 || count > bytes.length - done) throw noSpace();
    done += count;
  }
}

function noSpace(): DOMException {
  return new DOMException('no space is left for this origin', 'QuotaExceededError');
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof DOMException && error.name === 'NotFoundError')) throw error;
}
