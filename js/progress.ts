// Counts bytes over all files of a load and tells the caller, not too often and never beyond the total; and makes sure
// that a phase, begun again, never goes backwards.

import type { Progress } from './types.js';

const INTERVAL_MS = 100;
/** The speed is that of so many last milliseconds. */
const WINDOW_MS = 5000;

/** Passes progress on, but never less of a phase than before, nor more than its total. */
export function rising(report: (progress: Progress) => void): (progress: Progress) => void {
  const told = new Map<Progress['phase'], number>();
  return (progress) => {
    const loaded = Math.min(Math.max(progress.loaded, told.get(progress.phase) ?? 0), progress.total ?? Number.POSITIVE_INFINITY);
    told.set(progress.phase, loaded);
    report({ ...progress, loaded });
  };
}

/** The progress of one transfer. */
export class TransferProgress {
  readonly #phase: Progress['phase'];
  readonly #total: number | null;
  readonly #report: (progress: Progress) => void;
  #loaded = 0;
  /** Bytes that needed no transfer, which must not count as speed. */
  #had = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #samples: { ms: number; moved: number }[] = [{ ms: performance.now(), moved: 0 }];
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
    const end = this.#total ?? this.#loaded;
    this.#tell(end, end, file);
  }

  #tell(loaded: number, total: number | null, file: string): void {
    const bytesPerSecond = this.#speed();
    const rate = bytesPerSecond === null ? {} : { bytesPerSecond };
    const eta = total !== null && bytesPerSecond ? { etaMs: Math.round(((total - loaded) / bytesPerSecond) * 1000) } : {};
    this.#report({ phase: this.#phase, loaded, total, file, ...rate, ...eta });
  }

  #speed(): number | null {
    const now = { ms: performance.now(), moved: Math.max(this.#loaded - this.#had, 0) };
    while (this.#samples.length > 1 && now.ms - (this.#samples[0]?.ms ?? 0) > WINDOW_MS) this.#samples.shift();
    const [first] = this.#samples;
    this.#samples.push(now);
    const seconds = (now.ms - (first?.ms ?? now.ms)) / 1000;
    return seconds > 0 ? Math.round((now.moved - (first?.moved ?? 0)) / seconds) : null;
  }
}
