import type { SignalEvent } from '../../events/signal-event.js';

/** How many targets to remember while their exits have not arrived. */
const MOST_TARGETS = 10_000;

/**
 * Signals to processes that were gone before they could be read: their exits show what they were.
 */
export class DoubtfulSignals {
  readonly #byTarget = new Map<string, SignalEvent[]>();

  add(event: SignalEvent): void {
    const signals = this.#byTarget.get(event.id);
    if (signals !== undefined) {
      signals.push(event);
      return;
    }
    this.#byTarget.set(event.id, [event]);
    const [oldest] = this.#byTarget.keys();
    if (this.#byTarget.size > MOST_TARGETS && oldest !== undefined) this.#byTarget.delete(oldest);
  }

  /** Returns and removes the signals to the process with this id, which has exited. */
  take(id: string): SignalEvent[] {
    const signals = this.#byTarget.get(id) ?? [];
    this.#byTarget.delete(id);
    return signals;
  }
}
