import { readlinkSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import { ExitwatchError } from '../common/errors.js';
import { processTable } from '../identity/platform-table.js';
import { isSameProcess, lookUp, type ProcessIdentity } from '../identity/process-identity.js';
import type { ProcessRow, Lookup } from '../identity/process-table.js';

import { Cgroup } from './cgroup.js';
import { HeldNumbers } from './held-numbers.js';
import { PidCursor, type PidMark } from './pid-cursor.js';
import { isOwn, isStillOwn, lookNow, type KnownTree } from './tree-cgroup.js';

/**
 * What linked a process to its tree when it was found.
 *
 * @see [A process and all that belong to it](../../docs/stop-safely.md#a-process-and-all-that-belong-to-it)
 */
export type TreeLink = 'target' | 'parent' | 'session' | 'group' | 'cgroup';

/** How often a process is looked at that cannot be read: within some 30 ms. */
const LOOKS = 5;

/** A process that belongs to a tree. */
export interface TreeMember {
  readonly identity: ProcessIdentity;
  readonly name: string | null;
  readonly foundBy: TreeLink;
}

/**
 * A process and its tree: its descendants, its session if it leads one, its process group if it
 * leads one, and its cgroup if that contains nothing else. Members are identities, so a process
 * stays a member after its parents are gone. An id alone never makes a process a member if the
 * kernel may have reused it since it was last seen to belong to one.
 */
export class ProcessTree {
  readonly root: TreeMember;
  readonly #members = new Map<string, TreeMember>();
  readonly #cursor = new PidCursor();
  readonly #numbers = new HeldNumbers(this.#cursor);
  /** Ancestors of the root, ourselves and our ancestors, by pid and start. */
  readonly #spared = new Set<string>();
  /** Members that existed at the last scan, by pid and start. */
  #present = new Set<string>();
  /** `undefined`: not determined yet. */
  #cgroup: Cgroup | null | undefined;
  #isIncomplete = false;

  private constructor(root: ProcessIdentity, row: ProcessRow, mark: PidMark) {
    this.root = { identity: root, name: row.name, foundBy: 'target' };
    this.#add(this.root, row, mark);
  }

  /**
   * The tree of a process that exists, even as a zombie; `null` if it does not exist any more.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_NO_PROC` if processes and their parents cannot be read
   */
  static of(identity: ProcessIdentity): ProcessTree | null {
    checkProc();
    const mark = new PidCursor().mark();
    const row = processTable().lookNow(identity.pid);
    const root = lookUp(identity.pid);
    if (typeof root === 'string' || !isSameProcess(root, identity)) return null;
    if (row === null || row === 'unknown' || row.startTicks !== root.startTicks) throw noProc();
    return new ProcessTree(root, row, mark);
  }

  /** The cgroup that contains the tree and nothing else. */
  get cgroup(): Cgroup | null {
    return this.#cgroup ?? null;
  }

  /** Some processes could not be read and may be members. */
  get isIncomplete(): boolean {
    return this.#isIncomplete;
  }

  /** Scans once for new members; resolves with those found. */
  async scan(): Promise<readonly TreeMember[]> {
    const before = this.#cursor.mark();
    const rows = await this.#rowsOf(await processTable().list());
    this.#renew(rows, before);
    this.#spare(rows);
    const found = this.#follow(rows, before);
    this.#judgeCgroup(rows);
    if (this.#cgroup == null) return found;
    for (const pid of this.#cgroup.processes() ?? []) {
      const row = rows.get(pid) ?? lookNow(pid);
      const member = row === undefined ? null : this.#adopt(row, 'cgroup', before);
      if (member !== null) found.push(member);
    }
    return [...found, ...this.#follow(rows, before)];
  }

  /** Once the cgroup is shared, it counts as shared forever. */
  #judgeCgroup(rows: ReadonlyMap<number, ProcessRow>): void {
    if (this.#cgroup === null) return;
    const cgroup = this.#cgroup ?? Cgroup.of(this.root.identity.pid);
    const judge = this.#cgroup === undefined ? isOwn : isStillOwn;
    this.#cgroup = cgroup !== null && judge(cgroup, this.#known(rows)) ? cgroup : null;
  }

  async #rowsOf(lookups: ReadonlyMap<number, Lookup>): Promise<Map<number, ProcessRow>> {
    const rows = new Map<number, ProcessRow>();
    let unreadable: number[] = [];
    for (const [pid, lookup] of lookups) {
      if (lookup === 'unknown') unreadable.push(pid);
      else rows.set(pid, lookup);
    }
    // A process that is being released cannot be read until its last thread has had a processor.
    for (let i = 0; unreadable.length > 0 && i < LOOKS; i++) {
      if (i > 0) await setTimeout(2 ** i);
      unreadable = unreadable.filter((pid) => {
        const again = processTable().lookNow(pid);
        if (again !== 'unknown' && again !== null) rows.set(pid, again);
        return again === 'unknown';
      });
    }
    this.#isIncomplete = !lookups.has(1) || unreadable.length > 0;
    return rows;
  }

  /** Adds all processes linked to a member, then those linked to them, and so on. */
  #follow(rows: ReadonlyMap<number, ProcessRow>, before: PidMark): TreeMember[] {
    const found: TreeMember[] = [];
    const ours = childrenInOurGroup(rows);
    for (let hasMore = true; hasMore;) {
      hasMore = false;
      for (const row of rows.values()) {
        const link = this.#linkOf(row, rows, ours);
        const member = link === null ? null : this.#adopt(row, link, before);
        if (member === null) continue;
        found.push(member);
        hasMore = true;
      }
    }
    return found;
  }

  #linkOf(
    { parentPid, sessionId, groupId, pid }: ProcessRow,
    rows: ReadonlyMap<number, ProcessRow>,
    ours: ReadonlySet<number>,
  ): TreeLink | null {
    if (this.#numbers.has('process', parentPid)) return 'parent';
    if (this.#numbers.has('session', sessionId)) return 'session';
    if (!this.#numbers.has('group', groupId) || ours.has(pid)) return null;
    if (groupId === this.root.identity.pid) return 'group';
    // The group of a descendant: unrelated processes may have joined it. Accept only orphans, whose
    // parent is init or a spared ancestor (a subreaper).
    const parent = rows.get(parentPid ?? 0);
    return parentPid === 1 || (parent !== undefined && this.#spared.has(keyOf(parent)))
      ? 'group'
      : null;
  }

  /** Makes it a member if it is still the same process; `null` if not, or if it is one already. */
  #adopt(row: ProcessRow, link: TreeLink, before: PidMark): TreeMember | null {
    const { pid } = row;
    const key = keyOf(row);
    if (this.#present.has(key) || this.#spared.has(key)) return null;
    if (row.isDead || row.isKernelThread || pid === 1) return null;
    const mark = this.#cursor.mark();
    const found = lookUp(pid);
    if (typeof found === 'string' || this.#members.has(found.id)) return null;
    if (found.startTicks !== row.startTicks) return null;
    // Unless pids wrap around, the kernel does not reuse a pid within one tick.
    if (this.#cursor.mayHaveBegunAnew(before, mark) && !isAsSeen(found, row)) return null;
    if (link === 'cgroup' && this.#cgroup?.has(pid) !== true) return null;
    const member = { identity: found, name: row.name, foundBy: link };
    this.#add(member, row, mark);
    return member;
  }

  #add(member: TreeMember, row: ProcessRow, mark: PidMark): void {
    const { pid } = member.identity;
    this.#members.set(member.identity.id, member);
    this.#present.add(keyOf(row));
    this.#numbers.hold('process', pid, mark);
    this.#holdWhatItLeads(row, mark);
  }

  /** No process can join a session from outside: all of it descends from the leader. */
  #holdWhatItLeads({ pid, sessionId, groupId }: ProcessRow, mark: PidMark): void {
    if (sessionId === pid) this.#numbers.hold('session', pid, mark);
    if (groupId === pid) this.#numbers.hold('group', pid, mark);
  }

  /** Notes which members still exist, and drops ids that may have been reused. */
  #renew(rows: ReadonlyMap<number, ProcessRow>, before: PidMark): void {
    const now = this.#cursor.mark();
    const present: ProcessRow[] = [];
    for (const { identity } of this.#members.values()) {
      const row = rows.get(identity.pid);
      const found = row === undefined ? 'none' : lookUp(identity.pid);
      if (row !== undefined && typeof found === 'object' && found.id === identity.id) {
        present.push(row);
        this.#holdWhatItLeads(row, now);
      }
    }
    this.#present = new Set(present.map(keyOf));
    this.#numbers.renew(rows, present, before, now);
  }

  #spare(rows: ReadonlyMap<number, ProcessRow>): void {
    const ourselves = rows.get(process.pid);
    if (ourselves !== undefined) this.#spared.add(keyOf(ourselves));
    for (const row of [ourselves, this.#rootIn(rows)]) {
      for (const ancestor of ancestorsOf(row, rows)) this.#spared.add(keyOf(ancestor));
    }
  }

  /** `undefined`: it is gone. */
  #rootIn(rows: ReadonlyMap<number, ProcessRow>): ProcessRow | undefined {
    const row = rows.get(this.root.identity.pid);
    return row !== undefined && this.#present.has(keyOf(row)) ? row : undefined;
  }

  #known(rows: ReadonlyMap<number, ProcessRow>): KnownTree {
    return {
      root: this.#rootIn(rows) ?? null,
      rows,
      isMember: (pid) => this.#numbers.has('process', pid),
      isSpared: (row) => this.#spared.has(keyOf(row)),
    };
  }
}

/** Whether this is the process that was seen, with the same parent, session and group. */
function isAsSeen({ id, pid }: ProcessIdentity, seen: ProcessRow): boolean {
  const now = lookNow(pid);
  const found = lookUp(pid);
  return (
    typeof found === 'object' &&
    found.id === id &&
    now?.startTicks === seen.startTicks &&
    now.parentPid === seen.parentPid &&
    now.sessionId === seen.sessionId &&
    now.groupId === seen.groupId
  );
}

function checkProc(): void {
  try {
    if (process.platform === 'linux' && readlinkSync('/proc/self') === String(process.pid)) return;
  } catch {
    // /proc is not mounted
  }
  throw noProc();
}

function noProc(): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_NO_PROC',
    'cannot find the processes of a tree: /proc is missing, hides them, or belongs to another pid ' +
      'namespace',
  );
}

function keyOf({ pid, startTicks }: ProcessRow): string {
  return `${pid} ${startTicks ?? ''}`;
}

function ancestorsOf(
  row: ProcessRow | undefined,
  rows: ReadonlyMap<number, ProcessRow>,
): ProcessRow[] {
  const ancestors: ProcessRow[] = [];
  let parent = rows.get(row?.parentPid ?? 0);
  while (parent !== undefined && !ancestors.includes(parent)) {
    ancestors.push(parent);
    parent = rows.get(parent.parentPid ?? 0);
  }
  return ancestors;
}

/** Our own children inherit our group, which may be the root's too; they are not members. */
function childrenInOurGroup(rows: ReadonlyMap<number, ProcessRow>): Set<number> {
  const ourselves = rows.get(process.pid);
  const inGroup = [...rows.values()].filter(({ groupId }) => groupId === ourselves?.groupId);
  const isOurs = (row: ProcessRow) => ancestorsOf(row, rows).some(({ pid }) => pid === process.pid);
  return new Set(inGroup.filter(isOurs).map(({ pid }) => pid));
}
