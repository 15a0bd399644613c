// The files of a model on the engine's side: each as one stream read from its beginning to its end, whether it comes from
// the network, a cache, memory or the caller. The WASM module's wishes (a prefix, then ranges in order) are cut from it.

import { chunksOf } from './store.js';
import type { Store, StoreEntry } from './store.js';
import { readFile } from './cache-disk.js';
import { Download, faultOfBeginning } from './download.js';
import { EdgeError } from './errors.js';
import { node } from './node.js';
import type { FileSpec } from './protocol.js';

/** A running SHA-256. */
export interface Hasher {
  update(bytes: Uint8Array): void;
  /** The digest in hexadecimal; the hasher is used up. */
  finish(): string;
}

/** What opening a file may use. */
export interface FileContext {
  fetch: typeof fetch;
  headers: [string, string][];
  signal: AbortSignal;
  store: Store | null;
  makeHasher(): Hasher;
  /** The stream that the caller's side reads for us. */
  openStream(resource: number): ReadableStream<Uint8Array>;
}

/** How reading a file ended; what came of an unfinished file is kept for later unless it is of no use. */
export type Outcome = 'complete' | 'keep' | 'discard';

/** One file, read once from its beginning. */
export interface FileStream {
  readonly name: string;
  readonly size: number | null;
  readonly origin: 'network' | 'cache' | 'caller';
  /** Bytes that need no transfer: the part an earlier download left. */
  readonly had: number;
  read(): Promise<Uint8Array | null>;
  /** Ends reading, after the last byte ('complete') or before. */
  close(outcome: Outcome): Promise<void>;
}

/** A file whose place is known: names were looked up. */
export type PlacedFile = Exclude<FileSpec, { kind: 'hub' | 'name' }>;

/** Opens a file. */
export async function openFile(spec: PlacedFile, context: FileContext): Promise<FileStream> {
  switch (spec.kind) {
    case 'url': return openUrl(spec, context);
    case 'path': return openPath(spec.path, spec.name);
    case 'blob': return fromChunks(spec.name, spec.blob.size, chunksOf(spec.blob.stream()));
    case 'bytes': return fromChunks(spec.name, spec.bytes.length, piecesOf(spec.bytes));
    case 'handle': {
      const file = await spec.handle.getFile();
      return fromChunks(spec.name, file.size, chunksOf(file.stream()));
    }
    case 'stream': return fromChunks(spec.name, null, chunksOf(context.openStream(spec.resource)));
  }
}

async function openPath(path: string, name: string): Promise<FileStream> {
  const info = await node().fs.stat(path).catch(() => null);
  if (!info?.isFile()) throw new EdgeError('not-found', `there is no model file ${path}`, { path });
  return fromChunks(name, info.size, readFile(path));
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 4 << 20) yield bytes.subarray(at, at + (4 << 20));
}

function fromChunks(name: string, size: number | null, chunks: AsyncIterable<Uint8Array>, origin: FileStream['origin'] = 'caller'): FileStream {
  const iterator = chunks[Symbol.asyncIterator]();
  return {
    name,
    size,
    origin,
    had: 0,
    async read() {
      const { value, done } = await iterator.next();
      return done ? null : value;
    },
    async close() { await iterator.return?.(); },
  };
}

type UrlSpec = Extract<FileSpec, { kind: 'url' }>;

async function openUrl(spec: UrlSpec, context: FileContext): Promise<FileStream> {
  const key = spec.sha256 ? `${spec.urls[0]}#sha256=${spec.sha256}` : `${spec.urls[0]}`;
  const stored = await context.store?.find(key).catch(() => null);
  if (stored) return fromChunks(spec.name, stored.size ?? spec.bytes ?? null, stored.read(), 'cache');
  const entry = (await context.store?.open(key).catch(() => null)) ?? null;
  try {
    const from = entry && entry.bytes > 0 ? { bytes: entry.bytes, validator: entry.validator } : null;
    const download = await Download.open(spec.urls, from, context);
    const keepPart = download.start > 0;
    const part = keepPart && entry ? entry.readPart()[Symbol.asyncIterator]() : null;
    await entry?.begin(download.validator, keepPart);
    return new DownloadedFile(spec, download, entry, part, context);
  } catch (error) {
    await entry?.abandon(false);
    throw error;
  }
}

/** A download that is stored and hashed while it is read. */
class DownloadedFile implements FileStream {
  readonly name: string;
  readonly size: number | null;
  readonly origin = 'network';
  readonly had: number;
  readonly #spec: UrlSpec;
  readonly #download: Download;
  readonly #entry: StoreEntry | null;
  readonly #hasher: Hasher | null;
  #part: AsyncIterator<Uint8Array> | null;
  #loaded = 0;

  constructor(spec: UrlSpec, download: Download, entry: StoreEntry | null, part: AsyncIterator<Uint8Array> | null, context: FileContext) {
    this.name = spec.name;
    this.size = spec.bytes ?? download.total;
    this.had = download.start;
    this.#spec = spec;
    this.#download = download;
    this.#entry = entry;
    this.#part = part;
    this.#hasher = spec.sha256 ? context.makeHasher() : null;
  }

  async read(): Promise<Uint8Array | null> {
    const stored = await this.#part?.next();
    if (stored && !stored.done) return this.#take(stored.value);
    this.#part = null;
    const chunk = await this.#download.read();
    if (chunk === null) return null;
    await this.#entry?.write(chunk);
    return this.#take(chunk);
  }

  async close(outcome: Outcome): Promise<void> {
    const fault = outcome === 'complete' ? this.#fault() : null;
    await this.#download.close();
    if (outcome === 'complete' && !fault) await this.#entry?.commit();
    else await this.#entry?.abandon(fault !== null || outcome === 'discard');
    if (fault) throw fault;
  }

  #take(chunk: Uint8Array): Uint8Array {
    this.#loaded += chunk.length;
    this.#hasher?.update(chunk);
    return chunk;
  }

  /** What is wrong with the bytes that came. */
  #fault(): EdgeError | null {
    const { bytes, sha256 } = this.#spec;
    const path = this.#download.url;
    if (bytes !== undefined && bytes !== this.#loaded) return new EdgeError('integrity', `${path} has ${this.#loaded} bytes where ${bytes} were expected`, { path });
    const found = this.#hasher?.finish();
    if (found === undefined || found === sha256) return null;
    return new EdgeError('integrity', `${path} has SHA-256 ${found} where ${sha256} was expected`, { path });
  }
}

/** Cuts prefixes and ranges from a file stream, keeping only what may still be asked for. */
export class FileWindow {
  readonly file: FileStream;
  #chunks: Uint8Array[] = [];
  /** The file offset of the first kept chunk and of the end of the last one. */
  #start = 0;
  #end = 0;
  #isAtEnd = false;
  #isSniffed = false;
  #isClosed = false;
  readonly #onBytes: (count: number) => void;

  constructor(file: FileStream, onBytes: (count: number) => void) {
    this.file = file;
    this.#onBytes = onBytes;
  }

  /** The first `length` bytes, or all when the file is shorter. */
  async prefix(length: number): Promise<Uint8Array> {
    if (this.#start > 0) throw new EdgeError('internal', `the beginning of ${this.file.name} is gone`);
    await this.#fill(length);
    const bytes = this.#copy(0, Math.min(length, this.#end));
    if (!this.#isSniffed && (bytes.length >= 16 || this.#isAtEnd)) {
      this.#isSniffed = true;
      const fault = faultOfBeginning(bytes, this.file.name);
      if (fault) throw fault;
    }
    return bytes;
  }

  /** Whether the byte at `offset` is kept or still to come. */
  has(offset: number): boolean {
    return offset >= this.#start && !this.#isClosed;
  }

  /** The bytes at `offset`; what lies before is forgotten when the kept bytes are more than `keep`. */
  async range(offset: number, length: number, keep: number): Promise<Uint8Array> {
    if (!this.has(offset)) throw new EdgeError('internal', `${this.file.name}: bytes at ${offset} were asked for after ${this.#start}`);
    const forget = () => { if (this.#end - this.#start > keep) this.#forget(offset); };
    forget();
    while (this.#end < offset && !this.#isAtEnd) {
      await this.#fill(this.#end + 1);
      forget();
    }
    await this.#fill(offset + length);
    if (this.#end < offset + length) {
      throw new EdgeError('malformed-file', `${this.file.name} ends at byte ${this.#end}, but its tensors reach to ${offset + length}`, { path: this.file.name });
    }
    return this.#copy(offset, length);
  }

  /** Reads to the end, so that the whole file is checked and stored. */
  async drain(): Promise<void> {
    while (!this.#isAtEnd) {
      this.#forget(this.#end);
      await this.#fill(this.#end + 1);
    }
    this.#chunks = [];
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.file.close('complete');
  }

  async #fill(end: number): Promise<void> {
    while (this.#end < end && !this.#isAtEnd) {
      const chunk = await this.file.read();
      if (chunk === null) {
        this.#isAtEnd = true;
      } else if (chunk.length > 0) {
        this.#chunks.push(chunk);
        this.#end += chunk.length;
        this.#onBytes(chunk.length);
      }
    }
  }

  #forget(offset: number): void {
    for (let first = this.#chunks[0]; first && this.#start + first.length <= offset; first = this.#chunks[0]) {
      this.#start += first.length;
      this.#chunks.shift();
    }
  }

  #copy(offset: number, length: number): Uint8Array {
    const [first] = this.#chunks;
    const skip = offset - this.#start;
    if (first && first.length >= skip + length) return first.subarray(skip, skip + length);
    const bytes = new Uint8Array(length);
    let at = this.#start;
    for (const chunk of this.#chunks) {
      const from = Math.max(offset - at, 0);
      const to = Math.min(offset + length - at, chunk.length);
      if (from < to) bytes.set(chunk.subarray(from, to), at + from - offset);
      at += chunk.length;
    }
    return bytes;
  }
}
