import { readFileSync } from 'node:fs';

import { addonRefusal, loadAddon, translateFailure } from './addon.js';
import { bootId } from './boot-id.js';
import { ExitwatchError } from './errors.js';
import { HOST_NAMESPACE, namespaceInode } from './namespaces.js';
import { processTable } from './process-table/process-table.js';
import { signalZero } from './process-table/signal-zero.js';

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
    'not a process identity; identify(pid) makes one',
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
 * Tells which process has this pid now; `null` where none has: no such process, a thread that is not
 * its process's first, or a kernel thread. A zombie still has an identity.
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

/** When it started, by the clock as it is now; `null`: in another life of this host. @internal */
export function startOf({ startTicks, bootId: boot }: ProcessIdentity): Date | null {
  if (boot !== bootId()) return null;
  try {
    return processTable().startTime(startTicks);
  } catch {
    return null; // nobody can tell
  }
}

/** {@link identify}, with the reason where there is none. @internal */
export function lookUp(pid: number): ProcessIdentity | 'none' | 'kernel-thread' {
  checkPid(pid);
  const found = (addonRefusal() === null ? lookUpByAddon(pid) : null) ?? lookUpByTable(pid);
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

type LookUp = { startTicks: number; inode: number | null } | 'none' | 'kernel-thread';

/** `null` where the addon could not tell, for want of pidfds. */
function lookUpByAddon(pid: number): LookUp | null {
  let found;
  try {
    found = loadAddon().identify(pid);
  } catch (error) {
    const failure = translateFailure(error);
    if (failure instanceof ExitwatchError && failure.code === 'ERR_EXITWATCH_NO_PIDFD') return null;
    throw failure;
  }
  if (found === undefined) return 'none';
  if (found.isKernelThread) return 'kernel-thread';
  return { startTicks: found.startTicks, inode: found.inode === 0 ? null : found.inode };
}

/** How often a process is looked at that is changing, as it does for a moment when it ends or calls exec. */
const LOOKS = 10;

function lookUpByTable(pid: number): LookUp {
  let sight = processTable().lookNow(pid);
  for (let i = 1; i < LOOKS && sight === 'unknown'; i++) sight = processTable().lookNow(pid);
  if (sight === null && signalZero(pid) === 'gone') return 'none';
  if (sight === null || sight === 'unknown') {
    throw new ExitwatchError('ERR_EXITWATCH_NO_PROC', `pid ${pid} is hidden from this process`);
  }
  if (sight.isKernelThread) return 'kernel-thread';
  return isThread(pid) ? 'none' : { startTicks: sight.startTicks ?? 0, inode: null };
}

/** On Linux, /proc has threads by their ids, too, although it does not list them. */
function isThread(pid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return Number(/^Tgid:\t(\d+)$/m.exec(status)?.[1]) !== pid;
  } catch {
    return true; // it has ended meanwhile
  }
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
