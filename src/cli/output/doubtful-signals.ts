import type { SignalEvent } from '../../events/signal-event.js';

/** Targets whose end never came. */
const MOST_TARGETS = 10_000;

/** Signals to who was gone before it could be looked at: its end tells who it was. */
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

  /** Those to the process of this id, which has ended. */
  take(id: string): SignalEvent[] {
    const signals = this.#byTarget.get(id) ?? [];
    this.#byTarget.delete(id);
    return signals;
  }
}
