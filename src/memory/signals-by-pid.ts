import { SignalFlag } from '../native/abi.js';
import type { End } from '../native/kernel-records.js';
import type { TracedSignal } from '../native/signal-records.js';

/** How many signals to keep for each pid: events report 16. */
const MOST = 64;

/** A signal, and when it was read, by performance.now(). */
interface Kept {
  signal: TracedSignal;
  readMs: number;
}

/** Signals that processes were sent, by their pid, as long as an exit may need them. */
export class SignalsByPid {
  readonly #kept = new Map<number, Kept[]>();
  /** Pids with so many different signals that some were let go. */
  readonly #overflown = new Set<number>();

  add(signal: TracedSignal, readMs: number): void {
    const { pid } = signal;
    const kept = this.#kept.get(pid);
    if (kept === undefined) {
      this.#kept.set(pid, [{ signal, readMs }]);
      return;
    }
    kept.push({ signal, readMs });
    if (kept.length <= MOST) return;
    const repeated = indexOfRepeated(kept);
    if (repeated < 0) this.#overflown.add(pid);
    kept.splice(Math.max(repeated, 0), 1);
  }

  of(pid: number): TracedSignal[] {
    return this.#kept.get(pid)?.map(({ signal }) => signal) ?? [];
  }

  /** Whether none of this pid's was let go because there were too many. */
  isWhole(pid: number): boolean {
    return !this.#overflown.has(pid);
  }

  /** The process has exited. */
  forget({ pid, inode, startTicks }: Pick<End, 'pid' | 'inode' | 'startTicks'>): void {
    this.#keep(pid, ({ signal }) => {
      if (signal.inode !== 0 && inode !== 0) return signal.inode !== inode;
      return signal.startTicks !== startTicks;
    });
  }

  /** Lets go of what was read before; of what a process blocks, if it was read before `blockedMs`. */
  letGo(beforeMs: number, blockedMs: number): void {
    for (const pid of this.#kept.keys()) {
      this.#keep(pid, ({ signal, readMs }) => {
        const isBlocked = (signal.flags & SignalFlag.blocked) !== 0;
        return readMs >= (isBlocked ? blockedMs : beforeMs);
      });
    }
  }

  #keep(pid: number, isKept: (kept: Kept) => boolean): void {
    const all = this.#kept.get(pid);
    if (all === undefined) return;
    const kept = all.filter(isKept);
    if (kept.length === all.length) return;
    if (kept.length > 0) {
      this.#kept.set(pid, kept);
      return;
    }
    this.#kept.delete(pid);
    this.#overflown.delete(pid);
  }
}

/** The oldest one that a later one repeats; mostly the latest does. */
function indexOfRepeated(kept: readonly Kept[]): number {
  for (let later = kept.length - 1; later > 0; later--) {
    const repeated = kept.findIndex((each, at) => at < later && isRepeated(each, kept[later]));
    if (repeated >= 0) return repeated;
  }
  return -1;
}

/** Whether a later signal says all that an earlier one does. */
function isRepeated({ signal: earlier }: Kept, later: Kept | undefined): boolean {
  const by = later?.signal;
  return (
    SAME.every((field) => earlier[field] === by?.[field]) &&
    earlier.info.every((word, at) => word === by?.info[at])
  );
}

const SAME = [
  ...(['inode', 'startTicks', 'signal', 'thread', 'code', 'flags'] as const),
  ...(['senderPid', 'senderStart', 'senderUid'] as const),
];
