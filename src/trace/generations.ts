import type { SignalSender } from '../events/signal-event.js';
import type { SignalName } from '../events/wait-status.js';
import { SignalFlag } from '../native/abi.js';
import type { TracedSignal } from '../native/signal-records.js';

import { type Siginfo, carries, isForgeable, mayBeInjected, namesSender } from './siginfo.js';
import { isAmbiguous } from './signal-sender.js';

/** A signal, and who sent it. */
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
  /** The thread that it was sent to; 0: to the process. */
  thread: number;
  /** `null`: whose it is cannot be told; a tracer may have had a hand in it. */
  seen: Seen | null;
}

const FIRST_REAL_TIME = 32;

/** Of one signal, but for those that a sender has only repeated. */
const MOST = 64;

/**
 * The signals that were generated for one process, and which of them its threads took to end it by.
 *
 * An ordinary signal waits once in the queue of the process and once in that of each thread: a second
 * generation proves that the first was taken. So of a process without a tracer, the last ones in both
 * queues are all that a thread may have taken. A tracer may hold a signal back, let an earlier one pass,
 * drop it, or inject one of its own; and what it injects while it is blocked is generated once more, in the
 * name of the process itself. What was taken is told by its siginfo then; where that leaves several,
 * nobody is named.
 */
export class Generations {
  readonly #generated = new Map<number, Generation[]>();
  /** Signals of which there were too many to keep them all. */
  readonly #overflown = new Set<number>();
  readonly #taken: { timeNs: number; signal: SignalName; seen: Seen | null }[] = [];
  readonly #deadly = new Map<SignalName, Seen | null>();

  /** `seen`: who sent it, by the signal itself. Whether that is so: `false` for one that came again. */
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
    if (repeated !== undefined) generation.flags |= repeated.flags & SignalFlag.traced;
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

  /** `byTracer`: who it is from, if the thread's tracer has injected it. */
  take(taken: TracedSignal, byTracer: Seen): void {
    const generated = this.#generated.get(taken.signal) ?? [];
    const isComplete = !this.#overflown.has(taken.signal);
    const seen = whoseTaken(taken, generated, isComplete, byTracer);
    this.#taken.push({ timeNs: taken.timeNs, signal: byTracer.sender.signal, seen });
    if (this.#taken.length > MOST) this.#taken.shift();
  }

  /** Some were lost: what was taken so far is known, what will be is not. */
  doubt(): void {
    this.#generated.clear();
  }

  /** By which signal it ended; `null` also where that may have been one of several. */
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
 * Whose signal it is that a thread seems to have sent to itself, while in truth a tracer has brought it
 * back: `undefined`: its own, or another process's; `null`: cannot be told.
 */
function whoseAgain(signal: TracedSignal, earlier: readonly Generation[]): Seen | null | undefined {
  if (isAmbiguous(signal)) return null;
  const has = (flag: SignalFlag) => (signal.flags & flag) !== 0;
  if (!has(SignalFlag.toItself) || has(SignalFlag.noInfo)) return undefined;
  // What a tracer has it take at a system call (ptrace_report_syscall()) comes from the kernel.
  if (has(SignalFlag.privileged)) {
    return has(SignalFlag.traced) && !has(SignalFlag.group) ? null : undefined;
  }
  const isOwn = namesSender(signal);
  const mayBeAgain = has(SignalFlag.traced) && has(SignalFlag.blocked);
  if (isOwn && !mayBeAgain) return undefined;
  const same = earlier.filter((each) => carries(each, signal));
  if (same.length === 0) return isOwn ? undefined : null;
  // Only under a tracer does it come again: otherwise the process has forged it.
  if (!mayBeAgain) return null;
  const { seen } = same.at(-1) ?? { seen: null };
  if (isForgeable(signal.code) && seen?.senderPid !== signal.pid) return null;
  return same.every((each) => isSameSender(each.seen, seen)) ? seen : null;
}

function whoseTaken(
  taken: TracedSignal,
  generated: readonly Generation[],
  isComplete: boolean,
  byTracer: Seen,
): Seen | null {
  const isTraced = (of: Siginfo) => (of.flags & SignalFlag.traced) !== 0;
  const reachable = generated.filter(({ thread }) => thread === 0 || thread === taken.thread);
  let candidates = reachable.filter((each) => carries(each, taken));
  if (taken.signal < FIRST_REAL_TIME && !isTraced(taken) && !reachable.some(isTraced)) {
    const last = [0, taken.thread].map((queue) =>
      reachable.findLast(({ thread }) => thread === queue),
    );
    candidates = candidates.filter((each) => last.includes(each));
  } else if (!isComplete) {
    return null;
  }
  const one = candidates.at(-1);
  if (one === undefined) {
    // Nobody sent it, and it names the tracer; unless that is outside of what the process sees.
    return isTraced(taken) && mayBeInjected(taken) && taken.senderPidThere !== 0 ? byTracer : null;
  }
  const { seen } = one;
  if (seen === null || !candidates.every((each) => isSameSender(each.seen, seen))) return null;
  if (!mayBeInjected(taken)) return seen;
  // The tracer's, or what the tracer was sent itself to pass on: that cannot be told apart.
  if (isTraced(taken)) return seen.senderPid === taken.senderPid ? seen : null;
  // It was traced when its parent sent this; a tracer that lets go may inject in the parent's name.
  return candidates.some(isTraced) ? null : seen;
}

/** Which of the two was taken makes no difference. */
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
