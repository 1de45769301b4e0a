import { processTable } from '../identity/platform-table.js';
import type { ProcessRow } from '../identity/process-table.js';

import type { Cgroup } from './cgroup.js';

/** What is known of a tree when its cgroup is judged. */
export interface KnownTree {
  /** `null`: it is gone. */
  root: ProcessRow | null;
  rows: ReadonlyMap<number, ProcessRow>;
  isMember: (pid: number) => boolean;
  /** Ancestors of the root, ourselves, and our ancestors. */
  isSpared: (row: ProcessRow) => boolean;
}

/**
 * Whether a cgroup holds the tree and nobody else. Beside members it may hold processes that have lost
 * their parents, if only the tree can have started them: somebody outside, who still lives, has put the
 * root into it, and they have begun later.
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
 * Whether a cgroup that was the tree's own still is: what is new in it was forked there, unless its
 * parent is somebody outside who is no ancestor of the root.
 */
export function isStillOwn(cgroup: Cgroup, tree: KnownTree): boolean {
  return isEach(cgroup, tree, (row) => {
    const parent = lookNow(row.parentPid ?? 0);
    return row.parentPid === 1 || parent === undefined || tree.isSpared(parent);
  });
}

/** Whether each process of a cgroup is a member, a child of one, or `isOurs`. */
function isEach(
  cgroup: Cgroup,
  { rows, isMember, isSpared }: KnownTree,
  isOurs: (row: ProcessRow, pids: readonly number[]) => boolean,
): boolean {
  const pids = cgroup.processes();
  if (pids === null) return false;
  return pids.every((pid) => {
    // 0 is somebody outside of our pid namespace.
    if (pid <= 1) return false;
    const row = rows.get(pid) ?? lookNow(pid);
    if (row === undefined) return true; // it has ended meanwhile
    if (isSpared(row)) return false;
    return isMember(pid) || pids.includes(row.parentPid ?? 0) || isOurs(row, pids);
  });
}

/** `undefined`: it is not there, or cannot be seen. @internal */
export function lookNow(pid: number): ProcessRow | undefined {
  const lookup = pid > 0 ? processTable().lookNow(pid) : null;
  return lookup === null || lookup === 'unknown' ? undefined : lookup;
}
