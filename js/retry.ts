// How often and how soon a failed transfer is tried again. It knows nothing of what is transferred.

import { EdgeError } from './errors.js';
import { TransferError } from './http.js';
import { pause } from './pause.js';

/** How failures are borne. */
export interface RetryOptions {
  /** Failures in a row that are borne. */
  retries: number;
  /** The wait after the first failure; it doubles at each. */
  retryDelayMs: number;
  signal: AbortSignal;
}

const LONGEST_DELAY_MS = 30_000;
/** A server that wants a longer rest than this is not waited for. */
const LONGEST_REST_MS = 120_000;

/** Counts the failures in a row of one transfer. */
export class Patience {
  readonly #options: RetryOptions;
  #failures = 0;

  constructor(options: RetryOptions) {
    this.#options = options;
  }

  /** The transfer got on: earlier failures count no more. */
  reset(): void {
    this.#failures = 0;
  }

  /** Waits until the next attempt; throws the error where there shall be none. */
  async after(error: unknown): Promise<void> {
    const { retries, retryDelayMs, signal } = this.#options;
    if (signal.aborted) throw signal.reason;
    this.#failures += 1;
    if (!isWorthRetrying(error) || this.#failures > retries) throw error;
    // Between half of the delay and all of it, so that many clients do not come back at once.
    const delay = Math.min(retryDelayMs * 2 ** (this.#failures - 1), LONGEST_DELAY_MS) * (0.5 + Math.random() / 2);
    await pause(Math.max(delay, (error instanceof TransferError && error.retryAfterMs) || 0), signal);
  }
}

function isWorthRetrying(error: unknown): boolean {
  if (!(error instanceof TransferError)) return error instanceof EdgeError && error.code === 'network';
  return !error.isFinal && (error.retryAfterMs ?? 0) <= LONGEST_REST_MS;
}
