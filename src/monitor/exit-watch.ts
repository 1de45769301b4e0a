import type { ExitEvent } from '../events/exit-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

/**
 * A process under watch; returned by {@link ExitMonitor.watch}.
 *
 * @see [Wait for one process](../../docs/wait-for-one.md)
 */
export interface ExitWatch extends Disposable {
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
  /** Stops watching; the process is not touched. */
  close(): void;
}

/** An {@link ExitWatch} as its monitor sees it. */
export class PendingWatch implements ExitWatch {
  readonly identity: ProcessIdentity;
  readonly hasPidfd: boolean;
  readonly exited: Promise<ExitEvent>;
  readonly #onClose: (watch: PendingWatch) => void;
  #resolve!: (event: ExitEvent) => void;
  #reject!: (error: Error) => void;

  constructor(
    identity: ProcessIdentity,
    hasPidfd: boolean,
    onClose: (watch: PendingWatch) => void,
  ) {
    this.identity = identity;
    this.hasPidfd = hasPidfd;
    this.#onClose = onClose;
    this.exited = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.exited.catch(() => undefined);
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
