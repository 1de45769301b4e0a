import { Semaphore } from '../../common/semaphore.js';

import type { VmEnd } from './vm-record.js';

/** Hooks that may run at the same time. */
const MOST_HOOKS = 4;

/** What {@link EndDelivery} reports to. */
export interface DeliveryListener {
  /** Whether a later start of the machine is known by now. */
  isSuperseded(end: VmEnd): boolean;
  /** The hook has finished or failed, or there is none, and nobody has closed the delivery meanwhile. */
  delivered(end: VmEnd): Promise<void>;
  warning(error: Error, name: string): void;
}

/** Delivers ends to a hook: in order for one machine, a few at once for several. */
export class EndDelivery {
  readonly #hook: ((end: VmEnd) => Promise<void>) | undefined;
  readonly #listener: DeliveryListener;
  readonly #running = new Semaphore(MOST_HOOKS);
  /** The last delivery of each machine that has one under way. */
  readonly #last = new Map<string, Promise<void>>();
  #isClosed = false;

  constructor(hook: ((end: VmEnd) => Promise<void>) | undefined, listener: DeliveryListener) {
    this.#hook = hook;
    this.#listener = listener;
  }

  add(end: VmEnd): void {
    const { name } = end.stop;
    const before = this.#last.get(name) ?? Promise.resolve();
    const delivery = before
      .then(() => this.#deliver(end))
      .finally(() => {
        if (this.#last.get(name) === delivery) this.#last.delete(name);
      });
    this.#last.set(name, delivery);
  }

  /** Calls no further hook. Resolves when all is noted that needs none. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#hook === undefined) await Promise.all(this.#last.values());
  }

  async #deliver(end: VmEnd): Promise<void> {
    try {
      await this.#running.run(async () => {
        // It may have waited for other hooks.
        const isSuperseded = this.#listener.isSuperseded(end) || end.isSuperseded;
        if (!this.#isClosed) await this.#hook?.({ ...end, isSuperseded });
      });
    } catch (error) {
      this.#listener.warning(error as Error, end.stop.name);
    }
    // A hook that was not called, or that nobody has waited for, is called again.
    if (!this.#isClosed || this.#hook === undefined) await this.#listener.delivered(end);
  }
}
