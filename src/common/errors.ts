import { getSystemErrorMap } from 'node:util';

/** Every `code` that an {@link ExitwatchError} can have. Codes are stable; sentences are not. */
export type ExitwatchErrorCode =
  /** A pid that is no integer from 1 to the kernel's `pid_max`. */
  | 'ERR_EXITWATCH_INVALID_PID'
  /** An object that is no {@link ProcessIdentity}. */
  | 'ERR_EXITWATCH_INVALID_IDENTITY'
  /** An option that does not exist, or a value that it cannot take. */
  | 'ERR_EXITWATCH_INVALID_OPTION'
  /** A number that is no wait status of an ended process. */
  | 'ERR_EXITWATCH_INVALID_WAIT_STATUS'
  /** Nobody has this pid. */
  | 'ERR_EXITWATCH_NO_SUCH_PROCESS'
  /** The pid is the id of a thread, not of its process; the message names the process. */
  | 'ERR_EXITWATCH_THREAD'
  /** The pid is a kernel thread's, and they are not processes. */
  | 'ERR_EXITWATCH_KERNEL_THREAD'
  | 'ERR_EXITWATCH_ALREADY_STARTED'
  /** The monitor, or the watch, was closed. */
  | 'ERR_EXITWATCH_CLOSED'
  /** The `signal` option was aborted. */
  | 'ERR_EXITWATCH_ABORTED'
  /** What was waited for did not happen in time. */
  | 'ERR_EXITWATCH_TIMEOUT'
  /** No usable native addon for this system. */
  | 'ERR_EXITWATCH_NO_ADDON'
  /** The proc connector is deaf outside of the host's network namespace. */
  | 'ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE'
  /** The proc connector is deaf outside of the host's pid namespace. */
  | 'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE'
  /** The proc connector is deaf outside of the host's user namespace. */
  | 'ERR_EXITWATCH_FOREIGN_USER_NAMESPACE'
  /** The kernel wants more privilege: to signal another user's process; before Linux 6.6, to listen. */
  | 'ERR_EXITWATCH_NOT_PERMITTED'
  /** The kernel was built without the process events connector. */
  | 'ERR_EXITWATCH_NO_CONNECTOR'
  /** pidfd_open(2) is missing (before Linux 5.3) or forbidden. */
  | 'ERR_EXITWATCH_NO_PIDFD'
  /** /proc is not mounted, hides the process (hidepid), or shows another pid namespace. */
  | 'ERR_EXITWATCH_NO_PROC'
  /** The kernel took the subscription, but events do not arrive. */
  | 'ERR_EXITWATCH_SILENT'
  /** RLIMIT_NOFILE leaves no descriptor for another watch, and without one nothing tells its end. */
  | 'ERR_EXITWATCH_DESCRIPTOR_LIMIT'
  /** The signal trace cannot be had, and was asked for. */
  | 'ERR_EXITWATCH_NO_TRACE'
  /** There is no ps that can be used, which is what polling takes here. */
  | 'ERR_EXITWATCH_NO_PS'
  /** There is no such pidfile; `cause` has the ENOENT. */
  | 'ERR_EXITWATCH_NO_PIDFILE'
  /** A pidfile that holds no pid, or is no file. */
  | 'ERR_EXITWATCH_INVALID_PIDFILE'
  /** A pidfile that somebody else may have written: a symbolic link, writable for others, or another
   * user's that names a process of a third one. */
  | 'ERR_EXITWATCH_UNTRUSTED_PIDFILE'
  /** The process that has the pid runs something else, or nobody can tell: it was not signalled. */
  | 'ERR_EXITWATCH_NOT_VERIFIED'
  /** Init, and this process, are signalled only if that is asked for; with their tree, never. */
  | 'ERR_EXITWATCH_REFUSED'
  /** An intent could not be written down, so that nothing was done. */
  | 'ERR_EXITWATCH_INTENT_LOG'
  /** A log that somebody else than the virtual machine may have written. */
  | 'ERR_EXITWATCH_UNTRUSTED_LOG'
  /** Another daemon has this state directory. */
  | 'ERR_EXITWATCH_IN_USE'
  /** A directory's entry that cannot be taken for a virtual machine, and why. */
  | 'ERR_EXITWATCH_CONTROL_DIR'
  /** What was remembered in a state directory cannot be read, or written. */
  | 'ERR_EXITWATCH_STATE_DIR'
  /** A hook failed, or took too long. */
  | 'ERR_EXITWATCH_HOOK'
  /** A virtual machine's control interface refuses, does not answer, or is gone. */
  | 'ERR_EXITWATCH_CONTROL'
  /** A virtual machine's control socket (QMP) refuses, does not answer, or is gone. */
  | 'ERR_EXITWATCH_QMP'
  /** Nobody answers at a QMP socket, or another process does, so that it was asked for nothing. */
  | 'ERR_EXITWATCH_NO_QMP'
  /** No guest agent answers, so that it was asked for nothing. */
  | 'ERR_EXITWATCH_NO_AGENT'
  /** A guest agent refuses, or its answer makes no sense. */
  | 'ERR_EXITWATCH_AGENT'
  /** Any other failed system call; see `errno` and `syscall`. */
  | 'ERR_EXITWATCH_SYSTEM';

/** What exitwatch throws, and rejects with: tell them apart by {@link ExitwatchError.code}. */
export class ExitwatchError extends Error {
  override readonly name = 'ExitwatchError';
  readonly code: ExitwatchErrorCode;
  /** The message without the remedy. */
  readonly detail: string;
  /** What to do about it, where we know that. */
  readonly remedy?: string;
  /** The errno(3) of a failed system call, as C has it: positive. */
  readonly errno?: number;
  /** The name of the system call that failed. */
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
}

/** Why a system call failed, without its name and its path: `no such file or directory`. @internal */
export function reasonOf(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  return (errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1]) ?? message;
}
