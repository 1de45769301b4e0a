import { REQUESTS } from '../events/ended-by.js';
import { signalNumber } from '../events/wait-status.js';
import { SignalFlag } from '../native/abi.js';
import type { End } from '../native/kernel-records.js';
import type { TracedSignal } from '../native/signal-records.js';

/** How many signals to keep for each pid: events report 16. */
const MOST = 64;

interface Kept {
  signal: TracedSignal;
  /** When it was read, by performance.now(). */
  readMs: number;
  /** The process was told to have exited. */
  isOver: boolean;
  /** What a repetition has in common with it; made when it is needed. */
  key: string | null;
}

const REQUEST_NUMBERS: readonly number[] = REQUESTS.map(signalNumber);

/** Signals that processes were sent, by their pid, as long as an exit may need them. */
export class SignalsByPid {
  readonly #kept = new Map<number, Kept[]>();
  /** Pids with so many different signals that some were let go. */
  readonly #overflown = new Set<number>();

  add(signal: TracedSignal, readMs: number): void {
    const { pid } = signal;
    const kept = this.#kept.get(pid) ?? [];
    if (kept.length === 0) this.#kept.set(pid, kept);
    kept.push({ signal, readMs, isOver: false, key: null });
    if (kept.length <= MOST) return;
    const repeated = indexOfRepeated(kept);
    if (repeated === null) this.#overflown.add(pid);
    kept.splice(repeated ?? 0, 1);
  }

  of(pid: number): TracedSignal[] {
    return this.#kept.get(pid)?.map(({ signal }) => signal) ?? [];
  }

  /** Whether none of this pid's was let go because there were too many. */
  isWhole(pid: number): boolean {
    return !this.#overflown.has(pid);
  }

  /** The process has exited. Others may ask for its signals again, for as long as for any. */
  end(end: Identity): void {
    for (const kept of this.#kept.get(end.pid) ?? []) kept.isOver ||= isOf(kept.signal, end);
  }

  /** The process has exited, and nobody asks again. */
  forget(end: Identity): void {
    this.#keep(end.pid, ({ signal }) => !isOf(signal, end));
  }

  /**
   * Lets go of what was read before; of what a living process blocks, if it was read before `blockedMs`. The first and the
   * last of each request to a living process are kept until it ends.
   */
  letGo(beforeMs: number, blockedMs: number): void {
    for (const [pid, all] of this.#kept) {
      const lasting = lastingOf(all);
      this.#keep(pid, (kept) => {
        const { signal, readMs, isOver } = kept;
        const isBlocked = !isOver && (signal.flags & SignalFlag.blocked) !== 0;
        return lasting.has(kept) || readMs >= (isBlocked ? blockedMs : beforeMs);
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

/** The first and the last of each request that a pid's latest process was sent by others, and has not ignored. */
function lastingOf(all: readonly Kept[]): Set<Kept> {
  const latest = all.at(-1)?.signal;
  const isLasting = ({ signal, isOver }: Kept) =>
    !isOver &&
    latest !== undefined &&
    isOf(signal, latest) &&
    REQUEST_NUMBERS.includes(signal.signal) &&
    signal.senderPid !== signal.pid &&
    (signal.flags & (SignalFlag.taken | SignalFlag.ignored)) === 0;
  const requests = all.filter(isLasting);
  return new Set(
    REQUEST_NUMBERS.flatMap((number) => {
      const isOne = ({ signal }: Kept) => signal.signal === number;
      return [requests.find(isOne), requests.findLast(isOne)];
    }).filter((kept) => kept !== undefined),
  );
}

type Identity = Pick<End, 'pid' | 'inode' | 'startTicks'>;

/** A mark of the OOM killer may have the pid alone. */
function isOf(signal: TracedSignal, { inode, startTicks }: Identity): boolean {
  if (signal.inode !== 0 && inode !== 0) return signal.inode === inode;
  return signal.startTicks === 0 || signal.startTicks === startTicks;
}

/** The oldest one that says nothing which a later one does not say; `null`: there is none. */
function indexOfRepeated(kept: readonly Kept[]): number | null {
  const later = new Set<string>();
  let oldest = null;
  for (let at = kept.length - 1; at >= 0; at--) {
    const each = kept[at];
    if (each === undefined) continue;
    each.key ??= keyOf(each.signal);
    if (later.has(each.key)) oldest = at;
    later.add(each.key);
  }
  return oldest;
}

function keyOf(signal: TracedSignal): string {
  const { inode, startTicks, thread, code, flags, info, senderPid, senderStart, senderUid } =
    signal;
  return [
    ...[inode, startTicks, signal.signal, thread, code, flags, senderPid, senderStart, senderUid],
    ...info,
  ].join();
}
