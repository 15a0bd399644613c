// What the download tests share: contexts with a store of their own, and reading a file as a load does.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { diskPlace } from '../../js/cache-disk.js';
import { EdgeError } from '../../js/errors.js';
import type { EdgeErrorCode } from '../../js/errors.js';
import type { FileContext } from '../../js/files.js';
import type { PlacedFile } from '../../js/protocol.js';
import { ModelFiles, readModel } from '../../js/model-files.js';
import { rising } from '../../js/progress.js';
import { Store } from '../../js/store.js';
import type { Progress } from '../../js/types.js';

const folder = mkdtempSync(join(tmpdir(), 'hanzo-edge-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Bytes of the chunks of a test's store. */
export const CHUNK_BYTES = 16 << 10;

/** A store in a folder of this run's own. */
export function storeIn(cache: string): Store {
  return new Store(diskPlace(join(folder, cache)), CHUNK_BYTES);
}

/** The folder behind `storeIn`. */
export function folderOf(cache: string): string {
  return join(folder, cache, 'downloads');
}

/** A context that is quick to give up; with the store `cache`, or none. */
export function contextOf(cache: string | null = null, more: Partial<FileContext> = {}): FileContext {
  return {
    retryDelayMs: 1, stallMs: 400, retries: 3, signal: new AbortController().signal, fetch, headers: [],
    store: cache === null ? null : storeIn(cache),
    model: { name: 'test', files: 1 }, isGlance: false,
    makeHasher: () => {
      const hash = createHash('sha256');
      return { update: (bytes) => { hash.update(bytes); }, finish: () => hash.digest('hex') };
    },
    openStream: () => new ReadableStream(),
    ...more,
  };
}

/** A file at a URL, or at the first of several that answers. */
export function spec(urls: string | string[], more: Partial<Extract<PlacedFile, { kind: 'url' }>> = {}): PlacedFile {
  return { kind: 'url', urls: [urls].flat(), name: 'model.gguf', ...more };
}

/** What reading a model gave. */
export interface ReadModel {
  bytes: Uint8Array;
  origin: string;
  size: number | null;
  fault: string | null;
  progress: Progress[];
}

/** Reads a model of one file as a load does: its beginning, then ranges in order, then the rest. */
export async function readAll(place: PlacedFile, context: FileContext): Promise<ReadModel> {
  const progress: Progress[] = [];
  const report = rising((step) => progress.push(step));
  const open = async () => {
    const files = new ModelFiles([place], context, report);
    await files.open().catch(async (error: unknown) => {
      await files.abandon(error);
      throw error;
    });
    return { files };
  };
  return readModel(open, async ({ files }) => {
    const size = files.lengths[0] ?? null;
    await files.prefix(0, 1000);
    files.headersAreDone();
    const chunks: Uint8Array[] = [];
    // As a loader does, for a file whose size its header tells.
    const end = size ?? SIZE_IN_HEADER;
    for (let at = 0; at < end; at += 5000) chunks.push((await files.range(0, at, Math.min(at + 5000, end))).slice());
    await files.drain();
    return { bytes: Buffer.concat(chunks), origin: files.origin, size, fault: files.storeFault, progress };
  });
}

/** What the header of the tests' file would say of its size, where nobody else does. */
let SIZE_IN_HEADER = 0;

/** Sets the size that the header of the tests' file says. */
export function headerSays(size: number): void {
  SIZE_IN_HEADER = size;
}

/** Asserts one clear error. */
export async function fails(work: Promise<unknown>, code: EdgeErrorCode, pattern: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof EdgeError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, pattern);
    return true;
  });
}
