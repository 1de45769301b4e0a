import type { SignalEvent } from '../../events/signal-event.js';

/** How many targets to remember while their exits have not arrived. */
const MOST_TARGETS = 10_000;

/** How many signals to remember of each: half of them its first ones, half its last ones. */
const MOST_SIGNALS = 100;

/**
 * Signals to processes that were gone before they could be read: their exits show what they were.
 */
export class DoubtfulSignals {
  readonly #byTarget = new Map<string, SignalEvent[]>();
  /** How many were too many to remember. */
  skipped = 0;

  add(event: SignalEvent): void {
    const signals = this.#byTarget.get(event.id);
    if (signals !== undefined) {
      signals.push(event);
      if (signals.length > MOST_SIGNALS) this.skipped += signals.splice(MOST_SIGNALS / 2, 1).length;
      return;
    }
    this.#byTarget.set(event.id, [event]);
    const [oldest] = this.#byTarget.keys();
    if (this.#byTarget.size > MOST_TARGETS && oldest !== undefined) {
      this.skipped += this.take(oldest).length;
    }
  }

  /** Returns and removes the signals to the process with this id, which has exited. */
  take(id: string): SignalEvent[] {
    const signals = this.#byTarget.get(id) ?? [];
    this.#byTarget.delete(id);
    return signals;
  }
}
