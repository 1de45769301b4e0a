import { ExitwatchError } from '../common/errors.js';
import type { SourceName } from '../events/exit-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { failureDowngrade } from './downgrade.js';
import type { Armed, ExitSource, SourceListener, SourceStats, WatchedPid } from './exit-source.js';
import type { SourceKind, SourceOptions } from './source-kind.js';

/** The best source while it works; its successor if it does not, or fails later. */
export class AutoSource implements ExitSource {
  readonly #options: SourceOptions;
  readonly #listener: SourceListener;
  #isStarted = false;
  /** What a successor has to watch. */
  readonly #watched = new Map<string, ProcessIdentity>();
  #current: ExitSource;
  readonly #successor: SourceKind;
  /** Watches what the best source cannot watch any more, while that goes on with the rest. */
  #beside: ExitSource | undefined;
  /** The source that `ready` or `source` events last named; `null` before. */
  #announced: SourceName | null = null;
  #referenced = true;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(
    options: SourceOptions,
    listener: SourceListener,
    best: SourceKind,
    successor: SourceKind,
  ) {
    this.#options = options;
    this.#successor = successor;
    this.#listener = listener;
    const own: SourceListener = {
      ...listener,
      ready: (ready) => {
        this.#announced = ready.source;
        listener.ready(ready);
      },
      exit: (event, isForWatchesOnly) => {
        this.#watched.delete(event.id);
        listener.exit(event, isForWatchesOnly);
      },
      source: (change) => {
        this.#announced = change.source;
        listener.source(change);
      },
      failed: (error) => {
        this.#takeOver(error);
      },
    };
    this.#current = best.open(options, own, null);
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

  watchPid(pid: number): WatchedPid | null {
    const watched = this.#current.watchPid?.(pid) ?? null;
    if (watched !== null) this.#watched.set(watched.identity.id, watched.identity);
    return watched;
  }

  /**
   * Without pidfds at the start, nothing that the kernel reports is reliable: the successor takes
   * over. If pidfds are forbidden later and there is no connector, open pidfds still report exits:
   * a second source watches the new processes.
   */
  #watch(identity: ProcessIdentity): Armed {
    try {
      return this.#current.watch(identity);
    } catch (error) {
      if (!(error instanceof ExitwatchError) || error.code !== 'ERR_EXITWATCH_NO_PIDFD')
        throw error;
      if (this.#announced !== null) return this.#openBeside().watch(identity);
      this.#takeOver(error);
      return this.#current.watch(identity);
    }
  }

  #openBeside(): ExitSource {
    if (this.#beside !== undefined) return this.#beside;
    const listener: SourceListener = {
      ...this.#listener,
      ready: () => undefined,
      exit: (event, isForWatchesOnly) => {
        this.#watched.delete(event.id);
        this.#listener.exit(event, isForWatchesOnly);
      },
    };
    this.#beside = this.#successor.open({ ...this.#options, scope: 'watched' }, listener, null);
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
      withoutPidfd: stats.withoutPidfd + beside.withoutPidfd,
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

  #takeOver(error: ExitwatchError): void {
    const { canaryAgeMs } = this.#current.stats();
    const from = new Date(Date.now() - (canaryAgeMs ?? 0));
    this.close();
    this.#beside = undefined;
    const downgrade = failureDowngrade(error);
    const previous = this.#announced;
    const next = this.#successor.open(
      this.#options,
      {
        ...this.#listener,
        ready: (ready) => {
          if (previous === null) {
            this.#listener.ready(ready);
            return;
          }
          // A process that was not watched, and exited since the kernel last sent something, is
          // lost.
          const at = new Date();
          const gap = { event: 'gap', from, to: at, lost: null, recovered: 0 } as const;
          this.#listener.gap({ ...gap, reason: 'silenced' });
          this.#listener.source({
            event: 'source',
            at,
            source: this.#successor.name,
            previous,
            filter: null,
            downgrade,
            namesPrograms: false,
          });
        },
        exit: (event, isForWatchesOnly) => {
          this.#watched.delete(event.id);
          this.#listener.exit(event, isForWatchesOnly);
        },
        // Report the best source's error: that is the one you can fix.
        failed: () => {
          this.#listener.failed(error);
        },
      },
      downgrade,
    );
    this.#current = next;
    for (const identity of this.#watched.values()) next.watch(identity);
    if (!this.#referenced) next.unref();
    if (this.#isStarted) next.start();
  }
}

function latest(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b;
  return a > b ? a : b;
}
