import type { ProcessIdentity } from '../../identity/process-identity.js';
import { identityOf, inodeOf } from '../../identity/process-identity.js';

import type { Message } from './message.js';

/**
 * `'starting'`: its command was not executed yet. `'failed'`: it could not be. `'ended'`: its process
 * has ended, but others that it left behind may go on.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type RunState = 'starting' | 'running' | 'ended' | 'failed';

/**
 * What a keeper knows of something that it has started.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type KeeperRun = {
  id: string;
  state: RunState;
  pid: number | null;
  /** `null` before it is known, and of a run of an earlier boot. */
  identity: ProcessIdentity | null;
  /** By the wall clock. */
  startedAt: Date;
  /** Its cgroup's folder; `null`: it has a process of the keeper as its parent instead. */
  cgroup: string | null;
  /**
   * An earlier keeper started it and died. It goes on, but its status may be unknown: see
   * [what survives what](../../../docs/supervisor.md#what-survives-what).
   */
  isLost: boolean;
  /** A process of it may be alive. */
  hasMembers: boolean;
  /** It has sent `READY=1`. */
  isReady: boolean;
  /** It has sent `STOPPING=1`. */
  isStopping: boolean;
  /** What it has sent as `STATUS=`; untrusted. */
  statusText: string | null;
  /** How long ago it sent `READY=1` or `WATCHDOG=1`, in ms; `null`: never. */
  aliveAgoMs: number | null;
  /** How long its process has lived, by a clock that nobody sets; `null` if unknown. */
  livedMs: number | null;
  endedAt: Date | null;
  /** As waitpid(2) returns it; `null` before its end, and if it is unknown. */
  waitStatus: number | null;
  usage: RunUsage | null;
  /** Why it could not be started. */
  failure: RunFailure | null;
  /** Its end is on disk. `false` if the disk is full. */
  isStored: boolean;
};

/**
 * What a process and the children that it waited for have used.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type RunUsage = { maxRssBytes: number; userMs: number; systemMs: number };

/**
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type RunFailure = {
  /** What was attempted: `'exec'`, `'cwd'`, `'user'`, `'cgroup'`, `'stdout'`, … */
  step: string;
  /** errno(3). */
  errno: number;
};

/** @param previous what was known before: the identity of a process that is gone */
export function runOf(message: Message, previous: KeeperRun | undefined): KeeperRun {
  const state = (message.text('state') ?? 'starting') as RunState;
  const pid = message.number('pid');
  const endedMs = message.number('endedMs');
  const errno = message.number('errno');
  const peakKib = message.number('peakKib');
  return {
    id: message.text('run') ?? '',
    state,
    pid,
    identity: identityIn(message, pid, previous),
    startedAt: new Date(message.number('startedMs') ?? 0),
    cgroup: message.text('cgroup'),
    isLost: message.has('lost'),
    hasMembers: message.has('left'),
    isReady: message.has('ready'),
    isStopping: message.has('stopping'),
    statusText: message.text('text'),
    aliveAgoMs: message.number('aliveMs'),
    livedMs: message.number('livesMs') ?? message.number('livedMs'),
    endedAt: endedMs === null ? null : new Date(endedMs),
    waitStatus: message.number('status'),
    usage:
      peakKib === null
        ? null
        : {
            maxRssBytes: peakKib * 1024,
            userMs: (message.number('userUs') ?? 0) / 1000,
            systemMs: (message.number('systemUs') ?? 0) / 1000,
          },
    failure: errno === null ? null : { step: message.text('step') ?? '', errno },
    isStored: !message.has('unstored'),
  };
}

function identityIn(
  message: Message,
  pid: number | null,
  previous: KeeperRun | undefined,
): ProcessIdentity | null {
  const known = previous?.identity ?? null;
  const startTicks = message.number('startTicks');
  if (pid === null || startTicks === null) return known;
  const isKnown = known?.pid === pid && known.startTicks === startTicks;
  if (isKnown && known.inode !== null) return known;
  // The inode is of the process that has the pid now: only if that is this one.
  const bare = isKnown ? known : identityOf(pid, { startTicks, inode: null });
  const inode = message.text('state') === 'running' ? visibleInodeOf(pid) : null;
  return inode === null ? bare : identityOf(pid, { startTicks, inode });
}

/** `null` also if it cannot be seen: /proc may hide it, or we have no descriptor left to look with. */
function visibleInodeOf(pid: number): number | null {
  try {
    return inodeOf(pid);
  } catch {
    return null;
  }
}
