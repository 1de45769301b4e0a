import { readFileSync } from 'node:fs';

import { ExitwatchError } from '../common/errors.js';
import { translateFailure } from '../native/failures.js';
import { addonRefusal, loadAddon } from '../native/load-addon.js';

import { bootId } from './boot-id.js';
import { HOST_NAMESPACE, namespaceInode } from './namespaces.js';
import { type Absence, absenceError, threadGroupOf } from './not-a-process.js';
import { processTable } from './platform-table.js';
import { signalZero } from './signal-zero.js';

/**
 * Identifies a process across pid reuse. Plain data, so you can keep it as JSON in a file and use
 * it after a restart.
 *
 * @see [Wait for one process](../../docs/wait-for-one.md)
 */
export type ProcessIdentity = {
  /** Unique to this process; compare identities by it. */
  id: string;
  pid: number;
  /**
   * When it started. On Linux: clock ticks since boot, field 22 of proc_pid_stat(5). On other
   * systems: hundredths of a second since 1970, as ps reports it, which is accurate to a second. 0
   * on Windows, which does not report it; there a reused pid is not detected.
   */
  startTicks: number;
  /** The boot it belongs to; on Linux the content of /proc/sys/kernel/random/boot_id. */
  bootId: string;
  /**
   * Its inode in pidfs, unique within a boot. `null` before Linux 6.9, on other systems, without
   * the addon, and while pidfd_open(2) is forbidden.
   */
  inode: number | null;
  /** The inode of the pid namespace of its pid; `null`: the host's. */
  pidNamespace: number | null;
};

/** The largest pid on Linux (PID_MAX_LIMIT). */
const PID_LIMIT = 4_194_304;

/**
 * The id of a process, made from its inode if that is known, else from its start, else (if only its
 * exit was seen) from its exit. `boot` is the result of {@link bootPrefix}.
 */
export function identityId(
  boot: string,
  pid: number,
  inode: number | null,
  startTicks: number | null,
  exitedNs: number,
): string {
  if (inode !== null) return `${boot}-${pid}-${inode}`;
  if (startTicks !== null) return `${boot}-${pid}-t${startTicks}`;
  return `${boot}-${pid}-x${exitedNs}`;
}

/** Whether the id was made only from the exit of the process. @internal */
export function isIdOfEnd(id: string): boolean {
  return /-x\d+$/.test(id);
}

/** The part of an id for the boot and, unless it is the host's, for the pid namespace. */
export function bootPrefix(boot: string, namespace: number | null): string {
  const prefix = boot.replaceAll('-', '').slice(0, 12);
  return namespace === null ? prefix : `${prefix}n${namespace}`;
}

let ownPidNamespace: number | null | undefined;

/** The inode of our pid namespace; `null` if it is the host's, or unknown. @internal */
export function pidNamespace(): number | null {
  if (ownPidNamespace === undefined) {
    const inode = namespaceInode('pid');
    ownPidNamespace = inode === HOST_NAMESPACE.pid ? null : inode;
  }
  return ownPidNamespace;
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID` unless this can be the pid of a process. */
export function checkPid(pid: unknown): asserts pid is number {
  if (Number.isInteger(pid) && (pid as number) > 0 && (pid as number) <= PID_LIMIT) return;
  throw new ExitwatchError(
    'ERR_EXITWATCH_INVALID_PID',
    `a pid must be an integer from 1 to ${PID_LIMIT}, not ${describe(pid)}`,
  );
}

/**
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_IDENTITY` unless {@link identify} can have made it.
 */
export function checkIdentity(value: unknown): asserts value is ProcessIdentity {
  const identity = value as Partial<Record<keyof ProcessIdentity, unknown>> | null;
  if (typeof identity === 'object' && identity !== null) {
    const { id, pid, startTicks, bootId: boot, inode, pidNamespace: namespace } = identity;
    const plausible =
      Number.isInteger(pid) &&
      (pid as number) > 0 &&
      (pid as number) <= PID_LIMIT &&
      Number.isSafeInteger(startTicks) &&
      (startTicks as number) >= 0 &&
      typeof boot === 'string' &&
      isInode(inode) &&
      isInode(namespace);
    if (plausible) {
      const own = identityId(
        bootPrefix(boot, namespace),
        pid as number,
        inode,
        startTicks as number,
        0,
      );
      if (id === own) return;
    }
  }
  throw new ExitwatchError(
    'ERR_EXITWATCH_INVALID_IDENTITY',
    'not an identity of a process, as returned by identify()',
  );
}

/** Whether both identify the same process, as far as both know. */
export function isSameProcess(a: ProcessIdentity, b: ProcessIdentity): boolean {
  if (a.bootId !== b.bootId || a.pid !== b.pid) return false;
  const { startTolerance } = processTable();
  if (Math.abs(a.startTicks - b.startTicks) > startTolerance) return false;
  if (a.pidNamespace !== b.pidNamespace) return false;
  return a.inode === null || b.inode === null || a.inode === b.inode;
}

/**
 * Identifies the process that has this pid now; a zombie counts. `null` if there is none: the pid
 * is unused, or belongs to a kernel thread or to a thread other than its process's first. To find
 * out which, use `isAlive()` or `stop()` of `exitwatch/process`. Without the addon or pidfds, and
 * on systems other than Linux, the inode is missing, so the same process has a different id.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_NO_PROC`,
 *   `ERR_EXITWATCH_NO_PS`, `ERR_EXITWATCH_SYSTEM`
 * @see [Wait for one process](../../docs/wait-for-one.md)
 */
export function identify(pid: number): ProcessIdentity | null {
  const found = lookUp(pid);
  if (found === 'none') checkAgainstPidMax(pid);
  return typeof found === 'string' ? null : found;
}

/** When it started, by the current wall clock; `null` if it belongs to another boot. @internal */
export function startOf({ startTicks, bootId: boot }: ProcessIdentity): Date | null {
  if (boot !== bootId()) return null;
  try {
    return processTable().startTime(startTicks);
  } catch {
    return null; // it cannot be found out
  }
}

/**
 * Like {@link identify}, but `null` only if the pid is unused. Threads and kernel threads exist,
 * but are not processes that you can wait for or stop.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_THREAD`, `ERR_EXITWATCH_KERNEL_THREAD`, and the errors of
 *   {@link identify}
 * @internal
 */
export function identifyOrNone(pid: number): ProcessIdentity | null {
  const found = lookUp(pid);
  if (found === 'none') {
    checkAgainstPidMax(pid);
    return null;
  }
  if (typeof found === 'string') throw absenceError(pid, found);
  return found;
}

/** Like {@link identify}, but returns the reason if there is no process. @internal */
export function lookUp(pid: number): ProcessIdentity | Absence {
  checkPid(pid);
  const found = lookUpOnce(pid) ?? lookUpOnce(pid) ?? 'thread';
  if (typeof found === 'string') return found;
  return identityOf(pid, found);
}

type Start = { startTicks: number; inode: number | null };

/** Of a process of this boot and pid namespace. @internal */
export function identityOf(pid: number, { startTicks, inode }: Start): ProcessIdentity {
  const boot = bootId();
  const namespace = pidNamespace();
  return {
    id: identityId(bootPrefix(boot, namespace), pid, inode, startTicks, 0),
    pid,
    startTicks,
    bootId: boot,
    inode,
    pidNamespace: namespace,
  };
}

type Found = Start | Absence;

/** `null`: the pid was just taken by a process; look again. */
function lookUpOnce(pid: number): Found | null {
  const byAddon = addonRefusal() === null ? lookUpByAddon(pid) : 'no-pidfd';
  const found = byAddon === 'no-pidfd' ? lookUpByTable(pid) : byAddon;
  return found === 'no-process' ? noneOrThread(pid) : found;
}

function lookUpByAddon(pid: number): Found | 'no-process' | 'no-pidfd' {
  let found;
  try {
    found = loadAddon().identify(pid);
  } catch (error) {
    const failure = translateFailure(error);
    if (failure instanceof ExitwatchError && failure.code === 'ERR_EXITWATCH_NO_PIDFD') {
      return 'no-pidfd';
    }
    throw failure;
  }
  if (found === undefined) return 'no-process';
  if (found.isKernelThread) return 'kernel-thread';
  return { startTicks: found.startTicks, inode: found.inode === 0 ? null : found.inode };
}

/** How often to look at a process that is changing, which it does briefly during exit and exec. */
const LOOKS = 10;

function lookUpByTable(pid: number): Found {
  let lookup = processTable().lookNow(pid);
  for (let i = 1; i < LOOKS && lookup === 'unknown'; i++) lookup = processTable().lookNow(pid);
  if (lookup === null && signalZero(pid) === 'gone') return 'none';
  if (lookup === null || lookup === 'unknown') throw hidden(pid);
  if (lookup.isKernelThread) return 'kernel-thread';
  const found = { startTicks: lookup.startTicks ?? 0, inode: null };
  if (process.platform !== 'linux') return found;
  // /proc also has threads under their ids, although it does not list them.
  const group = threadGroupOf(pid);
  if (group === pid) return found;
  if (group !== null) return 'thread';
  if (signalZero(pid) === 'gone') return 'none';
  throw hidden(pid);
}

function hidden(pid: number): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_NO_PROC', `/proc hides pid ${pid} from this process`);
}

/**
 * Why there is no process: the pid is unused, or belongs to a thread. For a thread, pidfd_open(2)
 * fails with ENOENT on Linux 6.18; on older kernels with EINVAL, which it also does for a process
 * that is just exiting. Signal 0 reaches threads as well as processes. `null`: a process has the
 * pid by now.
 */
function noneOrThread(pid: number): Absence | null {
  if (signalZero(pid) === 'gone') return 'none';
  if (threadGroupOf(pid) === pid) return null;
  return signalZero(pid) === 'gone' ? 'none' : 'thread';
}

/** The pidfs inode of a process that exists; `null` before Linux 6.9. @internal */
export function inodeOf(pid: number): number | null {
  const found = lookUp(pid);
  return typeof found === 'string' ? null : found.inode;
}

/**
 * Check only absent pids: kernel.pid_max can be lowered while processes above it are alive.
 * @internal
 */
export function checkAgainstPidMax(pid: number): void {
  if (process.platform !== 'linux') return;
  const pidMax = Number(readFileSync('/proc/sys/kernel/pid_max', 'latin1'));
  if (pid <= pidMax) return;
  throw new ExitwatchError(
    'ERR_EXITWATCH_INVALID_PID',
    `pid ${pid} exceeds kernel.pid_max, which is ${pidMax}`,
  );
}

function isInode(value: unknown): value is number | null {
  return value === null || (Number.isSafeInteger(value) && (value as number) > 0);
}

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  return typeof value === 'number' || value == null ? String(value) : `a ${typeof value}`;
}
