// What a store of downloaded files is, and what the stores share. It knows no place where files could be.

/** A complete file. */
export interface StoredFile {
  size: number | null;
  read(): AsyncIterable<Uint8Array>;
}

/** A file being stored. Any failure (a full disk) ends the storing, never the load: the entry then ignores what follows. */
export interface StoreEntry {
  /** What an earlier attempt left, and the version it is of. */
  readonly bytes: number;
  readonly validator: string | null;
  readPart(): AsyncIterable<Uint8Array>;
  /** Forgets the part and begins anew; or keeps it, when `keepPart`. */
  begin(validator: string | null, keepPart: boolean): Promise<void>;
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the file visible. */
  commit(): Promise<void>;
  /** Ends without completing: what came so far is kept for later where the store can, and removed when `discard`. */
  abandon(discard: boolean): Promise<void>;
}

/** A place for files. */
export interface Store {
  readonly kind: 'opfs' | 'cache-api' | 'memory' | 'disk';
  find(key: string): Promise<StoredFile | null>;
  /** Null when the file cannot be stored now, for instance because another tab is storing it. */
  open(key: string): Promise<StoreEntry | null>;
}

/** A file name for a key: readable, short, and different for different keys. */
export function fileNameOf(key: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(key)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  const tail = key.split('#')[0]?.split('?')[0]?.split('/').at(-1) ?? '';
  return `${hash.toString(16).padStart(16, '0')}-${tail.replace(/[^\w.-]/g, '_').slice(-80)}`;
}

/** What the chunked stores write beside a file. */
export interface StoredMeta {
  key: string;
  validator: string | null;
  /** The complete file's size; null while it is unfinished. */
  size: number | null;
}

/** Reads stored metadata; null when it is not that of this key. */
export function parseMeta(text: string, key: string): StoredMeta | null {
  try {
    const meta = JSON.parse(text) as Partial<StoredMeta> | null;
    if (meta?.key !== key) return null;
    return { key, validator: meta.validator ?? null, size: typeof meta.size === 'number' ? meta.size : null };
  } catch {
    return null;
  }
}

/** Chunks of a stream. */
export async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
