import { processTable } from '../identity/platform-table.js';
import type { ProcessRow } from '../identity/process-table.js';

import type { Cgroup } from './cgroup.js';

/** What is known about a tree when its cgroup is judged. */
export interface KnownTree {
  /** `null`: it is gone. */
  root: ProcessRow | null;
  rows: ReadonlyMap<number, ProcessRow>;
  isMember: (pid: number) => boolean;
  /** Whether this is an ancestor of the root, ourselves, or one of our ancestors. */
  isSpared: (row: ProcessRow) => boolean;
}

/**
 * Whether a cgroup contains the tree and nothing else. It may also contain orphans that only the
 * tree can have started: the root's parent is alive outside the cgroup, so it has put the root into
 * it, and the orphans started after the root.
 */
export function isOwn(cgroup: Cgroup, tree: KnownTree): boolean {
  const parent = tree.rows.get(tree.root?.parentPid ?? 0);
  const begin = tree.root?.startTicks ?? Infinity;
  return isEach(cgroup, tree, (row, pids) => {
    const isPutThere = parent !== undefined && parent.pid > 1 && !pids.includes(parent.pid);
    return isPutThere && row.parentPid === 1 && (row.startTicks ?? 0) >= begin;
  });
}

/**
 * Whether a cgroup that belonged to the tree alone still does: a new process in it was forked
 * there, unless its parent is outside the cgroup and not an ancestor of the root.
 */
export function isStillOwn(cgroup: Cgroup, tree: KnownTree): boolean {
  return isEach(cgroup, tree, (row) => {
    const parent = lookNow(row.parentPid ?? 0);
    return row.parentPid === 1 || parent === undefined || tree.isSpared(parent);
  });
}

/** Whether each process of a cgroup is a member, a child of a process in it, or `isOurs`. */
function isEach(
  cgroup: Cgroup,
  { rows, isMember, isSpared }: KnownTree,
  isOurs: (row: ProcessRow, pids: readonly number[]) => boolean,
): boolean {
  const pids = cgroup.processes();
  if (pids === null) return false;
  return pids.every((pid) => {
    // 0 is a process outside of our pid namespace.
    if (pid <= 1) return false;
    const row = rows.get(pid) ?? lookNow(pid);
    if (row === undefined) return true; // it has exited in the meantime
    if (isSpared(row)) return false;
    return isMember(pid) || pids.includes(row.parentPid ?? 0) || isOurs(row, pids);
  });
}

/** `undefined`: it does not exist, or is hidden. @internal */
export function lookNow(pid: number): ProcessRow | undefined {
  const lookup = pid > 0 ? processTable().lookNow(pid) : null;
  return lookup === null || lookup === 'unknown' ? undefined : lookup;
}
