import { getSystemErrorMap } from 'node:util';

/** Every `code` of an {@link ExitwatchError}. Codes are stable; messages are not. */
export type ExitwatchErrorCode =
  /** The pid is not an integer from 1 to the kernel's `pid_max`. */
  | 'ERR_EXITWATCH_INVALID_PID'
  /** The object is not a {@link ProcessIdentity}. */
  | 'ERR_EXITWATCH_INVALID_IDENTITY'
  /** An unknown option, or an invalid value. */
  | 'ERR_EXITWATCH_INVALID_OPTION'
  /** The number is not the wait status of a process that has ended. */
  | 'ERR_EXITWATCH_INVALID_WAIT_STATUS'
  /** There is no process with this pid. */
  | 'ERR_EXITWATCH_NO_SUCH_PROCESS'
  /** The pid is the id of a thread, not of its process; the message names the process. */
  | 'ERR_EXITWATCH_THREAD'
  /** The pid belongs to a kernel thread, which is not a process. */
  | 'ERR_EXITWATCH_KERNEL_THREAD'
  | 'ERR_EXITWATCH_ALREADY_STARTED'
  /** The monitor or the watch was closed. */
  | 'ERR_EXITWATCH_CLOSED'
  /** The `signal` option was aborted. */
  | 'ERR_EXITWATCH_ABORTED'
  /** The awaited event did not happen in time. */
  | 'ERR_EXITWATCH_TIMEOUT'
  /** There is no native addon that works on this system. */
  | 'ERR_EXITWATCH_NO_ADDON'
  /** The proc connector only works in the host's network namespace. */
  | 'ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE'
  /** The proc connector only works in the host's pid namespace. */
  | 'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE'
  /** The proc connector only works in the host's user namespace. */
  | 'ERR_EXITWATCH_FOREIGN_USER_NAMESPACE'
  /**
   * More privileges are required: to signal another user's process or, before Linux 6.6, to listen.
   */
  | 'ERR_EXITWATCH_NOT_PERMITTED'
  /** The kernel was built without the process events connector. */
  | 'ERR_EXITWATCH_NO_CONNECTOR'
  /** pidfd_open(2) is missing (before Linux 5.3) or forbidden. */
  | 'ERR_EXITWATCH_NO_PIDFD'
  /** /proc is not mounted, hides the process (hidepid), or shows another pid namespace. */
  | 'ERR_EXITWATCH_NO_PROC'
  /** The kernel accepted the subscription, but no events arrive. */
  | 'ERR_EXITWATCH_SILENT'
  /**
   * RLIMIT_NOFILE leaves no descriptor for another watch, and nothing else would report the exit.
   */
  | 'ERR_EXITWATCH_DESCRIPTOR_LIMIT'
  /** The signal trace was required, but cannot run. */
  | 'ERR_EXITWATCH_NO_TRACE'
  /** There is no usable ps, which polling requires on this system. */
  | 'ERR_EXITWATCH_NO_PS'
  /** The pidfile is missing; `cause` has the ENOENT. */
  | 'ERR_EXITWATCH_NO_PIDFILE'
  /** The pidfile holds no pid, or is not a file. */
  | 'ERR_EXITWATCH_INVALID_PIDFILE'
  /**
   * The pidfile may have been written by someone else: it is a symbolic link, other users can write
   * it, or it belongs to another user but names a process of a third one.
   */
  | 'ERR_EXITWATCH_UNTRUSTED_PIDFILE'
  /** The process with this pid runs something else, or that is unknown; it was not signalled. */
  | 'ERR_EXITWATCH_NOT_VERIFIED'
  /** Init and this process are signalled only on request; together with their tree, never. */
  | 'ERR_EXITWATCH_REFUSED'
  /** An intent could not be recorded, so nothing was done. */
  | 'ERR_EXITWATCH_INTENT_LOG'
  /** The log may have been written by someone other than the virtual machine. */
  | 'ERR_EXITWATCH_UNTRUSTED_LOG'
  /** Another daemon or monitor uses this state directory. */
  | 'ERR_EXITWATCH_IN_USE'
  /** A directory entry cannot be used as a virtual machine; the message says why. */
  | 'ERR_EXITWATCH_CONTROL_DIR'
  /** The state in a state directory cannot be read or written. */
  | 'ERR_EXITWATCH_STATE_DIR'
  /** There is no journal in this directory. */
  | 'ERR_EXITWATCH_NO_JOURNAL'
  /** A journal cannot be read, or someone else may have written it. */
  | 'ERR_EXITWATCH_JOURNAL'
  /** The recorder has no room for another watched process. */
  | 'ERR_EXITWATCH_RECORDER_FULL'
  /** There is no program that keeps processes for this system. */
  | 'ERR_EXITWATCH_NO_KEEPER'
  /** The keeper died, refused, or did not answer. */
  | 'ERR_EXITWATCH_KEEPER'
  /** A command could not be executed; see `errno`. */
  | 'ERR_EXITWATCH_START_FAILED'
  /** The keeper has no run of this id. */
  | 'ERR_EXITWATCH_NO_RUN'
  /** A run cannot be forgotten while anything of it is alive. */
  | 'ERR_EXITWATCH_BUSY'
  /** A supervisor has no service of this name. */
  | 'ERR_EXITWATCH_NO_SERVICE'
  /** No supervisor answers at the socket of this directory. */
  | 'ERR_EXITWATCH_NO_SUPERVISOR'
  /** A service cannot do this in its present phase; the message names both. */
  | 'ERR_EXITWATCH_WRONG_PHASE'
  /** A configuration cannot be read, or is not valid; the message names the line and the option. */
  | 'ERR_EXITWATCH_CONFIG'
  /** A hook failed or timed out. */
  | 'ERR_EXITWATCH_HOOK'
  /** A virtual machine's control interface refused, did not answer, or is gone. */
  | 'ERR_EXITWATCH_CONTROL'
  /** A virtual machine's control socket (QMP) refused, did not answer, or is gone. */
  | 'ERR_EXITWATCH_QMP'
  /** Nothing listens at a QMP socket, or another process does; nothing was requested. */
  | 'ERR_EXITWATCH_NO_QMP'
  /** No guest agent answers; nothing was requested. */
  | 'ERR_EXITWATCH_NO_AGENT'
  /** A guest agent refused, or gave an invalid answer. */
  | 'ERR_EXITWATCH_AGENT'
  /** Any other failed system call; see `errno` and `syscall`. */
  | 'ERR_EXITWATCH_SYSTEM';

/**
 * The error that exitwatch throws and rejects with. Check {@link ExitwatchError.code} to tell
 * errors apart.
 *
 * @see [Errors](../../docs/errors.md)
 */
export class ExitwatchError extends Error {
  override readonly name = 'ExitwatchError';
  readonly code: ExitwatchErrorCode;
  /** The message without the remedy. */
  readonly detail: string;
  /** What to do about it, if a remedy is known. */
  readonly remedy?: string;
  /** The errno(3) of a failed system call: positive, as in C. */
  readonly errno?: number;
  /** The name of the failed system call. */
  readonly syscall?: string;

  constructor(
    code: ExitwatchErrorCode,
    detail: string,
    more: { remedy?: string | undefined; cause?: unknown; errno?: number; syscall?: string } = {},
  ) {
    const message = more.remedy === undefined ? detail : `${detail}; ${more.remedy}`;
    super(message, 'cause' in more ? { cause: more.cause } : undefined);
    this.code = code;
    this.detail = detail;
    if (more.remedy !== undefined) this.remedy = more.remedy;
    if (more.errno !== undefined) this.errno = more.errno;
    if (more.syscall !== undefined) this.syscall = more.syscall;
  }

  /** With its message, which JSON leaves out of errors. */
  toJSON(): object {
    const { name, code, message, detail, remedy, errno, syscall } = this;
    return { name, code, message, detail, remedy, errno, syscall };
  }
}

/** The error itself, or one of ours about it. @internal */
export function asExitwatchError(error: unknown): ExitwatchError {
  if (error instanceof ExitwatchError) return error;
  const { message = String(error) } = error as Partial<Error>;
  return new ExitwatchError('ERR_EXITWATCH_SYSTEM', message, { cause: error });
}

/** Why a system call failed, without its name and path: `no such file or directory`. @internal */
export function reasonOf(error: unknown): string {
  // Of several addresses of a host, each has its own.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  const { errno, code, message } = (first ?? error) as NodeJS.ErrnoException;
  const known = errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1];
  return known ?? (message === '' ? (code ?? 'unknown error') : message);
}
