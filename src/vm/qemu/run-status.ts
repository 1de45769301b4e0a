import { isObject } from '../../common/is-object.js';
import type { QmpClient } from './qmp-client.js';

/** How often one that was stopped is asked whether it is something else by now: ever more seldom. */
const PAUSED_MS = 50;
const PAUSED_LONG_MS = 10_000;

/** It may be about to be something else, without a word. */
const PASSING: readonly string[] = ['paused', 'finish-migrate', 'save-vm'];

/** What a QEMU says that it is doing, asked again as long as that may change without an event. */
export class RunStatus {
  /** What `query-status` said last, unless it went on since; `null`: not asked. */
  last: string | null = null;
  /** When that was. */
  lastAt: Date | null = null;
  #asking: NodeJS.Timeout | undefined;
  /** How often it went on. */
  #resumptions = 0;
  #isClosed = false;

  /** It went on: what it was before, it is no more. */
  hasGoneOn(): void {
    this.#resumptions++;
    this.last = null;
  }

  /** How many events came before its answer; nothing where there was none. */
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
      return undefined; // it ends already
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#asking);
  }
}
