import type { ExitEvent } from '../events/exit-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';
import type { StoredWatch } from '../memory/watch-log.js';

/**
 * A process under watch; returned by {@link ExitMonitor.watch}.
 *
 * @see [Wait for one process](../../docs/wait-for-one.md)
 */
export interface ExitWatch extends Disposable {
  /**
   * With `stateDir`: the number of the watch, which that directory never gives out again. `null`
   * otherwise.
   */
  readonly id: number | null;
  /** What the caller of `watch()` named it; `null` if nothing. */
  readonly key: string | null;
  readonly identity: ProcessIdentity;
  /**
   * A pidfd guards the process: its exit is reported with its status, even if the connector loses
   * events or fails. `false` with `source: 'connector'`, if RLIMIT_NOFILE left no descriptor, or if
   * pidfd_open(2) was forbidden after the start.
   */
  readonly hasPidfd: boolean;
  /**
   * Resolves when the process has exited, even if its outcome is unknown. Rejects with
   * `ERR_EXITWATCH_CLOSED` if the watch or its monitor is closed first, or with the error that
   * ended the monitor. You may ignore it: it never causes an unhandled rejection.
   */
  readonly exited: Promise<ExitEvent>;
  /** Stops watching, and forgets the watch; the process is not touched. */
  close(): void;
}

/** What tells a watch from others of the same process. */
export interface WatchLabel {
  key: string | null;
  stored: StoredWatch | null;
}

/** An {@link ExitWatch} as its monitor sees it. */
export class PendingWatch implements ExitWatch {
  readonly identity: ProcessIdentity;
  /** The watch as it is stored, with `stateDir`. */
  readonly stored: StoredWatch | null;
  readonly key: string | null;
  readonly hasPidfd: boolean;
  readonly exited: Promise<ExitEvent>;
  readonly #onClose: (watch: PendingWatch) => void;
  #resolve!: (event: ExitEvent) => void;
  #reject!: (error: Error) => void;

  constructor(
    identity: ProcessIdentity,
    hasPidfd: boolean,
    label: WatchLabel,
    onClose: (watch: PendingWatch) => void,
  ) {
    this.identity = identity;
    this.hasPidfd = hasPidfd;
    this.stored = label.stored;
    this.key = label.key;
    this.#onClose = onClose;
    this.exited = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.exited.catch(() => undefined);
  }

  get id(): number | null {
    return this.stored?.watch ?? null;
  }

  resolve(event: ExitEvent): void {
    this.#resolve(event);
  }

  reject(error: Error): void {
    this.#reject(error);
  }

  close(): void {
    this.#onClose(this);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
