import type { ExitEvent } from '../events/exit-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

/** One process under watch; {@link ExitMonitor.watch} makes it. */
export interface ExitWatch extends Disposable {
  readonly identity: ProcessIdentity;
  /**
   * Whether a pidfd shows its end: then that arrives, with its status, also if the connector loses
   * events or fails. False with `source: 'connector'`, if RLIMIT_NOFILE left no descriptor, and if
   * pidfd_open(2) has been forbidden since the start.
   */
  readonly hasPidfd: boolean;
  /**
   * Resolves when the process has ended, also where nobody knows how. Rejects with
   * `ERR_EXITWATCH_CLOSED` when the watch or its monitor is closed before, or with the error that
   * ended the monitor. It may be left alone: it never causes an unhandled rejection.
   */
  readonly exited: Promise<ExitEvent>;
  /** Stops watching; the process is left alone. */
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
