import type { ExitwatchError } from '../common/errors.js';
import type {
  ExitEvent,
  Filter,
  Gap,
  Ready,
  SourceChange,
  SourceName,
} from '../events/exit-event.js';
import type { SignalEvent } from '../events/signal-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

/** What a source tells. Everything of one batch comes in one go, ended by `batchEnd`. */
export interface SourceListener {
  ready(ready: Ready): void;
  /** `isForWatchesOnly`: watches of the process get it; everybody else gets another event. */
  exit(event: ExitEvent, isForWatchesOnly: boolean): void;
  /** Only between `listen(true)` and `listen(false)`, and a little after. */
  signal(event: SignalEvent): void;
  gap(gap: Gap): void;
  source(change: SourceChange): void;
  /** The source has ended; nothing else comes. */
  failed(error: ExitwatchError): void;
  batchEnd(): void;
}

export interface SourceStats {
  /** Ends of processes that the source learned of. */
  received: number;
  /** Of these, handed to JavaScript. */
  delivered: number;
  /** Messages from anybody but the kernel, or ill-formed ones; they are dropped. */
  rejected: number;
  /** The sum of `lost` of all gaps, delivered or not yet. */
  lost: number;
  gaps: number;
  /** Held for JavaScript now. */
  queueDepth: number;
  lastEventAt: Date | null;
  /**
   * How long ago the kernel last sent something, or a canary came back; `null` before the start, and
   * without the connector.
   */
  canaryAgeMs: number | null;
  /** How long ago the process table was last read; `null` before that, and where nothing is polled. */
  tableAgeMs: number | null;
  /** `null` before the start. */
  source: SourceName | null;
  /** `null` before the start, and where the connector is not in use. */
  filter: Filter | null;
  /**
   * Who tells watched processes from others: the filter in the kernel, so that others cost nothing,
   * or the reader. `null` before the start, where all are told, and without the connector.
   */
  watchedSet: 'kernel' | 'user-space' | null;
  /**
   * Watched processes without a pidfd of their own: the connector alone tells their ends. All, with
   * `source: 'connector'`.
   */
  withoutPidfd: number;
  /** How often the reader was woken, or the process table was read. */
  wakeups: number;
}

/** How a watch was armed; `'gone'`: not at all, because there is no such process now. */
export type Armed = 'with-pidfd' | 'without-pidfd' | 'gone';

/** One witness of exits: a way in which the kernel tells that processes end. */
export interface ExitSource {
  /** Begins; `ready` or `failed` follows. Throws where it cannot even begin. */
  start(): void;
  /** Also before `start()`. */
  watch(identity: ProcessIdentity): Armed;
  unwatch(identity: ProcessIdentity): void;
  /**
   * After `start()`: blocks until the signal trace is at work, or will not be; for so many ms at most.
   */
  awaitTrace(timeoutMs: number): void;
  /** Whether signals are handed over at once; also before `start()`. */
  listen(listens: boolean): void;
  stats(): SourceStats;
  ref(): void;
  unref(): void;
  close(): void;
}
