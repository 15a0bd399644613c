// What a place for stored files can do: the origin's private files, the Cache API, a folder, memory. A file there is bytes
// and a journal (journal.ts), whose content a place does not look at.

/** The kinds of places. */
export type PlaceKind = 'opfs' | 'cache-api' | 'memory' | 'disk';

/** How much fits into a place. */
export interface Room {
  freeBytes: number;
  /** What the place allows in all, and what is used of it; null where only the rest is known. */
  quotaBytes: number | null;
  usedBytes: number | null;
}

/** A place. Files are named by `nameOf`. */
export interface Place {
  readonly kind: PlaceKind;
  /** Every file that has a journal. */
  names(): Promise<string[]>;
  /** A file's journal and when the file was last used; null when there is none. */
  journal(name: string): Promise<{ text: string; usedMs: number } | null>;
  /** A chunk as it was put; null when it is not there. */
  read(name: string, start: number, length: number): Promise<Uint8Array | null>;
  /** Opens a file for writing; null while another tab has it open. */
  edit(name: string): Promise<PlaceEditor | null>;
  /** Notes that a file was used now. */
  touch(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** How much fits; null where that is not told. */
  room(): Promise<Room | null>;
}

/** A file open for writing. The bytes it is given are the caller's to change afterwards. */
export interface PlaceEditor {
  /** Sets so many bytes aside, where the place can do that; fails when it has not as many. */
  reserve(bytes: number): Promise<void>;
  /** Makes this the journal. */
  restart(journal: string): Promise<void>;
  /** Writes a chunk, then adds its line to the journal. */
  put(start: number, bytes: Uint8Array, line: string): Promise<void>;
  /** Adds a line to the journal. */
  note(line: string): Promise<void>;
  close(): Promise<void>;
}

/** A file name for a key: readable, short, and different for different keys. */
export function nameOf(key: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(key)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  const tail = key.split('#')[0]?.split('?')[0]?.split('/').at(-1) ?? '';
  return `${hash.toString(16).padStart(16, '0')}-${tail.replace(/[^\w.-]/g, '_').slice(-80)}`;
}
