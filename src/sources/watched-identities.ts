import type { ProcessIdentity } from '../identity/process-identity.js';

/** What is known about a process; `inode` is `null` if unknown. */
type Known = Pick<ProcessIdentity, 'pid' | 'startTicks' | 'inode'>;

/**
 * The identities under watch, found by whatever is known about a process. An identity made while
 * pidfd_open(2) was forbidden lacks the inode, so its id differs from the one in the kernel's
 * record.
 */
export class WatchedIdentities {
  readonly #byPid = new Map<number, ProcessIdentity[]>();

  /** The number of pids. */
  get size(): number {
    return this.#byPid.size;
  }

  has(pid: number): boolean {
    return this.#byPid.has(pid);
  }

  of(known: Known): ProcessIdentity | undefined {
    return this.#byPid.get(known.pid)?.find((identity) => isSame(identity, known));
  }

  add(identity: ProcessIdentity): void {
    const others = this.#byPid.get(identity.pid);
    if (others === undefined) this.#byPid.set(identity.pid, [identity]);
    else others.push(identity);
  }

  delete({ pid, id }: ProcessIdentity): void {
    const left = this.#byPid.get(pid)?.filter((identity) => identity.id !== id) ?? [];
    if (left.length > 0) this.#byPid.set(pid, left);
    else this.#byPid.delete(pid);
  }

  clear(): void {
    this.#byPid.clear();
  }
}

function isSame(a: Known, b: Known): boolean {
  if (a.inode !== null && b.inode !== null) return a.inode === b.inode;
  return a.startTicks === b.startTicks;
}

/** In the form that identities use. */
export function knownOf({
  pid,
  startTicks,
  inode,
}: {
  pid: number;
  startTicks: number;
  inode: number;
}) {
  return { pid, startTicks, inode: inode === 0 ? null : inode };
}
