import type { Clock } from './clock.js';

const QUIET_MS = 500;
const MOST_MS = 5000;

/**
 * Calls that come together are done as one: after 500 ms without another one, or 5 s after the first.
 * The very first call is not delayed.
 */
export class Gathering {
  readonly #clock: Clock;
  readonly #act: () => void;
  #isFirst = true;
  #firstAtMs: number | null = null;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, act: () => void) {
    this.#clock = clock;
    this.#act = act;
  }

  request(): void {
    const now = this.#clock.now();
    this.#firstAtMs ??= now;
    this.#cancel?.();
    if (this.#isFirst) {
      this.#fire();
      return;
    }
    const leftMs = this.#firstAtMs + MOST_MS - now;
    this.#cancel = this.#clock.after(Math.max(0, Math.min(QUIET_MS, leftMs)), () => {
      this.#fire();
    });
  }

  /** Does now what waits. */
  flush(): void {
    if (this.#firstAtMs === null) return;
    this.#cancel?.();
    this.#fire();
  }

  cancel(): void {
    this.#cancel?.();
  }

  #fire(): void {
    this.#isFirst = false;
    this.#firstAtMs = null;
    this.#cancel = undefined;
    this.#act();
  }
}
