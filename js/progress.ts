// Counts bytes over all files of a load and tells the caller, not too often, never backwards, never beyond the total.

import type { Progress } from './types.js';

const INTERVAL_MS = 100;

/** The progress of one transfer. */
export class TransferProgress {
  readonly #phase: Progress['phase'];
  readonly #total: number | null;
  readonly #report: (progress: Progress) => void;
  readonly #startedMs = performance.now();
  #loaded = 0;
  /** Bytes that needed no transfer, which must not count as speed. */
  #had = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #isDone = false;

  constructor(phase: Progress['phase'], total: number | null, report: (progress: Progress) => void) {
    this.#phase = phase;
    this.#total = total;
    this.#report = report;
  }

  /** Counts bytes that were there before. */
  had(bytes: number): void {
    this.#had += bytes;
  }

  /** Counts bytes that came. */
  add(bytes: number, file: string): void {
    this.#loaded += bytes;
    const now = performance.now();
    if (now - this.#lastMs < INTERVAL_MS) return;
    // The last step is `finish`'s, so that the end is told once.
    if (this.#total !== null && this.#loaded >= this.#total) return;
    this.#lastMs = now;
    this.#tell(this.#loaded, this.#total, file);
  }

  /** Tells the end. */
  finish(file: string): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#tell(this.#total ?? this.#loaded, this.#total ?? this.#loaded, file);
  }

  #tell(loaded: number, total: number | null, file: string): void {
    const seconds = (performance.now() - this.#startedMs) / 1000;
    const moved = Math.max(this.#loaded - this.#had, 0);
    const bytesPerSecond = seconds > 0 ? Math.round(moved / seconds) : undefined;
    const rate = bytesPerSecond === undefined ? {} : { bytesPerSecond };
    const eta = total !== null && bytesPerSecond ? { etaMs: Math.round(((total - loaded) / bytesPerSecond) * 1000) } : {};
    this.#report({ phase: this.#phase, loaded, total, file, ...rate, ...eta });
  }
}
