import type { Clock } from './clock.js';
import type { RunHost } from './run-host.js';

/**
 * Whether a supervisor knows what goes on.
 *
 * @see [Services](../../../docs/services.md)
 */
export type SupervisorHealth = {
  isHealthy: boolean;
  /** How long ago its keeper last answered, in ms; `null`: it never has. */
  lastSeenMs: number | null;
  /** Why it is not healthy. */
  because: string | null;
};

/** How often a keeper is asked whether it is there. */
export const ASK_MS = 60_000;
/** Silence for so long is a fault. */
const LONGEST_SILENCE_MS = 150_000;

/** Asks a keeper now and then, and knows when it answered last. */
export class Contact {
  readonly #runs: () => RunHost;
  readonly #clock: Clock;
  #seenAtMs: number | null = null;
  #isAsking = false;
  #cancel: (() => void) | undefined;

  constructor(runs: () => RunHost, clock: Clock) {
    this.#runs = runs;
    this.#clock = clock;
  }

  /** It has just answered. */
  begin(): void {
    this.#seenAtMs = this.#clock.now();
    this.#later();
  }

  end(): void {
    this.#cancel?.();
  }

  health(): SupervisorHealth {
    if (this.#seenAtMs === null) {
      return { isHealthy: false, lastSeenMs: null, because: 'it was not started' };
    }
    const lastSeenMs = Math.max(0, this.#clock.now() - this.#seenAtMs);
    const isHealthy = lastSeenMs <= LONGEST_SILENCE_MS;
    const seconds = Math.round(lastSeenMs / 1000);
    const because = isHealthy ? null : `the keeper has not answered for ${seconds} s`;
    return { isHealthy, lastSeenMs, because };
  }

  #later(): void {
    this.#cancel?.();
    this.#cancel = this.#clock.after(ASK_MS, () => {
      this.#later();
      void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      await this.#runs().ping();
      this.#seenAtMs = this.#clock.now();
    } catch {
      // Its silence is what health() tells.
    } finally {
      this.#isAsking = false;
    }
  }
}
