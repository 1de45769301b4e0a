import { isObject } from '../../common/is-object.js';
import type { QmpClient } from './qmp-client.js';

/** How often to ask a paused machine again whether its status has changed: less and less often. */
const PAUSED_MS = 50;
const PAUSED_LONG_MS = 10_000;

/** A status that may change without an event. */
const PASSING: readonly string[] = ['paused', 'finish-migrate', 'save-vm'];

/** What QEMU says it is doing; asked again as long as that may change without an event. */
export class RunStatus {
  /** What `query-status` said last, unless it was resumed or reset since; `null`: no answer. */
  last: string | null = null;
  /** When that was. */
  lastAt: Date | null = null;
  #asking: NodeJS.Timeout | undefined;
  /** How often the machine was resumed or reset. */
  #resumptions = 0;
  #isClosed = false;

  /** The machine was resumed or reset: its last status is out of date. */
  hasGoneOn(): void {
    this.#resumptions++;
    this.last = null;
  }

  /** Resolves with how many events came before the answer; with `undefined` if there was none. */
  async ask(client: QmpClient | undefined, delayMs = PAUSED_MS): Promise<number | undefined> {
    const resumptions = this.#resumptions;
    clearTimeout(this.#asking);
    try {
      const answer = await client?.query('query-status');
      const { value, eventsBefore } = answer ?? {};
      if (!isObject(value) || typeof value['status'] !== 'string') return undefined;
      if (resumptions === this.#resumptions) {
        this.last = value['status'];
        this.lastAt = new Date();
        if (PASSING.includes(this.last) && !this.#isClosed) {
          const nextMs = Math.min(2 * delayMs, PAUSED_LONG_MS);
          this.#asking = setTimeout(() => void this.ask(client, nextMs), delayMs).unref();
        }
      }
      return eventsBefore;
    } catch {
      return undefined; // it is about to exit
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#asking);
  }
}
