import { EventEmitter } from 'node:events';

import { addonRefusal } from '../native/load-addon.js';
import { ExitwatchError } from '../errors.js';
import type {
  Downgrade,
  ExitEvent,
  Gap,
  MonitorEvent,
  Ready,
  SourceChange,
  SourceName,
} from '../exit-event.js';
import { absenceError } from '../not-a-process.js';
import type { ProcessIdentity } from '../process-identity.js';
import type { SignalEvent } from '../signal-event.js';
import type { ExitSource, SourceListener, SourceStats } from '../sources/exit-source.js';
import { openSource } from '../sources/open-source.js';
import { WatchedIdentities } from '../sources/watched-identities.js';

import { EventBacklog } from './event-backlog.js';
import { PendingWatch, type ExitWatch } from './exit-watch.js';
import { checkOptions, type CheckedOptions, type ExitMonitorOptions } from './options.js';
import { findTarget, goneBeforeWatch } from './watch-target.js';

/** The events of an {@link ExitMonitor}. `error` ends it, and `close` follows. */
export interface ExitMonitorEvents {
  ready: [Ready];
  exit: [ExitEvent];
  signal: [SignalEvent];
  gap: [Gap];
  source: [SourceChange];
  error: [Error];
  close: [];
}

/** Counters since the monitor was made. */
export interface MonitorStats extends SourceStats {
  /** Processes under watch now. */
  watches: number;
  /**
   * Started, and neither closed nor failed; and with the connector and canaries, the kernel told
   * something within two intervals; with polling, a look has succeeded within three.
   */
  healthy: boolean;
}

/** What the signal trace takes to be at work, in ms: some 20, on a machine that is busy many times that. */
const LONGEST_ARMING_MS = 2000;

type State = 'new' | 'starting' | 'started' | 'closed';

const NO_STATS: SourceStats = {
  received: 0,
  delivered: 0,
  rejected: 0,
  lost: 0,
  gaps: 0,
  queueDepth: 0,
  lastEventAt: null,
  canaryAgeMs: null,
  source: null,
  filter: null,
  watchedSet: null,
  unguarded: 0,
  wakeups: 0,
};

/**
 * Tells that processes end, and how.
 *
 * A started monitor keeps the event loop alive (see {@link ExitMonitor.unref}) and lives until
 * {@link ExitMonitor.close}, also where nothing refers to it any more. A listener that throws
 * surfaces as an uncaught exception after the events of the same batch were given to everybody.
 */
export class ExitMonitor
  extends EventEmitter<ExitMonitorEvents>
  implements AsyncIterable<MonitorEvent>, AsyncDisposable
{
  readonly #options: CheckedOptions;
  #state: State = 'new';
  #referenced = true;
  /** Somebody wants to know of signals. */
  #isListening = false;
  #source: ExitSource | undefined;
  #starting: { resolve: (ready: Ready) => void; reject: (error: Error) => void } | undefined;
  /** By the id of the process: usually one watch each. */
  readonly #watches = new Map<string, Set<PendingWatch>>();
  /** Those that the source knows: a process may be named in two ways, and is watched once. */
  readonly #identities = new WatchedIdentities();
  /** Ends that were known before they could be told. */
  readonly #known: ExitEvent[] = [];
  readonly #backlogs = new Set<EventBacklog>();
  readonly #thrown: unknown[] = [];
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
    this.#followListeners();
    if (this.#options.signal?.aborted === true) this.#abort();
    else this.#options.signal?.addEventListener('abort', this.#abort, { once: true });
  }

  /**
   * Begins, and resolves once the kernel has proved that events arrive. Failures reject, and do
   * nothing else; the monitor is closed then.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_ALREADY_STARTED`,
   * `ERR_EXITWATCH_CLOSED`, `ERR_EXITWATCH_ABORTED`, `ERR_EXITWATCH_NO_ADDON`, or why the kernel
   * does not tell us: `ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE`, `…_FOREIGN_PID_NAMESPACE`,
   * `…_FOREIGN_USER_NAMESPACE`, `…_NOT_PERMITTED`, `…_NO_CONNECTOR`, `…_NO_PIDFD`, `…_NO_PROC`,
   * `…_SILENT`, `…_SYSTEM`; and `ERR_EXITWATCH_NO_TRACE`, with `trace: 'on'`.
   */
  start(): Promise<Ready> {
    return new Promise((resolve, reject) => {
      if (this.#state === 'closed') throw this.#closedError();
      if (this.#state !== 'new') {
        throw new ExitwatchError(
          'ERR_EXITWATCH_ALREADY_STARTED',
          'the monitor was started already',
        );
      }
      this.#state = 'starting';
      this.#starting = { resolve, reject };
      try {
        const source = this.#openSource();
        source.start();
        if (!this.#referenced) source.unref();
      } catch (error) {
        this.#shutDown(error as Error);
      }
    });
  }

  /**
   * Watches one process; also before `start()`. Armed when it returns: from then on its end is not
   * missed. So is the signal trace, once `start()` was called: who sends it a signal afterwards is seen.
   * While the monitor is starting, this blocks the event loop until the trace is at work: for some
   * 20 ms in all, and 2 s at most; {@link ExitEvent.tracedSince} tells since when it was. A process may be
   * watched any number of times.
   *
   * @param target a pid, or the identity of a process: if that one has ended already, the watch
   *   resolves with `how: 'unknown'`, `unknownReason: 'gone-before-watch'`.
   * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_INVALID_IDENTITY`,
   *   `ERR_EXITWATCH_NO_SUCH_PROCESS`, `ERR_EXITWATCH_THREAD` and `ERR_EXITWATCH_KERNEL_THREAD` for a pid,
   *   `ERR_EXITWATCH_FOREIGN_PID_NAMESPACE` for an identity that was made in another one,
   *   `ERR_EXITWATCH_DESCRIPTOR_LIMIT` without the connector, `ERR_EXITWATCH_NO_PIDFD` with source
   *   `'pidfd'`,
   *   `ERR_EXITWATCH_CLOSED`, `ERR_EXITWATCH_NO_ADDON`, `ERR_EXITWATCH_SYSTEM` (out of descriptors)
   */
  watch(target: number | ProcessIdentity): ExitWatch {
    if (this.#state === 'closed') throw this.#closedError();
    const { identity: found, isThere } = findTarget(target);
    const identity = (isThere ? this.#identities.of(found) : undefined) ?? found;
    const others = this.#watches.get(identity.id);
    if (others !== undefined) {
      const [first] = others;
      const watch = this.#newWatch(identity, first?.guarded ?? false);
      others.add(watch);
      return watch;
    }
    const armed = isThere ? this.#openSource().watch(identity) : 'gone';
    if (armed === 'gone' && typeof target === 'number') throw absenceError(target, 'none');
    const watch = this.#newWatch(identity, armed === 'guarded');
    this.#watches.set(identity.id, new Set([watch]));
    this.awaitTrace();
    if (armed !== 'gone') this.#identities.add(identity);
    else this.#tellLater(goneBeforeWatch(identity, this.#looksBy()));
    return watch;
  }

  /** Blocks until the signal trace is at work, if the monitor is starting. @internal */
  awaitTrace(): void {
    if (this.#state === 'starting') this.#source?.awaitTrace(LONGEST_ARMING_MS);
  }

  /** Who tells that a process is gone before it could be watched. */
  #looksBy(): SourceName {
    return addonRefusal() === null ? 'pidfd' : 'poll';
  }

  #newWatch(identity: ProcessIdentity, guarded: boolean): PendingWatch {
    return new PendingWatch(identity, guarded, (watch) => {
      this.#unwatch(watch);
    });
  }

  stats(): MonitorStats {
    if (this.#source !== undefined) this.#lastStats = this.#source.stats();
    const { canaryAgeMs, source } = this.#lastStats;
    const { canaryIntervalMs, pollIntervalMs } = this.#options;
    const oldestMs = source === 'poll' ? 3 * pollIntervalMs : 2 * (canaryIntervalMs || Infinity);
    const isHeard = source === 'pidfd' || (canaryAgeMs !== null && canaryAgeMs <= oldestMs);
    return {
      ...this.#lastStats,
      watches: this.#watches.size,
      healthy: this.#state === 'started' && isHeard,
    };
  }

  /** Keeps the event loop alive while the monitor is started, which is the default. */
  ref(): this {
    this.#referenced = true;
    this.#source?.ref();
    return this;
  }

  /** Lets the process end although the monitor is started. */
  unref(): this {
    this.#referenced = false;
    this.#source?.unref();
    return this;
  }

  /**
   * Ends everything: the reader's thread, the socket, loops over the monitor. Watches that have not
   * resolved reject with `ERR_EXITWATCH_CLOSED`; watched processes are left alone. Any number of
   * times.
   */
  close(): Promise<void> {
    this.#shutDown();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Yields exits, gaps and changes of source from now on; starts the monitor if need be, and ends when it is closed.
   * Leaving the loop leaves the monitor running. Where the loop is too slow, at most `queueLimit`
   * events wait for it, beside the ends of watched processes; then there is a gap, of the loop's
   * own: `stats()` does not count it.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<MonitorEvent> {
    const backlog = new EventBacklog(this.#options.queueLimit, (detaching) => {
      this.#backlogs.delete(detaching);
    });
    if (this.#state === 'closed') {
      backlog.end();
      return backlog;
    }
    this.#backlogs.add(backlog);
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
      if (this.#isListening) this.#source.listen(true);
    }
    return this.#source;
  }

  /** Signals are told at once only where somebody listens. */
  #followListeners(): void {
    const onChange = (on: 'newListener' | 'removeListener', isListening: () => boolean) => {
      EventEmitter.prototype.on.call(this, on, (name) => {
        if (name === 'signal') this.#listen(isListening());
      });
    };
    onChange('newListener', () => true);
    onChange('removeListener', () => this.listenerCount('signal') > 0);
  }

  override removeAllListeners(name?: keyof ExitMonitorEvents): this {
    super.removeAllListeners(name);
    if (name === undefined) this.#followListeners();
    return this;
  }

  #listen(listens: boolean): void {
    if (this.#isListening === listens) return;
    this.#isListening = listens;
    this.#source?.listen(listens);
  }

  readonly #listener: SourceListener = {
    ready: (ready) => {
      if (this.#options.trace === 'on' && !ready.traced) {
        this.#shutDown(noTrace(ready.traceDowngrade));
        return;
      }
      this.#state = 'started';
      this.#deliver('ready', ready);
      this.#starting?.resolve(ready);
      this.#starting = undefined;
      for (const event of this.#known.splice(0)) this.#onKnown(event);
    },
    exit: (event, isTold) => {
      this.#onExit(event, isTold);
    },
    signal: (event) => {
      if (this.#options.scope === 'watched' && !this.#watches.has(event.id)) return;
      if (this.#state !== 'closed') this.#deliver('signal', event);
    },
    gap: (gap) => {
      this.#deliver('gap', gap);
      for (const backlog of this.#backlogs) backlog.push(gap);
    },
    source: (change) => {
      this.#deliver('source', change);
      for (const backlog of this.#backlogs) backlog.push(change);
    },
    failed: (error) => {
      this.#shutDown(error);
    },
    batchEnd: () => {
      this.#surfaceThrown();
    },
  };

  #onExit(event: ExitEvent, isTold = false): void {
    if (this.#state === 'closed') return; // by a listener, in the middle of a batch
    const watches = this.#takeWatches(event.id);
    if (watches !== undefined) for (const watch of watches) watch.resolve(event);
    else if (this.#options.scope === 'watched') return; // its watch was closed meanwhile
    if (isTold) return;
    this.#deliver('exit', event);
    for (const backlog of this.#backlogs) backlog.push(event, watches !== undefined);
  }

  /** Asking for it makes V8 flatten and hash the id: only where somebody watches. */
  #takeWatches(id: string): Set<PendingWatch> | undefined {
    if (this.#watches.size === 0) return undefined;
    const watches = this.#watches.get(id);
    if (watches === undefined) return undefined;
    this.#watches.delete(id);
    const [first] = watches;
    if (first !== undefined) this.#identities.delete(first.identity);
    return watches;
  }

  #tellLater(event: ExitEvent): void {
    if (this.#state !== 'started') {
      this.#known.push(event);
      return;
    }
    process.nextTick(() => {
      this.#onKnown(event);
      this.#surfaceThrown();
    });
  }

  /** With scope `'all'` the stream has told everybody, or nobody could be told. */
  #onKnown(event: ExitEvent): void {
    this.#onExit(event, this.#options.scope === 'all');
  }

  #unwatch(watch: PendingWatch): void {
    const watches = this.#watches.get(watch.identity.id);
    if (watches?.delete(watch) !== true) return;
    watch.reject(new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the watch was closed'));
    if (watches.size > 0) return;
    this.#watches.delete(watch.identity.id);
    this.#identities.delete(watch.identity);
    this.#source?.unwatch(watch.identity);
  }

  /** Closes for good; with an error, whoever waits is told that. */
  #shutDown(error?: Error): void {
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
    this.#starting?.reject(this.#closedError());
    this.#starting = undefined;
    for (const watches of this.#watches.values()) {
      for (const watch of watches) watch.reject(this.#closedError());
    }
    this.#watches.clear();
    this.#identities.clear();
    const aborted = error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_ABORTED';
    const looping = this.#backlogs.size > 0;
    for (const backlog of this.#backlogs) backlog.end(aborted ? undefined : error);
    this.#backlogs.clear();
    if (before === 'starting' && error !== undefined) return; // start() has rejected
    if (error !== undefined && !aborted && (!looping || this.listenerCount('error') > 0)) {
      // Without a listener it is an uncaught exception, unless a loop was told: it must not pass
      // unseen.
      process.nextTick(() => this.emit('error', error));
    }
    process.nextTick(() => this.emit('close'));
  }

  #closedError(): Error {
    return this.#closeCause ?? new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the monitor is closed');
  }

  /** Like `emit()`, but a listener that throws takes nothing from the others. */
  #deliver<Name extends 'ready' | 'exit' | 'signal' | 'gap' | 'source'>(
    name: Name,
    payload: ExitMonitorEvents[Name][0],
  ): void {
    if (this.listenerCount(name) <= 1) {
      try {
        (this as EventEmitter).emit(name, payload);
      } catch (error) {
        this.#thrown.push(error);
      }
      return;
    }
    for (const listener of this.rawListeners(name)) {
      try {
        Reflect.apply(listener, this, [payload]);
      } catch (error) {
        this.#thrown.push(error);
      }
    }
  }

  #surfaceThrown(): void {
    if (this.#thrown.length === 0) return;
    for (const error of this.#thrown.splice(0)) {
      process.nextTick(() => {
        throw error;
      });
    }
  }
}

function noTrace(reason: Downgrade | null): ExitwatchError {
  const detail = reason?.detail ?? 'there is none';
  return new ExitwatchError('ERR_EXITWATCH_NO_TRACE', `no signal trace: ${detail}`, {
    remedy: reason?.remedy ?? undefined,
  });
}
