// The files of a model on the engine's side: each as one stream read from its beginning to its end, whether it comes from
// the network, a cache, memory or the caller.

import type { DownloadOptions } from './download.js';
import { EdgeError } from './errors.js';
import { node } from './platform.js';
import type { PlacedFile } from './protocol.js';
import { chunksOf } from './store.js';
import type { Store } from './store.js';
import { openUrl } from './url-file.js';

/** A running SHA-256. */
export interface Hasher {
  update(bytes: Uint8Array): void;
  /** The digest in hexadecimal; the hasher is used up. */
  finish(): string;
}

/** What opening a file may use. */
export interface FileContext extends DownloadOptions {
  store: Store | null;
  /** The model's name for people, and how many files it has: noted beside what is stored. */
  model: { name: string; files: number };
  /** Whether only the beginning is wanted: then nothing is stored, and nobody waited for. */
  isGlance: boolean;
  makeHasher(): Hasher;
  /** The stream that the caller's side reads for us. */
  openStream(resource: number): ReadableStream<Uint8Array>;
  /** Hears how far another tab is with the download that is waited for. */
  onWait?(file: string, loaded: number, total: number | null): void;
}

/** How reading a file ended; what came of an unfinished file is kept for later unless it is of no use. */
export type Outcome = 'complete' | 'keep' | 'discard';

/** One file, read once from its beginning. */
export interface FileStream {
  readonly name: string;
  readonly size: number | null;
  readonly origin: 'network' | 'cache' | 'caller';
  /** Bytes that need no transfer: what is stored already. */
  readonly had: number;
  read(): Promise<Uint8Array | null>;
  /** Ends reading, after the last byte ('complete') or before. */
  close(outcome: Outcome): Promise<void>;
  /** Why the file could not be stored; null when it could, or was not to be. */
  readonly storeFault?: unknown;
}

const READ_BYTES = 4 << 20;

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
    case 'stream': {
      if (context.isGlance) throw new EdgeError('invalid-argument', 'a stream can be read only once, so that nothing can be told of it before: give a Blob or a URL', { path: 'model' });
      return fromChunks(spec.name, null, chunksOf(context.openStream(spec.resource)));
    }
  }
}

async function openPath(path: string, name: string): Promise<FileStream> {
  const info = await node().fs.stat(path).catch(() => null);
  if (!info?.isFile()) throw new EdgeError('not-found', `there is no model file ${path}`, { path });
  return fromChunks(name, info.size, readFile(path));
}

async function* readFile(path: string): AsyncGenerator<Uint8Array> {
  const file = await node().fs.open(path, 'r');
  try {
    for (;;) {
      const chunk = new Uint8Array(READ_BYTES);
      const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
      if (bytesRead === 0) return;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += READ_BYTES) yield bytes.subarray(at, at + READ_BYTES);
}

function fromChunks(name: string, size: number | null, chunks: AsyncIterable<Uint8Array>): FileStream {
  const iterator = chunks[Symbol.asyncIterator]();
  return {
    name,
    size,
    origin: 'caller',
    had: size ?? 0,
    async read() {
      const { value, done } = await iterator.next();
      return done ? null : value;
    },
    async close() { await iterator.return?.(); },
  };
}
