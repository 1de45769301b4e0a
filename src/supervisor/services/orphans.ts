import { asExitwatchError, type ExitwatchError } from '../../common/errors.js';
import type { KeeperRun } from '../keeper/keeper-run.js';
import { isOver } from '../keeper/stop-run.js';

import type { Clock } from './clock.js';
import type { RunHost } from './run-host.js';
import type { OrphanEvent } from './service-events.js';

/** What nobody desires gets so long to end. */
const GRACE_MS = 2000;
const RETRY_MS = 10_000;
const SEARCH_MS = 60_000;

/** What a search for orphans needs of its supervisor. */
export interface OrphanHost {
  readonly runs: RunHost;
  readonly clock: Clock;
  /** Whether it is some service's present run. */
  isOwned(id: string): boolean;
  onOrphan(event: OrphanEvent): void;
  onError(error: ExitwatchError): void;
}

/** Runs that belong to no service: stops them, and forgets them when nothing of them is left. */
export class Orphans {
  readonly #host: OrphanHost;
  /** Those that are being stopped. */
  readonly #stopping = new Set<string>();
  readonly #timers = new Set<() => void>();
  #found = 0;
  #isClosed = false;

  constructor(host: OrphanHost) {
    this.#host = host;
  }

  /** How many there have been, and how many of them are not gone yet. */
  get counts(): { orphaned: number; orphans: number } {
    return { orphaned: this.#found, orphans: this.#stopping.size };
  }

  /** Looks for them, now and from now on; returns those that are alive. */
  begin(): string[] {
    this.#searchLater();
    return this.search();
  }

  end(): void {
    this.#isClosed = true;
    for (const cancel of this.#timers) cancel();
  }

  search(): string[] {
    const found = this.#host.runs.runs().filter(({ id }) => !this.#host.isOwned(id));
    for (const run of found) this.take(run);
    return found.filter((run) => !isOver(run)).map(({ id }) => id);
  }

  /** What is to become of this one. */
  take(run: KeeperRun): void {
    const { id, pid, identity } = run;
    if (isOver(run)) {
      this.forget(id);
      return;
    }
    if (this.#stopping.has(id)) return; // told already
    this.#stopping.add(id);
    this.#found++;
    this.#host.onOrphan({ run: id, pid, identity });
    void this.#stop(id);
  }

  /** Nobody waits for its end. What cannot be forgotten yet is, by a later search. */
  forget(id: string): void {
    this.#host.runs.forget(id).catch((error: unknown) => {
      const { code } = error as ExitwatchError;
      const isExpected = ['ERR_EXITWATCH_NO_RUN', 'ERR_EXITWATCH_BUSY'].includes(code);
      if (!isExpected) this.#host.onError(asExitwatchError(error));
    });
  }

  /** Until nothing of it is left. */
  async #stop(id: string): Promise<void> {
    try {
      const { isGone } = await this.#host.runs.stop(id, { graceMs: GRACE_MS });
      if (isGone) {
        this.#stopping.delete(id);
        this.forget(id);
        return;
      }
    } catch (error) {
      if ((error as ExitwatchError).code === 'ERR_EXITWATCH_NO_RUN') {
        this.#stopping.delete(id);
        return;
      }
      this.#host.onError(asExitwatchError(error));
    }
    this.#after(RETRY_MS, () => void this.#stop(id));
  }

  #searchLater(): void {
    this.#after(SEARCH_MS, () => {
      this.#searchLater();
      this.search();
    });
  }

  #after(ms: number, call: () => void): void {
    if (this.#isClosed) return;
    const cancel = this.#host.clock.after(ms, () => {
      this.#timers.delete(cancel);
      call();
    });
    this.#timers.add(cancel);
  }
}
