// The models that are stored here, in every place there is: to list, to download, to delete.

import { everyStore } from './cache.js';
import { EdgeError } from './errors.js';
import { isLocked } from './locks.js';
import { storedName } from './model-names.js';
import { bringDisk } from './node-disk.js';
import { callOnce } from './opening.js';
import { checkDownloadOptions } from './options.js';
import { isNode } from './platform.js';
import { describeSource } from './source.js';
import type { Store, StoredFile } from './store.js';
import { lockOf } from './turns.js';
import type { DownloadOptions, ModelInfo, ModelSource } from './types.js';

/** Every stored model, the last used first. */
export async function listModels(): Promise<ModelInfo[]> {
  const found: ModelInfo[] = [];
  for (const store of await stores()) {
    const models = groupedBy(await store.list(), modelOf);
    for (const [name, files] of models) found.push(infoOf(name, files, store));
  }
  return found.sort((a, b) => b.lastUsed.getTime() - a.lastUsed.getTime());
}

/** Stores a model without loading it. */
export async function downloadModel(model: ModelSource, options: DownloadOptions = {}): Promise<void> {
  checkDownloadOptions(options);
  await callOnce('store', { ...options, model });
}

/** Removes a model from every place. */
export async function deleteModel(model: ModelSource): Promise<void> {
  const specs = describeSource(model, () => { throw new EdgeError('invalid-argument', 'a stream is stored nowhere', { path: 'model' }); });
  const wanted = new Set(specs.flatMap((spec) => [storedName(spec), ...(spec.kind === 'url' ? spec.urls : [])]));
  for (const store of await stores()) {
    for (const { header } of await store.list()) {
      if (!wanted.has(header.model) && !wanted.has(header.url)) continue;
      if (await isLocked(lockOf(header.key))) throw new EdgeError('invalid-argument', `${header.model} is being downloaded: abort that first`, { path: 'model' });
      await store.remove(header.key);
    }
  }
}

/** Asks the browser to keep what is stored. In Node nothing is removed anyway. */
export async function persistModels(): Promise<boolean> {
  const storage = globalThis.navigator?.storage as StorageManager | undefined;
  return storage?.persist ? storage.persist() : isNode();
}

function modelOf({ header }: StoredFile): string {
  return header.model;
}

function groupedBy<Key, Value>(values: readonly Value[], keyOf: (value: Value) => Key): Map<Key, Value[]> {
  const groups = new Map<Key, Value[]>();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}

function infoOf(name: string, files: StoredFile[], store: Store): ModelInfo {
  const sorted = [...files].sort((a, b) => (a.header.url < b.header.url ? -1 : 1));
  const totals = sorted.map(({ header }) => header.total);
  const isWhole = sorted.length === sorted[0]?.header.files;
  return {
    name,
    url: sorted[0]?.header.url ?? '',
    bytes: sorted.reduce((sum, file) => sum + file.bytes, 0),
    totalBytes: isWhole ? totals.reduce<number | null>((sum, total) => (sum === null || total === null ? null : sum + total), 0) : null,
    complete: isWhole && sorted.every((file) => file.isComplete),
    where: store.kind,
    lastUsed: new Date(Math.max(...sorted.map(({ usedMs }) => usedMs))),
  };
}

/** The stores there are; in Node the folder on disk among them. */
async function stores(): Promise<Store[]> {
  if (isNode()) await bringDisk();
  return everyStore();
}
