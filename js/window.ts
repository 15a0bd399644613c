// Cuts what the WASM module wishes (a prefix, then ranges in order) from a file that is read once from its beginning.

import { EdgeError } from './errors.js';
import type { FileStream } from './files.js';
import { faultOfBeginning } from './sniff.js';

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
