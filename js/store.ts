// Stored files: found, read, written and listed, whatever place they are in. A file is chunks with a SHA-256 each, and what
// is read is compared with them, so that neither a crash nor a bad disk gives wrong bytes. It knows no network.

import { journalEnd, journalLine, journalStart, parseJournal } from './journal.js';
import type { FileIdentity, Journal, JournalHeader } from './journal.js';
import { nameOf } from './place.js';
import type { Place, PlaceEditor, PlaceKind } from './place.js';

const CHUNK_BYTES = 4 << 20;

/** A store in one place. */
export class Store {
  readonly place: Place;
  readonly #chunkBytes: number;

  constructor(place: Place, chunkBytes = CHUNK_BYTES) {
    this.place = place;
    this.#chunkBytes = chunkBytes;
  }

  get kind(): PlaceKind {
    return this.place.kind;
  }

  /** What is stored under a key, complete or not; null when nothing is. */
  async find(key: string): Promise<StoredFile | null> {
    const file = await this.#read(nameOf(key));
    return file?.header.key === key ? file : null;
  }

  /** Every stored file. */
  async list(): Promise<StoredFile[]> {
    const files = await Promise.all((await this.place.names()).map((name) => this.#read(name)));
    return files.filter((file) => file !== null);
  }

  /** Opens a file for writing: after `kept`, or anew. Null while another tab writes it; fails where there is no room. */
  async write(identity: FileIdentity, version: Pick<JournalHeader, 'validator' | 'total'>, kept: StoredFile | null): Promise<StoreEntry | null> {
    const name = nameOf(identity.key);
    if (!kept) await this.place.remove(name).catch(() => {});
    const editor = await this.place.edit(name);
    if (!editor) return null;
    const header: JournalHeader = { version: 1, chunkBytes: kept?.header.chunkBytes ?? this.#chunkBytes, ...version, ...identity };
    const entry = new StoreEntry(this.place, editor, header);
    try {
      await editor.reserve(header.total ?? 0);
    } catch (error) {
      await entry.abandon(kept === null);
      throw error;
    }
    await entry.begin(kept?.hashes ?? []);
    return entry;
  }

  /** Notes that a file was used now. */
  async touch(key: string): Promise<void> {
    await this.place.touch(nameOf(key));
  }

  async remove(key: string): Promise<void> {
    await this.place.remove(nameOf(key));
  }

  async #read(name: string): Promise<StoredFile | null> {
    const found = await this.place.journal(name);
    const journal = found && parseJournal(found.text);
    return journal ? new StoredFile(this.place, name, journal, found.usedMs) : null;
  }
}

/** A stored file, or the beginning of one. */
export class StoredFile {
  readonly header: JournalHeader;
  /** The whole file's SHA-256; null while it is not complete. */
  readonly sha256: string | null;
  /** When it was last used, in milliseconds since 1970. */
  readonly usedMs: number;
  readonly #place: Place;
  readonly #name: string;
  #hashes: string[];
  #isComplete: boolean;

  constructor(place: Place, name: string, { header, hashes, end }: Journal, usedMs: number) {
    this.header = end ? { ...header, total: end.bytes } : header;
    this.sha256 = end?.sha256 ?? null;
    this.usedMs = usedMs;
    this.#place = place;
    this.#name = name;
    this.#hashes = hashes;
    this.#isComplete = end !== null;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** The chunks that are there. */
  get hashes(): readonly string[] {
    return this.#hashes;
  }

  /** Bytes from the file's beginning that are there. */
  get bytes(): number {
    return Math.min(this.#hashes.length * this.header.chunkBytes, this.header.total ?? Number.POSITIVE_INFINITY);
  }

  /** A chunk; null when it is missing or not what was stored. */
  async chunk(index: number): Promise<Uint8Array | null> {
    const hash = this.#hashes[index];
    if (hash === undefined) return null;
    const start = index * this.header.chunkBytes;
    const length = Math.min(this.header.chunkBytes, this.bytes - start);
    const bytes = await this.#place.read(this.#name, start, length).catch(() => null);
    return bytes?.length === length && (await sha256Of(bytes)) === hash ? bytes : null;
  }

  /** Forgets the chunks from this one on. */
  cut(index: number): void {
    this.#hashes = this.#hashes.slice(0, index);
    this.#isComplete = false;
  }
}

/** A file being stored. A failure (a full disk) ends the storing, never the load: what follows is then ignored. */
export class StoreEntry {
  /** Why the storing ended. */
  fault: unknown = null;
  readonly #place: Place;
  readonly #header: JournalHeader;
  #editor: PlaceEditor | null;
  #chunk: Uint8Array | null = null;
  #filled = 0;
  /** Where the chunk being filled begins. */
  #start = 0;

  constructor(place: Place, editor: PlaceEditor, header: JournalHeader) {
    this.#place = place;
    this.#editor = editor;
    this.#header = header;
  }

  /** Begins after the chunks that are there. */
  async begin(hashes: readonly string[]): Promise<void> {
    this.#start = hashes.length * this.#header.chunkBytes;
    await this.#orEnd((editor) => editor.restart(journalStart(this.#header, hashes)));
  }

  /** Adds bytes. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length && this.#editor;) {
      this.#chunk ??= new Uint8Array(this.#header.chunkBytes);
      const part = bytes.subarray(at, at + this.#chunk.length - this.#filled);
      this.#chunk.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled === this.#chunk.length) await this.#put(this.#chunk);
    }
  }

  /** Ends with a complete file; `sha256` is the whole file's. */
  async commit(sha256: string): Promise<void> {
    const bytes = this.#start + this.#filled;
    if (this.#chunk && this.#filled > 0) await this.#put(this.#chunk.subarray(0, this.#filled));
    await this.#orEnd((editor) => editor.note(journalEnd({ bytes, sha256 })));
    await this.#close();
  }

  /** Ends without completing: the chunks that came are kept for later, or removed when `discard`. */
  async abandon(discard: boolean): Promise<void> {
    await this.#close();
    if (discard) await this.#place.remove(nameOf(this.#header.key)).catch(() => {});
  }

  async #put(chunk: Uint8Array): Promise<void> {
    const line = journalLine(await sha256Of(chunk));
    await this.#orEnd((editor) => editor.put(this.#start, chunk, line));
    this.#start += chunk.length;
    this.#filled = 0;
  }

  async #orEnd(step: (editor: PlaceEditor) => Promise<void>): Promise<void> {
    if (!this.#editor) return;
    try {
      await step(this.#editor);
    } catch (error) {
      this.fault = error;
      await this.abandon(true);
    }
  }

  async #close(): Promise<void> {
    const editor = this.#editor;
    this.#editor = null;
    this.#chunk = null;
    await editor?.close().catch(() => {});
  }
}

/** The SHA-256 in hexadecimal. Where there is none (no secure context) there is no place but memory, which needs none. */
async function sha256Of(bytes: Uint8Array): Promise<string> {
  const { subtle } = globalThis.crypto;
  if ((subtle as SubtleCrypto | undefined) === undefined) return '0'.repeat(64);
  const digest = new Uint8Array(await subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
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
