import type { ExitwatchError } from '../common/errors.js';
import type { ExitEvent, Filter, Gap, SourceChange, SourceName } from '../events/exit-event.js';
import type { SourceReady } from '../events/source-ready.js';
import type { SignalEvent } from '../events/signal-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

/** What a source reports. All of a batch is reported in one go, followed by `batchEnd`. */
export interface SourceListener {
  ready(ready: SourceReady): void;
  /** `isForWatchesOnly`: deliver it to watches only; other listeners get another event. */
  exit(event: ExitEvent, isForWatchesOnly: boolean): void;
  /** Only between `listen(true)` and `listen(false)`, and shortly after. */
  signal(event: SignalEvent): void;
  gap(gap: Gap): void;
  source(change: SourceChange): void;
  /** The source has failed; nothing else follows. */
  failed(error: ExitwatchError): void;
  batchEnd(): void;
}

export interface SourceStats {
  /** Exits of processes that the source learned of. */
  received: number;
  /** How many of these were handed to JavaScript. */
  delivered: number;
  /** Messages that did not come from the kernel, or were malformed; they are dropped. */
  rejected: number;
  /** The sum of `lost` of all gaps, delivered or not. */
  lost: number;
  gaps: number;
  /** Events that now wait for JavaScript. */
  queueDepth: number;
  lastEventAt: Date | null;
  /**
   * Time since the kernel last sent something, or a canary came back, in ms; `null` before the
   * start, and without the connector.
   */
  canaryAgeMs: number | null;
  /** Time since the process table was last read, in ms; `null` before that, and without polling. */
  tableAgeMs: number | null;
  /** `null` before the start. */
  source: SourceName | null;
  /** `null` before the start, and if the connector is not in use. */
  filter: Filter | null;
  /**
   * What filters out processes that are not watched: the kernel, where they cost nothing, or the
   * reader. `null` before the start, with scope `'all'`, and without the connector.
   */
  watchedSet: 'kernel' | 'user-space' | null;
  /**
   * Watched processes without a pidfd: only the connector reports their exits. With
   * `source: 'connector'`, all of them.
   */
  withoutPidfd: number;
  /** How often the reader woke up, or the process table was read. */
  wakeups: number;
}

/** How a watch was armed. `'gone'`: not at all, because there is no such process. */
export type Armed = 'with-pidfd' | 'without-pidfd' | 'gone';

export type WatchedPid = { identity: ProcessIdentity; armed: Armed };

/** A source of exits: one way in which the kernel reports that processes exit. */
export interface ExitSource {
  /** Starts; `ready` or `failed` follows. Throws if it cannot even begin. */
  start(): void;
  /** Can be called before `start()`. */
  watch(identity: ProcessIdentity): Armed;
  /**
   * Watches whichever process has this pid, and looks it up only once; not for a pid of which a process
   * is watched already. `null`: `identify()` and `watch()` say why not.
   */
  watchPid?(pid: number): WatchedPid | null;
  unwatch(identity: ProcessIdentity): void;
  /** Call after `start()`. Blocks until the signal trace runs, or cannot run, or the time is up. */
  awaitTrace(timeoutMs: number): void;
  /** Whether signals are handed over at once. Can be called before `start()`. */
  listen(listens: boolean): void;
  stats(): SourceStats;
  ref(): void;
  unref(): void;
  close(): void;
}
