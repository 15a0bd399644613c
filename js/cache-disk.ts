// A folder on disk as a place, for Node.

import type { FileHandle } from 'node:fs/promises';
import type { Place, PlaceEditor } from './place.js';
import { node } from './platform.js';

const JOURNAL = '.journal';
const LOCK = '.lock';

/** The place in `downloads/` of the cache folder. */
export function diskPlace(cache: string): Place {
  const folder = node().path.join(cache, 'downloads');
  const at = (name: string) => node().path.join(folder, name);
  return {
    kind: 'disk',
    async names() {
      const names = await node().fs.readdir(folder).catch(() => []);
      return names.flatMap((name) => (name.endsWith(JOURNAL) ? [name.slice(0, -JOURNAL.length)] : []));
    },
    async journal(name) {
      const path = at(name) + JOURNAL;
      try {
        const [text, info] = await Promise.all([node().fs.readFile(path, 'utf8'), node().fs.stat(path)]);
        return { text, usedMs: info.mtimeMs };
      } catch {
        return null;
      }
    },
    read: (name, start, length) => readAt(at(name), start, length),
    async edit(name) {
      await node().fs.mkdir(folder, { recursive: true });
      return edit(at(name));
    },
    async touch(name) { await node().fs.utimes(at(name) + JOURNAL, new Date(), new Date()); },
    async remove(name) {
      // The journal first: without it the rest is nothing.
      for (const path of [at(name) + JOURNAL, at(name)]) await node().fs.rm(path, { force: true });
    },
    async room() {
      await node().fs.mkdir(folder, { recursive: true });
      const { bavail, bsize } = await node().fs.statfs(folder);
      return { freeBytes: bavail * bsize, quotaBytes: null, usedBytes: null };
    },
  };
}

/** Null while another process writes the file. */
async function edit(path: string): Promise<PlaceEditor | null> {
  const { fs, constants } = node();
  const lock = path + LOCK;
  if (!(await takeLock(lock))) return null;
  const data = await fs.open(path, constants.O_RDWR | constants.O_CREAT);
  return {
    // The file system's free space was asked for before; a longer file takes none of it.
    async reserve() {},
    // Renamed into place, so that there is a whole journal at any moment.
    async restart(journal) {
      await fs.writeFile(`${path}.new`, journal);
      await fs.rename(`${path}.new`, path + JOURNAL);
    },
    async put(start, bytes, line) {
      await writeAll(data, bytes, start);
      await fs.appendFile(path + JOURNAL, line);
    },
    note: (line) => fs.appendFile(path + JOURNAL, line),
    async close() {
      await data.close();
      await fs.rm(lock, { force: true });
    },
  };
}

/** Makes the file that says which process writes; one that is gone, or is this one, holds no lock. */
async function takeLock(path: string): Promise<boolean> {
  const { fs } = node();
  const isMade = () => fs.writeFile(path, String(process.pid), { flag: 'wx' }).then(() => true, () => false);
  if (await isMade()) return true;
  const holder = Number(await fs.readFile(path, 'utf8').catch(() => ''));
  if (holder > 0 && holder !== process.pid && isAlive(holder)) return false;
  await fs.rm(path, { force: true });
  return isMade();
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process may not be asked, but is there.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, start: number): Promise<void> {
  for (let done = 0; done < bytes.length;) done += (await file.write(bytes, done, bytes.length - done, start + done)).bytesWritten;
}

async function readAt(path: string, start: number, length: number): Promise<Uint8Array> {
  const file = await node().fs.open(path, 'r');
  try {
    const bytes = new Uint8Array(length);
    let filled = 0;
    for (let count = 1; filled < length && count > 0; filled += count) count = (await file.read(bytes, filled, length - filled, start + filled)).bytesRead;
    return bytes.subarray(0, filled);
  } finally {
    await file.close();
  }
}
