// A file at a URL: what is stored of it first, then what is missing from the network, which is stored and hashed while it
// is read. Bytes from the store are compared with their hashes; where they differ, the network goes on from there.

import { Download } from './download.js';
import { EdgeError } from './errors.js';
import type { FileContext, FileStream, Hasher, Outcome } from './files.js';
import { tryLock } from './locks.js';
import type { Release } from './locks.js';
import type { FileSpec } from './protocol.js';
import { isQuotaFault, refusedError } from './quota.js';
import type { StoreEntry, StoredFile } from './store.js';
import { lockOf, takeTurn } from './turns.js';

export type UrlSpec = Extract<FileSpec, { kind: 'url' }>;

/** What a stored file is found by. */
export function keyOf(spec: UrlSpec): string {
  return spec.urls[0] ?? '';
}

/** Opens a file at a URL. */
export async function openUrl(spec: UrlSpec, context: FileContext): Promise<FileStream> {
  const file = new UrlFile(spec, context);
  try {
    await file.open();
  } catch (error) {
    await file.close('keep');
    throw error;
  }
  return file;
}

class UrlFile implements FileStream {
  readonly name: string;
  had = 0;
  readonly #spec: UrlSpec;
  readonly #context: FileContext;
  #stored: StoredFile | null = null;
  #download: Download | null = null;
  #entry: StoreEntry | null = null;
  #hasher: Hasher | null = null;
  #release: Release | null = null;
  /** Why the store could not be opened for writing. */
  #openFault: unknown = null;
  /** The next stored chunk, being read ahead. */
  #ahead: Promise<Uint8Array | null> | null = null;
  #chunkIndex = 0;
  #position = 0;

  constructor(spec: UrlSpec, context: FileContext) {
    this.name = spec.name;
    this.#spec = spec;
    this.#context = context;
  }

  get size(): number | null {
    return this.#spec.bytes ?? this.#download?.total ?? this.#stored?.header.total ?? null;
  }

  get origin(): FileStream['origin'] {
    return this.#download ? 'network' : 'cache';
  }

  get storeFault(): unknown {
    return this.#entry?.fault ?? this.#openFault;
  }

  async open(): Promise<void> {
    const { store, isGlance } = this.#context;
    await this.#look();
    if (store && !isGlance && !this.#stored?.isComplete) {
      this.#release = await this.#takeTurn();
      // What another tab stored meanwhile.
      await this.#look();
    }
    if (this.#stored?.isComplete) {
      this.#giveTurn();
      if (!isGlance) await store?.touch(keyOf(this.#spec)).catch(() => {});
    } else {
      this.#hasher = this.#context.makeHasher();
      await this.#connect(false);
    }
    this.had = this.#stored?.bytes ?? 0;
  }

  async read(): Promise<Uint8Array | null> {
    const stored = await this.#readStored();
    if (stored) return this.#take(stored);
    const chunk = (await this.#download?.read()) ?? null;
    if (chunk === null) return null;
    await this.#entry?.write(chunk);
    return this.#take(chunk);
  }

  async close(outcome: Outcome): Promise<void> {
    const sha256 = outcome === 'complete' ? this.#hasher?.finish() : undefined;
    const fault = outcome === 'complete' ? this.#fault(sha256) : null;
    this.#download?.close();
    try {
      if (sha256 !== undefined && !fault) await this.#entry?.commit(sha256);
      else await this.#entry?.abandon(fault !== null || outcome === 'discard');
    } finally {
      this.#giveTurn();
    }
    if (fault) throw fault;
  }

  /** Finds what is stored of the wanted version. */
  async #look(): Promise<void> {
    const stored = (await this.#context.store?.find(keyOf(this.#spec)).catch(() => null)) ?? null;
    const { sha256, bytes } = this.#spec;
    const isOther = stored !== null && ((sha256 !== undefined && stored.sha256 !== null && stored.sha256 !== sha256)
      || (bytes !== undefined && stored.header.total !== null && stored.header.total !== bytes));
    this.#stored = isOther ? null : stored;
  }

  async #takeTurn(): Promise<Release | null> {
    const { signal, onWait } = this.#context;
    return takeTurn(keyOf(this.#spec), signal, async () => {
      await this.#look();
      const stored = this.#stored?.bytes ?? 0;
      if (stored > 0) onWait?.(this.name, stored, this.size);
      return stored;
    });
  }

  #giveTurn(): void {
    this.#release?.();
    this.#release = null;
  }

  /** Starts the download after what is stored, and opens the store for it. `isUsed`: bytes were given away already. */
  async #connect(isUsed: boolean): Promise<void> {
    const { store, model, isGlance } = this.#context;
    const { urls, name, sha256, bytes } = this.#spec;
    const stored = this.#stored;
    const from = stored && stored.bytes > 0 ? { bytes: stored.bytes, validator: stored.header.validator, total: stored.header.total, isUsed } : null;
    const isThere = stored !== null && stored.bytes === stored.header.total;
    if (!isThere) {
      const known = { bytes, sha256: sha256 ?? (isUsed ? (stored?.sha256 ?? undefined) : undefined) };
      this.#download = await Download.open(urls, known, from, { ...this.#context, ...(store ? { httpCache: 'no-store' as const } : {}) });
      if (this.#download.start === 0) this.#stored = null;
    }
    // Without the turn another tab is storing the same file.
    if (!store || isGlance || !this.#release) return;
    const version = { validator: this.#download?.validator ?? stored?.header.validator ?? null, total: this.size };
    const identity = { key: keyOf(this.#spec), url: keyOf(this.#spec), name, model: model.name, files: model.files };
    try {
      this.#entry = await store.write(identity, version, this.#stored);
    } catch (error) {
      if (isQuotaFault(error) && !isUsed) throw refusedError(this.size);
      this.#openFault = error;
    }
  }

  /** The next chunk of what is stored; null after the last, and where the stored bytes are not what they were. */
  async #readStored(): Promise<Uint8Array | null> {
    const stored = this.#stored;
    const index = this.#chunkIndex;
    if (!stored || index >= stored.hashes.length) return null;
    const chunk = await (this.#ahead ?? stored.chunk(index));
    this.#ahead = null;
    if (chunk) {
      this.#chunkIndex += 1;
      if (this.#chunkIndex < stored.hashes.length) this.#ahead = stored.chunk(this.#chunkIndex);
      return chunk;
    }
    await this.#mend(stored, index);
    return null;
  }

  /** Goes on with the network where a stored chunk is bad. */
  async #mend(stored: StoredFile, index: number): Promise<void> {
    this.#download?.close();
    await this.#entry?.abandon(false);
    this.#entry = null;
    stored.cut(index);
    if (!this.#context.isGlance) this.#release ??= await tryLock(lockOf(keyOf(this.#spec)));
    // The hash of the whole begins with what was read so far.
    this.#hasher = this.#context.makeHasher();
    for (let i = 0; i < index; i += 1) this.#hasher.update((await stored.chunk(i)) ?? new Uint8Array());
    await this.#connect(this.#position > 0);
  }

  #take(chunk: Uint8Array): Uint8Array {
    this.#position += chunk.length;
    this.#hasher?.update(chunk);
    return chunk;
  }

  /** What is wrong with the bytes that came. */
  #fault(found: string | undefined): EdgeError | null {
    const { bytes } = this.#spec;
    const sha256 = this.#spec.sha256 ?? this.#stored?.sha256 ?? undefined;
    const path = this.#download?.url ?? keyOf(this.#spec);
    if (bytes !== undefined && bytes !== this.#position) return new EdgeError('integrity', `${path} has ${this.#position} bytes where ${bytes} were expected`, { path });
    if (found === undefined || sha256 === undefined || found === sha256) return null;
    return new EdgeError('integrity', `${path} has SHA-256 ${found} where ${sha256} was expected`, { path });
  }
}
