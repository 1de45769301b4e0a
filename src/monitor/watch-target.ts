import { ExitwatchError } from '../common/errors.js';
import type { ExitEvent } from '../events/exit-event.js';
import { unknownExit } from '../events/unknown-exit.js';
import { bootId } from '../identity/boot-id.js';
import { absenceError } from '../identity/not-a-process.js';
import { processTable } from '../identity/platform-table.js';
import {
  type ProcessIdentity,
  checkAgainstPidMax,
  checkIdentity,
  checkPid,
  isSameProcess,
  lookUp,
  pidNamespace,
} from '../identity/process-identity.js';
import type { StoredWatch } from '../memory/watch-log.js';
import { addonRefusal } from '../native/load-addon.js';
import type { ExitSource, WatchedPid } from '../sources/exit-source.js';

import type { PendingWatch } from './exit-watch.js';
import type { WatchRegistry } from './watch-registry.js';

/** A new watch; `gone`: the event for it, if its process was gone already. */
type NewWatch = { watch: PendingWatch; gone: ExitEvent | null };

/** Stores a watch before it is armed, and forgets one that could not be armed. */
export interface WatchStore {
  add(identity: ProcessIdentity): StoredWatch;
  forget(stored: StoredWatch): void;
}

/** Watches a process, or joins those that watch it. For the errors see {@link ExitMonitor.watch}. */
export function armWatch(
  target: number | ProcessIdentity,
  watches: WatchRegistry,
  sources: { current: ExitSource | undefined; open: () => ExitSource },
  { key, store }: { key: string | null; store: WatchStore | null },
): NewWatch {
  const direct =
    typeof target === 'number' && store === null
      ? watchPid(target, watches, sources.current)
      : null;
  if (direct !== null) {
    const { identity, armed } = direct;
    const label = { key, stored: null };
    return { watch: watches.add(identity, armed === 'with-pidfd', true, label), gone: null };
  }
  const { identity: found, isThere } = findTarget(target);
  const identity = (isThere ? watches.identityOf(found) : undefined) ?? found;
  const stored = store?.add(identity) ?? null;
  try {
    const label = { key, stored };
    const joined = watches.join(identity, label);
    if (joined !== undefined) return { watch: joined, gone: null };
    const armed = isThere ? sources.open().watch(identity) : 'gone';
    const isGone = armed === 'gone';
    if (isGone && typeof target === 'number') throw absenceError(target, 'none');
    const watch = watches.add(identity, armed === 'with-pidfd', !isGone, label);
    return { watch, gone: isGone ? goneBeforeWatch(identity) : null };
  } catch (error) {
    if (stored !== null) store?.forget(stored);
    throw error;
  }
}

/** The usual case, which opens the process only once. `null`: look at it more closely. */
function watchPid(
  pid: number,
  watches: WatchRegistry,
  source: ExitSource | undefined,
): WatchedPid | null {
  checkPid(pid);
  if (pid === process.pid || watches.hasPid(pid)) return null;
  return source?.watchPid?.(pid) ?? null;
}

/** Finds the process to watch, and whether it still exists. */
function findTarget(target: number | ProcessIdentity): {
  identity: ProcessIdentity;
  isThere: boolean;
} {
  if (typeof target === 'object') checkNamespace(target);
  const pid = typeof target === 'object' ? target.pid : target;
  const found = lookUp(pid);
  if (typeof target === 'object' && !(typeof found === 'object' && isSameProcess(found, target))) {
    return { identity: target, isThere: false };
  }
  if (found === 'none') checkAgainstPidMax(pid);
  if (typeof found === 'string') throw absenceError(pid, found);
  if (pid === process.pid) {
    throw new ExitwatchError('ERR_EXITWATCH_INVALID_PID', 'a process cannot watch itself end');
  }
  // If pidfd_open(2) is now forbidden, an identity made earlier has the inode and is better.
  const knowsMore = typeof target === 'object' && target.inode !== null && found.inode === null;
  return { identity: knowsMore ? target : found, isThere: true };
}

function checkNamespace(target: ProcessIdentity): void {
  checkIdentity(target);
  if (target.bootId !== bootId() || target.pidNamespace === pidNamespace()) return;
  throw new ExitwatchError(
    'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE',
    `pid ${target.pid} belongs to another pid namespace`,
  );
}

/** The exit event of a process of which only the identity is known. */
export function goneBeforeWatch(identity: ProcessIdentity): ExitEvent {
  // The source that looked the process up.
  const source = addonRefusal() === null ? 'pidfd' : 'poll';
  const startedAt =
    identity.bootId === bootId() && identity.startTicks !== 0
      ? processTable().startTime(identity.startTicks)
      : null;
  const exitedAt = new Date();
  // It exited at some time after its start, which may have been in an earlier boot.
  const uncertaintyMs =
    startedAt === null ? Number.MAX_SAFE_INTEGER : exitedAt.getTime() - startedAt.getTime();
  const { id, pid } = identity;
  return unknownExit({ id, pid, startedAt, exitedAt, uncertaintyMs, source }, 'gone-before-watch');
}
