import type { SignalSender } from '../signal-event.js';
import type { SignalName } from '../wait-status.js';

import { CgroupPaths } from './cgroup-paths.js';
import { senderOf } from './signal-sender.js';
import { SignalFlag, type TracedSignal } from './signal-records.js';

/** What {@link SignalHistory.end} tells of a process that has ended. */
export interface SignalStory {
  /** Who sent the signal that ended it; `null` where none did, or none was seen. */
  sender: SignalSender | null;
  received: readonly SignalSender[];
  /** The OOM killer killed it; `null`: it has marked it, but may have found it dying. */
  oom: boolean | null;
  /** Some of this may be another's. */
  isDoubtful: boolean;
}

/** An end, as far as it matters here. */
export interface End {
  pid: number;
  /** 0 where not known. */
  inode: number;
  startTicks: number;
  /** CLOCK_MONOTONIC of the host; not before the end. */
  timeNs: number;
  /** `null` where no signal ended it. */
  signal: SignalName | null;
}

/** A signal, and who sent it. */
interface Seen {
  timeNs: number;
  flags: number;
  senderPid: number;
  sender: SignalSender;
}

/** Generations of one signal that were neither caught nor seen to kill. */
interface Pending {
  latest: Seen;
  /** They came from several, so that any of them may have been taken first. */
  isAmbiguous: boolean;
}

/** What is known of one process. */
interface Life {
  inode: number;
  startTicks: number;
  since: number;
  received: Seen[];
  /** By signal, what may have killed it, however long ago: it may have been blocked. */
  readonly toProcess: Map<SignalName, Pending>;
  readonly toThreads: Map<SignalName, Pending>;
  /** With this it began to die. */
  deadly: Seen | null;
  /** The OOM killer has marked it. */
  mark: { timeNs: number; byPid: number } | null;
  /** Ends were lost since: it may be over, and its pid another's. */
  isDoubtful: boolean;
}

const NOTHING: SignalStory = Object.freeze({
  sender: null,
  received: Object.freeze([]),
  oom: false,
  isDoubtful: false,
});

const DOUBT: SignalStory = Object.freeze({ ...NOTHING, oom: null, isDoubtful: true });

/** The OOM killer marks whom it has just killed. */
const MARK_NS = 1e9;

const FIRST_REAL_TIME = 32;

/** How far back, and how many, signals are offered. */
const RECEIVED_NS = 120e9;
const RECEIVED = 16;

/** Owners of one pid whose ends were not told yet. */
const LIVES = 64;

/** Keeps what was sent to processes until they end, and tells then what ended them. */
export class SignalHistory {
  /** By pid: its owners one after another, where ends are told later than signals. */
  readonly #lives = new Map<number, Life[]>();
  readonly #cgroups = new CgroupPaths();

  get isEmpty(): boolean {
    return this.#lives.size === 0;
  }

  /** `null`: no signal; the OOM killer has chosen the process. */
  add(signal: TracedSignal): SignalSender | null {
    const life = this.#lifeOf(signal);
    const { timeNs, flags, senderPid } = signal;
    if (signal.signal === 0) {
      life.mark = { timeNs, byPid: senderPid };
      return null;
    }
    const sender = senderOf(signal, this.#cgroups.path(signal.senderCgroup));
    const seen: Seen = { timeNs, flags, senderPid, sender };
    if ((flags & SignalFlag.deadly) !== 0) life.deadly ??= seen;
    if ((flags & SignalFlag.caught) === 0) keepPending(life, seen, signal.signal);
    if ((flags & SignalFlag.ignored) === 0) remember(life.received, seen);
    return sender;
  }

  /** Ends were lost: whose were not told may be over. */
  doubtLives(): void {
    for (const lives of this.#lives.values()) for (const life of lives) life.isDoubtful = true;
  }

  /** Signals were lost: what was pending may have been taken, and what killed may be another. */
  doubtSignals(): void {
    for (const lives of this.#lives.values()) {
      for (const life of lives) {
        life.toProcess.clear();
        life.toThreads.clear();
      }
    }
  }

  /**
   * The story of a process that has ended; forgets it unless it will be asked for again.
   */
  end(end: End, isAskedAgain: boolean): SignalStory {
    const lives = this.#lives.get(end.pid);
    if (lives === undefined) return NOTHING;
    const isEarlier = (life: Life) => life.since <= end.timeNs;
    let at = lives.findIndex((life) => isEarlier(life) && isSurelySame(life, end));
    if (at < 0) {
      at = lives.findIndex((life) => isEarlier(life) && isSame(life, end));
      if (lives[at]?.isDoubtful === true) return DOUBT;
    }
    const life = lives[at];
    if (life === undefined) return NOTHING;
    if (!isAskedAgain) {
      lives.splice(0, at + 1);
      if (lives.length === 0) this.#lives.delete(end.pid);
    }
    const killer = end.signal === null ? null : killerOf(life, end.signal, end.timeNs);
    return {
      sender: killer?.sender ?? null,
      received: life.received
        .filter(({ timeNs }) => timeNs <= end.timeNs && timeNs > end.timeNs - RECEIVED_NS)
        .map(({ sender }) => sender),
      oom: oomOf(life, killer),
      isDoubtful: false,
    };
  }

  /** Nobody will ask for this process any more. */
  forget({ pid, inode, startTicks }: Omit<End, 'timeNs' | 'signal'>): void {
    const lives = this.#lives.get(pid)?.filter((life) => !isSame(life, { inode, startTicks }));
    if (lives === undefined) return;
    if (lives.length === 0) this.#lives.delete(pid);
    else this.#lives.set(pid, lives);
  }

  #lifeOf({ pid, inode, startTicks, timeNs }: TracedSignal): Life {
    let lives = this.#lives.get(pid);
    if (lives === undefined) {
      lives = [];
      this.#lives.set(pid, lives);
    }
    const latest = lives.at(-1);
    if (latest !== undefined && isSame(latest, { inode, startTicks })) return latest;
    const life: Life = {
      inode,
      startTicks,
      since: timeNs,
      received: [],
      toProcess: new Map(),
      toThreads: new Map(),
      deadly: null,
      mark: null,
      isDoubtful: false,
    };
    lives.push(life);
    if (lives.length > LIVES) lives.shift(); // whose end was lost
    return life;
  }
}

type Identity = Pick<End, 'inode' | 'startTicks'>;

function isSame(a: Identity, b: Identity): boolean {
  if (a.inode !== 0 && b.inode !== 0) return a.inode === b.inode;
  return a.startTicks === 0 || b.startTicks === 0 || a.startTicks === b.startTicks;
}

/** By what both know, and that is something. */
function isSurelySame(a: Identity, b: Identity): boolean {
  if (a.inode !== 0 && b.inode !== 0) return a.inode === b.inode;
  return a.startTicks !== 0 && a.startTicks === b.startTicks;
}

/**
 * Keeps what waits to be taken. A second generation of an ordinary signal in one queue proves that the
 * first was taken; real-time signals queue, and each thread has a queue of its own.
 */
function keepPending(life: Life, seen: Seen, number: number): void {
  const isToProcess = (seen.flags & SignalFlag.group) !== 0;
  const queue = isToProcess ? life.toProcess : life.toThreads;
  const before = queue.get(seen.sender.signal);
  const queues = number >= FIRST_REAL_TIME || !isToProcess;
  const isAmbiguous =
    queues &&
    before !== undefined &&
    (before.isAmbiguous || before.latest.senderPid !== seen.senderPid);
  queue.set(seen.sender.signal, { latest: seen, isAmbiguous });
}

/** `null` also where it may have been one of several. */
function killerOf(life: Life, signal: SignalName, endNs: number): Seen | null {
  if (life.deadly?.sender.signal === signal) return life.deadly;
  const pending = [life.toProcess.get(signal), life.toThreads.get(signal)].filter(
    (each) => each !== undefined && each.latest.timeNs <= endNs,
  );
  const [one, another] = pending;
  if (one === undefined || one.isAmbiguous || another?.isAmbiguous === true) return null;
  if (another !== undefined && another.latest.senderPid !== one.latest.senderPid) return null;
  return one.latest;
}

function oomOf({ mark }: Life, killer: Seen | null): boolean | null {
  if (killer !== null && (killer.flags & SignalFlag.oom) !== 0) return true;
  if (mark === null) return false;
  if (killer?.sender.origin !== 'kernel') return false;
  const afterNs = mark.timeNs - killer.timeNs;
  return mark.byPid === killer.senderPid && afterNs >= 0 && afterNs < MARK_NS ? true : null;
}

/** Where there are too many, of those that say the same the older goes first. */
function remember(received: Seen[], seen: Seen): void {
  received.push(seen);
  if (received.length <= RECEIVED) return;
  const saysTheSame = (a: SignalSender, b: SignalSender) =>
    a.signal === b.signal && a.origin === b.origin && a.pid === b.pid;
  const repeated = received.findIndex((older, i) =>
    received.some((later, j) => j > i && saysTheSame(older.sender, later.sender)),
  );
  received.splice(Math.max(repeated, 0), 1);
}
