import type { ProcessIdentity } from '../identity/process-identity.js';

/** What somebody knows of a process; the inode is `null` where it is not known. */
type Known = Pick<ProcessIdentity, 'pid' | 'startTicks' | 'inode'>;

/**
 * The identities under watch. Each is found by what anybody knows of its process: one that was made while
 * pidfd_open(2) was forbidden lacks the inode, and so its id is another than the kernel's record of the
 * same process would make.
 */
export class WatchedIdentities {
  readonly #byPid = new Map<number, ProcessIdentity[]>();

  /** How many pids there are. */
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
