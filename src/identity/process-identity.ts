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
 * Which process is meant: a pid alone is soon another's. Plain data, so that it survives JSON, a
 * file and a restart.
 */
export type ProcessIdentity = {
  /** Names this process and no other; compare these. */
  id: string;
  pid: number;
  /**
   * When it started. On Linux in clock ticks since boot: field 22 of proc_pid_stat(5). Elsewhere in
   * hundredths of a second since 1970, as far as ps tells it: to the second; 0 where nothing tells it
   * (Windows), and a reused pid is not noticed.
   */
  startTicks: number;
  /** The boot it belongs to: on Linux /proc/sys/kernel/random/boot_id. */
  bootId: string;
  /**
   * Its inode in pidfs, which no two processes of a boot share; `null` before Linux 6.9, elsewhere,
   * without the addon, and while pidfd_open(2) is forbidden.
   */
  inode: number | null;
  /** The inode of the pid namespace that its pid is of; `null`: the host's. */
  pidNamespace: number | null;
};

/** The largest pid that Linux can give (PID_MAX_LIMIT). */
const PID_LIMIT = 4_194_304;

/**
 * The id of a process by the best that is known of it: its inode, else its start; of a process that
 * was seen only to end, its end. `boot` is what {@link bootPrefix} makes of its boot.
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

/** Whether it is by its end alone that the id names a process. @internal */
export function isIdOfEnd(id: string): boolean {
  return /-x\d+$/.test(id);
}

/** What ids have of the boot; and of the pid namespace, where it is not the host's. */
export function bootPrefix(boot: string, namespace: number | null): string {
  const prefix = boot.replaceAll('-', '').slice(0, 12);
  return namespace === null ? prefix : `${prefix}n${namespace}`;
}

let ownPidNamespace: number | null | undefined;

/** The inode of our pid namespace; `null`: it is the host's, or cannot be told. @internal */
export function pidNamespace(): number | null {
  if (ownPidNamespace === undefined) {
    const inode = namespaceInode('pid');
    ownPidNamespace = inode === HOST_NAMESPACE.pid ? null : inode;
  }
  return ownPidNamespace;
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID` unless this can be a process's id. */
export function checkPid(pid: unknown): asserts pid is number {
  if (Number.isInteger(pid) && (pid as number) > 0 && (pid as number) <= PID_LIMIT) return;
  throw new ExitwatchError(
    'ERR_EXITWATCH_INVALID_PID',
    `a pid is an integer from 1 to ${PID_LIMIT}, not ${describe(pid)}`,
  );
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_IDENTITY` unless {@link identify} can have made it. */
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
    'it is no identity of a process, as identify() makes them',
  );
}

/** Whether both are of one process, as far as both know. */
export function isSameProcess(a: ProcessIdentity, b: ProcessIdentity): boolean {
  if (a.bootId !== b.bootId || a.pid !== b.pid) return false;
  const { startTolerance } = processTable();
  if (Math.abs(a.startTicks - b.startTicks) > startTolerance) return false;
  if (a.pidNamespace !== b.pidNamespace) return false;
  return a.inode === null || b.inode === null || a.inode === b.inode;
}

/**
 * Tells which process has this pid now; `null` if none has: nobody has the pid, or a thread that is not
 * its process's first, or a kernel thread. So `null` does not mean that the pid is free: `isAlive()` and
 * `stop()` of `exitwatch/process` tell a thread from nobody. A zombie still has an identity.
 * Without the addon or pidfds, and on other systems than Linux, its inode is not known, and so its id is
 * another.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_NO_PROC`,
 *   `ERR_EXITWATCH_NO_PS`, `ERR_EXITWATCH_SYSTEM`
 */
export function identify(pid: number): ProcessIdentity | null {
  const found = lookUp(pid);
  if (found === 'none') checkAgainstPidMax(pid);
  return typeof found === 'string' ? null : found;
}

/** When it started, by the clock as it is now; `null`: in another boot of this host. @internal */
export function startOf({ startTicks, bootId: boot }: ProcessIdentity): Date | null {
  if (boot !== bootId()) return null;
  try {
    return processTable().startTime(startTicks);
  } catch {
    return null; // nobody can tell
  }
}

/**
 * {@link identify}, but `null` only if nobody has the pid. A thread, or a kernel thread, is there, and is
 * no process that could be waited for or stopped.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_THREAD`, `ERR_EXITWATCH_KERNEL_THREAD`, and what
 *   {@link identify} throws
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

/** {@link identify}, with the reason where there is none. @internal */
export function lookUp(pid: number): ProcessIdentity | Absence {
  checkPid(pid);
  const found = lookUpOnce(pid) ?? lookUpOnce(pid) ?? 'thread';
  if (typeof found === 'string') return found;
  const boot = bootId();
  const namespace = pidNamespace();
  const { startTicks, inode } = found;
  return {
    id: identityId(bootPrefix(boot, namespace), pid, inode, startTicks, 0),
    pid,
    startTicks,
    bootId: boot,
    inode,
    pidNamespace: namespace,
  };
}

type Found = { startTicks: number; inode: number | null } | Absence;

/** `null`: a process has the pid that it did not have a moment before. */
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

/** How often a process is looked at that is changing, as it does for a moment when it ends or calls exec. */
const LOOKS = 10;

function lookUpByTable(pid: number): Found {
  let lookup = processTable().lookNow(pid);
  for (let i = 1; i < LOOKS && lookup === 'unknown'; i++) lookup = processTable().lookNow(pid);
  if (lookup === null && signalZero(pid) === 'gone') return 'none';
  if (lookup === null || lookup === 'unknown') throw hidden(pid);
  if (lookup.isKernelThread) return 'kernel-thread';
  const found = { startTicks: lookup.startTicks ?? 0, inode: null };
  if (process.platform !== 'linux') return found;
  // /proc has threads by their ids, too, although it does not list them.
  const group = threadGroupOf(pid);
  if (group === pid) return found;
  if (group !== null) return 'thread';
  if (signalZero(pid) === 'gone') return 'none';
  throw hidden(pid);
}

function hidden(pid: number): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_NO_PROC', `pid ${pid} is hidden from this process`);
}

/**
 * Why there is no process: nobody has the pid, or a thread has. To a thread pidfd_open(2) says ENOENT on
 * Linux 6.18; older kernels say EINVAL, also to a process that ends just then. Signal 0 reaches a thread
 * as it does a process. `null`: by now, a process has the pid.
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

/** The limit can be lowered while processes above it live: for absent ones only. @internal */
export function checkAgainstPidMax(pid: number): void {
  if (process.platform !== 'linux') return;
  const pidMax = Number(readFileSync('/proc/sys/kernel/pid_max', 'latin1'));
  if (pid <= pidMax) return;
  throw new ExitwatchError(
    'ERR_EXITWATCH_INVALID_PID',
    `pid ${pid} is beyond kernel.pid_max, ${pidMax}`,
  );
}

function isInode(value: unknown): value is number | null {
  return value === null || (Number.isSafeInteger(value) && (value as number) > 0);
}

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  return typeof value === 'number' || value == null ? String(value) : `a ${typeof value}`;
}
