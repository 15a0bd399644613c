// What dispatches 'contextoverflow' and has the attribute for one listener of it, as the Prompt API says. It knows no session.

type Listener = (event: Event) => unknown;

/** A target of the event. */
export class OverflowTarget extends EventTarget {
  #listener: Listener | null = null;

  get oncontextoverflow(): Listener | null {
    return this.#listener;
  }

  set oncontextoverflow(listener: Listener | null) {
    if (this.#listener) this.removeEventListener('contextoverflow', this.#listener);
    this.#listener = typeof listener === 'function' ? listener : null;
    if (this.#listener) this.addEventListener('contextoverflow', this.#listener);
  }

  /** Tells that turns were forgotten. */
  protected tellOverflow(): void {
    this.dispatchEvent(new Event('contextoverflow'));
  }
}
