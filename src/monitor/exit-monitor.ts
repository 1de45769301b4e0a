// One idea: the life of a monitor, and the doors of its rooms.
import { EventEmitter } from 'node:events';

import { ExitwatchError } from '../common/errors.js';
import type { ExitEvent, Gap, MonitorEvent, SourceChange } from '../events/exit-event.js';
import type { SignalEvent } from '../events/signal-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';
import { noTraceError } from '../sources/downgrade.js';
import type { ExitSource, SourceListener } from '../sources/exit-source.js';
import { openSource } from '../sources/open-source.js';

import { Delivery } from './delivery.js';
import type { ExitWatch } from './exit-watch.js';
import { type MonitorStats, NO_STATS, isHeard } from './monitor-stats.js';
import { describeReady, type MemoryHost, MonitorMemory } from './monitor-memory.js';
import {
  type CheckedOptions,
  type CloseOptions,
  type ExitMonitorOptions,
  type WatchOptions,
  checkCloseOptions,
  checkEvent,
  checkOptions,
  checkWatchOptions,
} from './options.js';
import type { Ready } from './ready.js';
import { SignalDemand } from './signal-demand.js';
import { WatchRegistry } from './watch-registry.js';
import { armWatch } from './watch-target.js';

/** The events of an {@link ExitMonitor}. After `error` the monitor closes and emits `close`. */
export interface ExitMonitorEvents {
  ready: [Ready];
  exit: [ExitEvent];
  signal: [SignalEvent];
  gap: [Gap];
  source: [SourceChange];
  error: [Error];
  close: [];
}

/**
 * Longest start of the signal trace, in ms: it usually takes about 20, far more on a busy machine.
 */
const LONGEST_ARMING_MS = 2000;

/**
 * Reports that processes exit, and how.
 *
 * A started monitor keeps the event loop alive (see {@link ExitMonitor.unref}) and runs until
 * {@link ExitMonitor.close}, even if nothing references it. If a listener throws, the error
 * surfaces as an uncaught exception after the whole batch was delivered.
 *
 * @see [Watch everything that ends on a host](../../docs/watch-everything.md)
 */
export class ExitMonitor
  extends EventEmitter<ExitMonitorEvents>
  implements AsyncIterable<MonitorEvent>, AsyncDisposable
{
  readonly #options: CheckedOptions;
  #state: 'new' | 'starting' | 'started' | 'closed' = 'new';
  #referenced = true;
  #source: ExitSource | undefined;
  #starting: { resolve: (ready: Ready) => void; reject: (error: Error) => void } | undefined;
  readonly #watches = new WatchRegistry((watch, isLast) => {
    if (isLast) this.#source?.unwatch(watch.identity);
    if (this.#state !== 'closed') this.#memory?.forget(watch);
  });
  #memory: MonitorMemory | undefined;
  /** Exits that were known before they could be delivered. */
  readonly #known: ExitEvent[] = [];
  readonly #delivery = new Delivery(this, (event) => {
    if (event.event === 'exit') this.#memory?.onDelivered(event.id);
  });
  readonly #signalDemand = new SignalDemand(this, (isWanted) => {
    this.#source?.listen(isWanted);
  });
  #lastStats = NO_STATS;
  #closeCause: Error | undefined;
  readonly #abort = () => {
    this.#shutDown(
      new ExitwatchError('ERR_EXITWATCH_ABORTED', 'the monitor was aborted', {
        cause: this.#options.signal?.reason,
      }),
    );
  };

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(options: ExitMonitorOptions = {}) {
    super();
    this.#options = checkOptions(options);
    this.#signalDemand.follow();
    if (this.#options.signal?.aborted === true) this.#abort();
    else this.#options.signal?.addEventListener('abort', this.#abort, { once: true });
  }

  /**
   * Resolves once the kernel has proved that events arrive. If it rejects, the monitor is closed,
   * and neither `error` nor `close` is emitted.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_ALREADY_STARTED`,
   * `ERR_EXITWATCH_CLOSED`, `ERR_EXITWATCH_ABORTED`, `ERR_EXITWATCH_NO_ADDON`; why the kernel
   * reports nothing: `ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE`, `…_FOREIGN_PID_NAMESPACE`,
   * `…_FOREIGN_USER_NAMESPACE`, `…_NOT_PERMITTED`, `…_NO_CONNECTOR`, `…_NO_PIDFD`, `…_NO_PROC`,
   * `…_SILENT`, `…_SYSTEM`; `ERR_EXITWATCH_NO_TRACE` with `trace: 'on'`; and
   * `ERR_EXITWATCH_IN_USE` and `ERR_EXITWATCH_STATE_DIR` with `stateDir`.
   */
  start(): Promise<Ready> {
    return new Promise((resolve, reject) => {
      if (this.#state === 'closed') throw this.#closedError();
      if (this.#state !== 'new') {
        throw new ExitwatchError(
          'ERR_EXITWATCH_ALREADY_STARTED',
          'the monitor was already started',
        );
      }
      this.#state = 'starting';
      this.#starting = { resolve, reject };
      try {
        const memory = this.#openMemory();
        const source = this.#openSource();
        memory?.restore(this.#watches, () => source);
        source.start();
        if (!this.#referenced) source.unref();
      } catch (error) {
        this.#shutDown(error as Error);
      }
    });
  }

  /**
   * Watches a process, as often as you like, even before `start()`. Once it returns, the exit
   * cannot be missed. After `start()` was called, signals and their senders are seen as well: if
   * the monitor is still starting, this blocks the event loop until the signal trace runs, for
   * about 20 ms in total and at most 2 s. {@link ExitEvent | tracedSince} says when it began.
   *
   * @param target a pid, or the identity of a process; if that process is gone, the watch resolves
   *   with `how: 'unknown'`, `unknownReason: 'gone-before-watch'`.
   * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_INVALID_IDENTITY`,
   *   `ERR_EXITWATCH_NO_SUCH_PROCESS`, `ERR_EXITWATCH_THREAD` and `ERR_EXITWATCH_KERNEL_THREAD` for
   *   a pid, `ERR_EXITWATCH_FOREIGN_PID_NAMESPACE` for an identity from another one,
   *   `ERR_EXITWATCH_DESCRIPTOR_LIMIT` without the connector, `ERR_EXITWATCH_NO_PIDFD` with source
   *   `'pidfd'`, `ERR_EXITWATCH_CLOSED`, `ERR_EXITWATCH_NO_ADDON`, `ERR_EXITWATCH_SYSTEM` (out of
   *   descriptors); with `stateDir` also `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR` and
   *   `ERR_EXITWATCH_RECORDER_FULL`
   */
  watch(target: number | ProcessIdentity, options: WatchOptions = {}): ExitWatch {
    if (this.#state === 'closed') throw this.#closedError();
    const { key, durable } = checkWatchOptions(options);
    const memory = this.#openMemory();
    const store = durable ? (memory?.store(key) ?? null) : null;
    const sources = { current: this.#source, open: () => this.#openSource() };
    const { watch, gone } = armWatch(target, this.#watches, sources, { key, store });
    this.awaitTrace();
    if (gone !== null) this.#deliverSoon(this.#memory?.known(watch.identity) ?? gone);
    return watch;
  }

  /** One of {@link Ready | restored}, by its key; each is handed out once. @internal */
  takeRestored({ identity, key }: Pick<ExitWatch, 'identity' | 'key'>): ExitWatch | null {
    return this.#memory?.takeRestored(identity, key) ?? null;
  }

  /** What {@link takeRestored} gives to whoever asks next. @internal */
  handBack(watch: ExitWatch): void {
    this.#memory?.handBack(watch);
  }

  /** If the monitor is starting, blocks until the signal trace runs. @internal */
  awaitTrace(): void {
    if (this.#state === 'starting') this.#source?.awaitTrace(LONGEST_ARMING_MS);
  }

  /**
   * With `stateDir` and `autoCommit: false`: you have stored this exit, so that no later monitor
   * needs to deliver it again. Without `stateDir`, or when the monitor is closed, this does nothing.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` if it is no event
   */
  commit(event: Pick<ExitEvent, 'id'>): void {
    this.#memory?.commit(checkEvent(event));
  }

  stats(): MonitorStats {
    if (this.#source !== undefined) this.#lastStats = this.#source.stats();
    return {
      ...this.#lastStats,
      watches: this.#watches.size,
      healthy: this.#state === 'started' && isHeard(this.#lastStats, this.#options),
    };
  }

  /** Makes the started monitor keep the event loop alive, which is the default. */
  ref(): this {
    this.#referenced = true;
    this.#source?.ref();
    return this;
  }

  /** Lets this process exit while the monitor is running. */
  unref(): this {
    this.#referenced = false;
    this.#source?.unref();
    return this;
  }

  /**
   * Stops the monitor and ends all loops over it. Unresolved watches reject with
   * `ERR_EXITWATCH_CLOSED`; watched processes are not touched. You can call it any number of times.
   *
   * With `stateDir`, watches stay stored, and the recorder goes on. `forget: true` removes both, also
   * of a monitor that was not started.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_INVALID_OPTION`; with `forget: true`
   * `ERR_EXITWATCH_CLOSED` if the monitor was closed before, and `ERR_EXITWATCH_STATE_DIR` if
   * something could not be removed.
   */
  close(options: CloseOptions = {}): Promise<void> {
    return new Promise((resolve) => {
      const { forget } = checkCloseOptions(options);
      if (forget && this.#state === 'closed') throw this.#closedError();
      if (forget) this.#openMemory();
      this.#shutDown(undefined, forget);
      resolve();
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Yields exits, gaps and source changes from now on, until the monitor closes; starts it if
   * needed. Leaving the loop does not stop the monitor. A slow loop has at most `queueLimit` exits
   * waiting, plus those of watched processes; beyond that it yields a gap, which `stats()` does not
   * count.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<MonitorEvent> {
    const backlog = this.#delivery.openBacklog(this.#options.queueLimit);
    if (this.#state === 'closed') this.#delivery.endLoops(undefined);
    if (this.#state === 'new') {
      this.start().catch((error: unknown) => {
        backlog.end(error as Error);
      });
    }
    return backlog;
  }

  #openSource(): ExitSource {
    if (this.#source === undefined) {
      this.#source = openSource(this.#options, this.#listener);
      if (this.#signalDemand.isWanted) this.#source.listen(true);
    }
    return this.#source;
  }

  #openMemory(): MonitorMemory | undefined {
    const { memory, autoCommit } = this.#options;
    if (memory === null) return undefined;
    this.#memory ??= new MonitorMemory(memory, this.#memoryHost, autoCommit);
    return this.#memory;
  }

  override removeAllListeners(name?: keyof ExitMonitorEvents): this {
    super.removeAllListeners(name);
    if (name === undefined) this.#signalDemand.follow();
    return this;
  }

  readonly #listener: SourceListener = {
    ready: (ready) => {
      if (this.#options.trace === 'on' && !ready.traced) {
        this.#shutDown(noTraceError(ready.traceDowngrade));
        return;
      }
      this.#state = 'started';
      const described = describeReady(ready, this.#memory);
      this.#delivery.emit('ready', described);
      this.#starting?.resolve(described);
      this.#starting = undefined;
      const memory = this.#memory;
      // Before the next event, but when those who await start() have added their listeners.
      if (memory !== undefined)
        queueMicrotask(() => {
          process.nextTick(() => {
            this.#replay(memory);
          });
        });
      for (const event of this.#known.splice(0)) this.#onKnown(event);
    },
    exit: (event, isForWatchesOnly) => {
      this.#onExit(event, isForWatchesOnly);
    },
    signal: (event) => {
      if (this.#options.scope === 'watched' && !this.#watches.has(event.id)) return;
      if (this.#state !== 'closed') this.#delivery.emit('signal', event);
    },
    gap: (gap) => {
      this.#delivery.send(gap);
    },
    source: (change) => {
      this.#delivery.send(change);
    },
    failed: (error) => {
      this.#shutDown(error);
    },
    batchEnd: () => {
      this.#memory?.batchEnd();
      this.#delivery.surfaceThrown();
    },
  };

  readonly #memoryHost: MemoryHost = {
    deliver: (event, isFromRing) => {
      this.#onExit(event, false, isFromRing);
    },
    gap: (gap) => {
      this.#delivery.send(gap);
    },
    batchEnd: () => {
      this.#memory?.batchEnd();
      this.#delivery.surfaceThrown();
    },
    isWatched: (id) => this.#watches.has(id),
  };

  #onExit(reported: ExitEvent, isForWatchesOnly = false, isFromRing = false): void {
    if (this.#state === 'closed') return; // a listener closed it in the middle of a batch
    const watches = this.#watches.take(reported.id);
    const isWatched = watches !== undefined;
    const memory = this.#memory;
    const event = memory?.take(reported, watches) ?? reported;
    if (isWatched) for (const watch of watches) watch.resolve(event);
    else if (this.#options.scope === 'watched') return; // its watch was closed in the meantime
    if (!isForWatchesOnly && memory?.isForListeners(event, isFromRing, isWatched) !== false) {
      this.#delivery.send(event, isWatched);
    } else if (isWatched) {
      memory?.onWatchDelivered(event.id);
    }
  }

  #replay(memory: MonitorMemory): void {
    if (this.#state !== 'closed') memory.replay();
  }

  /** Never before `watch()` has returned. */
  #deliverSoon(event: ExitEvent): void {
    if (this.#state !== 'started') {
      this.#known.push(event);
      return;
    }
    process.nextTick(() => {
      this.#onKnown(event);
      this.#delivery.surfaceThrown();
    });
  }

  /** With scope `'all'`, other listeners got it from the stream, or it came before the stream. */
  #onKnown(event: ExitEvent): void {
    this.#onExit(event, this.#options.scope === 'all');
  }

  /** Closes the monitor for good; pending promises reject, with the error if there is one. */
  #shutDown(error?: Error, forget = false): void {
    if (this.#state === 'closed') return;
    const before = this.#state;
    this.#state = 'closed';
    this.#options.signal?.removeEventListener('abort', this.#abort);
    this.#closeCause = error;
    if (this.#source !== undefined) {
      this.#lastStats = this.#source.stats();
      this.#source.close();
      this.#source = undefined;
    }
    const failure = this.#closeMemory(forget);
    this.#starting?.reject(this.#closedError());
    this.#starting = undefined;
    this.#watches.rejectAll(this.#closedError());
    const aborted = error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_ABORTED';
    const { isLooping } = this.#delivery;
    this.#delivery.endLoops(aborted ? undefined : error);
    if (before === 'starting' && error !== undefined) return; // start() has rejected
    if (error !== undefined && !aborted && (!isLooping || this.listenerCount('error') > 0)) {
      // Without a listener it is an uncaught exception, unless a loop throws it.
      process.nextTick(() => this.emit('error', error));
    }
    process.nextTick(() => this.emit('close'));
    if (failure !== undefined) throw failure;
  }

  /** Returns why not all of it could be forgotten. */
  #closeMemory(forget: boolean): Error | undefined {
    try {
      this.#memory?.close(forget);
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  #closedError(): Error {
    return this.#closeCause ?? new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the monitor is closed');
  }
}
