import { ExitwatchError } from '../errors.js';
import type { SourceName } from '../exit-event.js';
import type { ProcessIdentity } from '../process-identity.js';

import { failureDowngrade } from './downgrade.js';
import type { Armed, ExitSource, SourceListener, SourceStats } from './exit-source.js';
import { KernelSource } from './kernel-source.js';
import { PollSource } from './poll-source.js';

type Options = ConstructorParameters<typeof KernelSource>[0] &
  ConstructorParameters<typeof PollSource>[0];

/** The kernel as long as it tells; polling where it does not, or not any more. */
export class AutoSource implements ExitSource {
  readonly #options: Options;
  readonly #listener: SourceListener;
  #isStarted = false;
  /** What a source that takes over has to watch. */
  readonly #watched = new Map<string, ProcessIdentity>();
  #current: ExitSource;
  /** For what the kernel cannot watch any more, while it tells the ends of the others. */
  #beside: PollSource | undefined;
  #told: SourceName | null = null;
  #referenced = true;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(options: Options, listener: SourceListener) {
    this.#options = options;
    this.#listener = listener;
    this.#current = new KernelSource(options, {
      ...listener,
      ready: (ready) => {
        this.#told = ready.source;
        listener.ready(ready);
      },
      exit: (event, isTold) => {
        this.#watched.delete(event.id);
        listener.exit(event, isTold);
      },
      source: (change) => {
        this.#told = change.source;
        listener.source(change);
      },
      failed: (error) => {
        this.#poll(error);
      },
    });
  }

  start(): void {
    this.#isStarted = true;
    this.#current.start();
  }

  watch(identity: ProcessIdentity): Armed {
    const armed = this.#watch(identity);
    if (armed !== 'gone') this.#watched.set(identity.id, identity);
    return armed;
  }

  /**
   * Where there are no pidfds at the start, the kernel tells nothing that could be relied upon. Where
   * they are forbidden later, and there is no connector, those that are held still tell their ends.
   */
  #watch(identity: ProcessIdentity): Armed {
    try {
      return this.#current.watch(identity);
    } catch (error) {
      if (!(error instanceof ExitwatchError) || error.code !== 'ERR_EXITWATCH_NO_PIDFD')
        throw error;
      if (this.#told !== null) return this.#openBeside().watch(identity);
      this.#poll(error);
      return this.#current.watch(identity);
    }
  }

  #openBeside(): PollSource {
    if (this.#beside !== undefined) return this.#beside;
    const listener: SourceListener = {
      ...this.#listener,
      ready: () => undefined,
      exit: (event, isTold) => {
        this.#watched.delete(event.id);
        this.#listener.exit(event, isTold);
      },
    };
    this.#beside = new PollSource({ ...this.#options, scope: 'watched' }, listener, null);
    if (!this.#referenced) this.#beside.unref();
    this.#beside.start();
    return this.#beside;
  }

  unwatch(identity: ProcessIdentity): void {
    this.#watched.delete(identity.id);
    this.#current.unwatch(identity);
    this.#beside?.unwatch(identity);
  }

  awaitTrace(timeoutMs: number): void {
    this.#current.awaitTrace(timeoutMs);
  }

  listen(listens: boolean): void {
    this.#current.listen(listens);
  }

  stats(): SourceStats {
    const stats = this.#current.stats();
    const beside = this.#beside?.stats();
    if (beside === undefined) return stats;
    return {
      ...stats,
      received: stats.received + beside.received,
      delivered: stats.delivered + beside.delivered,
      unguarded: stats.unguarded + beside.unguarded,
      wakeups: stats.wakeups + beside.wakeups,
      lastEventAt: latest(stats.lastEventAt, beside.lastEventAt),
    };
  }

  ref(): void {
    this.#referenced = true;
    this.#current.ref();
    this.#beside?.ref();
  }

  unref(): void {
    this.#referenced = false;
    this.#current.unref();
    this.#beside?.unref();
  }

  close(): void {
    this.#current.close();
    this.#beside?.close();
  }

  #poll(error: ExitwatchError): void {
    const { canaryAgeMs } = this.#current.stats();
    this.close();
    this.#beside = undefined;
    const downgrade = failureDowngrade(error);
    const previous = this.#told;
    const poll = new PollSource(
      this.#options,
      {
        ...this.#listener,
        ready: (ready) => {
          if (previous === null) {
            this.#listener.ready(ready);
            return;
          }
          // Who ended since the kernel last told something, and was not watched, is lost.
          const at = new Date();
          const from = new Date(at.getTime() - (canaryAgeMs ?? 0));
          const gap = { event: 'gap', from, to: at, lost: null, recovered: 0 } as const;
          this.#listener.gap({ ...gap, reason: 'silenced' });
          this.#listener.source({
            event: 'source',
            at,
            source: 'poll',
            previous,
            filter: null,
            downgrade,
            namesPrograms: false,
          });
        },
        exit: (event, isTold) => {
          this.#watched.delete(event.id);
          this.#listener.exit(event, isTold);
        },
        // What keeps the best one from working is what the user can mend.
        failed: () => {
          this.#listener.failed(error);
        },
      },
      downgrade,
    );
    this.#current = poll;
    for (const identity of this.#watched.values()) poll.watch(identity);
    if (!this.#referenced) poll.unref();
    if (this.#isStarted) poll.start();
  }
}

function latest(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b;
  return a > b ? a : b;
}
