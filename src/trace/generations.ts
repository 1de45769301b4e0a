import type { SignalSender } from '../events/signal-event.js';
import type { SignalName } from '../events/wait-status.js';
import { SignalFlag } from '../native/abi.js';
import type { TracedSignal } from '../native/signal-records.js';

import { type Siginfo, carries, isForgeable, mayBeInjected, namesSender } from './siginfo.js';
import { isAmbiguous } from './signal-sender.js';

/** A signal and its sender. */
export interface Seen {
  timeNs: number;
  flags: number;
  senderPid: number;
  senderThread: number;
  senderStart: number;
  sender: SignalSender;
}

/** A signal that was generated for a process. */
interface Generation extends Siginfo {
  /** The thread that it was sent to; 0: the whole process. */
  thread: number;
  /** `null`: the sender cannot be determined; a debugger may be involved. */
  seen: Seen | null;
}

const FIRST_REAL_TIME = 32;

/** Generations to keep per signal, not counting repetitions by one sender. */
const MOST = 64;

/**
 * The signals generated for one process, and which of them its threads took when it was killed.
 *
 * A standard signal is pending at most once per process and once per thread, so a second generation
 * proves that the first was taken. Without a debugger, a thread can therefore only have taken the
 * latest one in either queue. A debugger can hold a signal back, let an earlier one pass, drop it,
 * or inject its own; if an injected signal is blocked, the kernel generates it again in the name of
 * the process itself. Then the siginfo shows which signal was taken; if several match, no sender is
 * named.
 */
export class Generations {
  readonly #generated = new Map<number, Generation[]>();
  /** Signals with too many generations to keep them all. */
  readonly #overflown = new Set<number>();
  readonly #taken: { timeNs: number; signal: SignalName; seen: Seen | null }[] = [];
  readonly #deadly = new Map<SignalName, Seen | null>();

  /**
   * `seen`: the sender according to the signal. Returns `false` if it may be another one, because a
   * debugger reinjected the signal.
   */
  add(signal: TracedSignal, seen: Seen): boolean {
    const { flags, code, info, senderPidThere } = signal;
    const earlier = this.#generated.get(signal.signal) ?? [];
    const whose = whoseAgain(signal, earlier);
    const generation: Generation = {
      ...{ flags, code, info, senderPidThere },
      thread: (flags & SignalFlag.group) === 0 ? signal.thread : 0,
      seen: whose === undefined ? seen : whose,
    };
    const repeated = earlier.find((each) => isRepeated(each, generation));
    if (repeated !== undefined) generation.flags |= repeated.flags & SignalFlag.ptraced;
    const kept = earlier.filter((each) => each !== repeated);
    if (kept.length >= MOST) {
      kept.shift();
      this.#overflown.add(signal.signal);
    }
    this.#generated.set(signal.signal, [...kept, generation]);
    const name = seen.sender.signal;
    if ((flags & SignalFlag.deadly) !== 0 && !this.#deadly.has(name)) {
      this.#deadly.set(name, generation.seen);
    }
    return whose === undefined;
  }

  /** `byDebugger`: the sender if the thread's debugger injected the signal. */
  take(taken: TracedSignal, byDebugger: Seen): void {
    const generated = this.#generated.get(taken.signal) ?? [];
    const isComplete = !this.#overflown.has(taken.signal);
    const seen = whoseTaken(taken, generated, isComplete, byDebugger);
    this.#taken.push({ timeNs: taken.timeNs, signal: byDebugger.sender.signal, seen });
    if (this.#taken.length > MOST) this.#taken.shift();
  }

  /** Signals were lost: what was taken so far is certain, what is taken later is not. */
  doubt(): void {
    this.#generated.clear();
  }

  /** The signal that killed the process; `null` also if it may have had several senders. */
  killer(signal: SignalName, endNs: number): Seen | null {
    const deadly = this.#deadly.get(signal);
    const taken = this.#taken.filter((each) => each.signal === signal && each.timeNs <= endNs);
    const candidates = taken.map(({ seen }) => seen);
    if (deadly !== undefined) candidates.push(deadly);
    const [first = null, ...others] = candidates;
    return first !== null && others.every((each) => isSameSender(each, first)) ? first : null;
  }
}

/**
 * The original sender of a signal that a thread only seems to send to itself, because a debugger
 * reinjected it. `undefined`: not reinjected; `null`: cannot be determined.
 */
function whoseAgain(signal: TracedSignal, earlier: readonly Generation[]): Seen | null | undefined {
  if (isAmbiguous(signal)) return null;
  const has = (flag: SignalFlag) => (signal.flags & flag) !== 0;
  if (!has(SignalFlag.toItself) || has(SignalFlag.noInfo)) return undefined;
  // A signal injected at a system call stop (ptrace_report_syscall()) comes from the kernel.
  if (has(SignalFlag.privileged)) {
    return has(SignalFlag.ptraced) && !has(SignalFlag.group) ? null : undefined;
  }
  const isOwn = namesSender(signal);
  const mayBeAgain = has(SignalFlag.ptraced) && has(SignalFlag.blocked);
  if (isOwn && !mayBeAgain) return undefined;
  const same = earlier.filter((each) => carries(each, signal));
  if (same.length === 0) return isOwn ? undefined : null;
  // Only a debugger can reinject it; otherwise the process forged it.
  if (!mayBeAgain) return null;
  const { seen } = same.at(-1) ?? { seen: null };
  if (isForgeable(signal.code) && seen?.senderPid !== signal.pid) return null;
  return same.every((each) => isSameSender(each.seen, seen)) ? seen : null;
}

function whoseTaken(
  taken: TracedSignal,
  generated: readonly Generation[],
  isComplete: boolean,
  byDebugger: Seen,
): Seen | null {
  const isPtraced = (of: Siginfo) => (of.flags & SignalFlag.ptraced) !== 0;
  const reachable = generated.filter(({ thread }) => thread === 0 || thread === taken.thread);
  let candidates = reachable.filter((each) => carries(each, taken));
  if (taken.signal < FIRST_REAL_TIME && !isPtraced(taken) && !reachable.some(isPtraced)) {
    const last = [0, taken.thread].map((queue) =>
      reachable.findLast(({ thread }) => thread === queue),
    );
    candidates = candidates.filter((each) => last.includes(each));
  } else if (!isComplete) {
    return null;
  }
  const one = candidates.at(-1);
  if (one === undefined) {
    // Nothing sent it, and it names the debugger, which injected it. That is not certain if the
    // debugger's pid is not visible to the process.
    return isPtraced(taken) && mayBeInjected(taken) && taken.senderPidThere !== 0
      ? byDebugger
      : null;
  }
  const { seen } = one;
  if (seen === null || !candidates.every((each) => isSameSender(each.seen, seen))) return null;
  if (!mayBeInjected(taken)) return seen;
  // Either the debugger injected it, or it passed on what was sent: name the sender only if that is
  // the debugger in both cases.
  if (isPtraced(taken)) return seen.senderPid === taken.senderPid ? seen : null;
  // If it was ptraced when this was sent, a detaching debugger may have injected it in the parent's
  // name.
  return candidates.some(isPtraced) ? null : seen;
}

/** Whether it makes no difference which of the two was taken. */
function isRepeated(a: Generation, b: Generation): boolean {
  const form = SignalFlag.noInfo | SignalFlag.privileged | SignalFlag.infoLost;
  return (
    a.thread === b.thread &&
    a.code === b.code &&
    (a.flags & form) === (b.flags & form) &&
    a.senderPidThere === b.senderPidThere &&
    a.info.every((word, i) => word === b.info[i]) &&
    isSameSender(a.seen, b.seen)
  );
}

function isSameSender(a: Seen | null, b: Seen | null): boolean {
  if (a === null || b === null) return false;
  if (a.sender.pid === null || b.sender.pid === null) return a.sender.origin === b.sender.origin;
  return a.senderPid === b.senderPid && a.senderStart === b.senderStart;
}
