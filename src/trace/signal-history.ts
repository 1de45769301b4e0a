import { RECEIVED_MS } from '../ended-by.js';
import { SignalFlag } from '../native/abi.js';
import type { End } from '../native/kernel-records.js';
import type { TracedSignal } from '../native/signal-records.js';
import type { SignalSender } from '../signal-event.js';

import type { CgroupPaths } from './cgroup-paths.js';
import { Generations, type Seen } from './generations.js';
import { isUntold, senderOf } from './signal-sender.js';

/** What {@link SignalHistory.end} tells of a process that has ended. */
export interface SignalStory {
  /** Who sent the signal that ended it; `null` where none did, or none was seen. */
  sender: SignalSender | null;
  /** It sent that to itself, after it had been sent the same by this one; `null` where not. */
  raisedAfter: SignalSender | null;
  received: readonly SignalSender[];
  /** The OOM killer killed it; `null`: it has marked it, but may have found it dying. */
  oom: boolean | null;
  /** Some of this may be another's, or something may be missing. */
  isDoubtful: boolean;
}

/** The OOM killer has marked a process. */
type Mark = Pick<Seen, 'timeNs' | 'senderThread' | 'senderStart'>;

/** What is known of one process. */
interface Life {
  inode: number;
  startTicks: number;
  since: number;
  received: Seen[];
  /** However long ago: it may have been blocked. */
  readonly generations: Generations;
  /** The OOM killer has marked it. */
  readonly marks: Mark[];
  /** Ends were lost since: it may be over, and its pid another's. */
  isDoubtful: boolean;
  /** It was sent a signal of which nobody knows whose it is. */
  hasUntold: boolean;
}

const NOTHING: SignalStory = Object.freeze({
  sender: null,
  raisedAfter: null,
  received: Object.freeze([]),
  oom: false,
  isDoubtful: false,
});

const DOUBT: SignalStory = Object.freeze({ ...NOTHING, oom: null, isDoubtful: true });

/** Between a kill by the OOM killer and its mark. */
const MARK_NS = 1e9;

/** Of one process. */
const MARKS = 4;

/** How far back, and how many, signals are offered. */
const RECEIVED_NS = RECEIVED_MS * 1e6;
const RECEIVED = 16;

/** Owners of one pid whose ends were not told yet. */
const LIVES = 64;

/** Keeps what was sent to processes until they end, and tells then what ended them. */
export class SignalHistory {
  /** By pid: its owners one after another, where ends are told later than signals. */
  readonly #lives = new Map<number, Life[]>();
  readonly #cgroups: CgroupPaths;

  constructor(cgroups: CgroupPaths) {
    this.#cgroups = cgroups;
  }

  get isEmpty(): boolean {
    return this.#lives.size === 0;
  }

  /** Who has sent a signal just now; `null`: nobody has, or it cannot be told. */
  add(signal: TracedSignal): SignalSender | null {
    const life = this.#lifeOf(signal);
    const { timeNs, flags, senderPid, senderThread, senderStart } = signal;
    if (signal.signal === 0) {
      life.marks.push({ timeNs, senderThread, senderStart });
      if (life.marks.length > MARKS) life.marks.shift();
      return null;
    }
    const sender = senderOf(signal, this.#cgroups.path(signal.senderCgroup));
    const seen: Seen = { timeNs, flags, senderPid, senderThread, senderStart, sender };
    if ((flags & SignalFlag.taken) !== 0) {
      life.generations.take(signal, seen);
      return null;
    }
    if (isUntold(signal) && (flags & SignalFlag.ignored) === 0) life.hasUntold = true;
    if (!life.generations.add(signal, seen)) return null;
    if ((flags & SignalFlag.ignored) === 0) remember(life.received, seen);
    return sender;
  }

  /** Ends were lost: whose were not told may be over. */
  doubtLives(): void {
    for (const lives of this.#lives.values()) for (const life of lives) life.isDoubtful = true;
  }

  /** Signals were lost: what is taken from now on may be one of them. */
  doubtSignals(): void {
    for (const lives of this.#lives.values()) {
      for (const life of lives) life.generations.doubt();
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
    const killer = end.signal === null ? null : life.generations.killer(end.signal, end.timeNs);
    return {
      sender: killer?.sender ?? null,
      raisedAfter: killer === null ? null : requestBefore(life, killer, end.pid),
      received: life.received
        .filter(({ timeNs }) => timeNs <= end.timeNs && timeNs > end.timeNs - RECEIVED_NS)
        .map(({ sender }) => sender),
      oom: oomOf(life, killer),
      isDoubtful: life.hasUntold,
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
      generations: new Generations(),
      marks: [],
      isDoubtful: false,
      hasUntold: false,
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

/** Who had sent it the same signal, before it sent that to itself. */
function requestBefore(life: Life, killer: Seen, pid: number): SignalSender | null {
  const { signal } = killer.sender;
  if (killer.sender.pid !== pid) return null;
  const isRequest = ({ timeNs, sender }: Seen) =>
    sender.signal === signal &&
    sender.pid !== pid &&
    !OWN_DOING.includes(sender.origin) &&
    timeNs < killer.timeNs &&
    timeNs > killer.timeNs - RECEIVED_NS;
  return life.received.findLast(isRequest)?.sender ?? null;
}

const OWN_DOING: readonly SignalSender['origin'][] = ['fault', 'timer'];

/** The OOM killer marks a process right after it has killed it, or where it finds it dying. */
function oomOf({ marks }: Life, killer: Seen | null): boolean | null {
  if (killer !== null && (killer.flags & SignalFlag.oom) !== 0) return true;
  if (marks.length === 0 || killer?.sender.origin !== 'kernel') return false;
  // Another that dies, and takes it along: the first process of its pid namespace.
  if ((killer.flags & SignalFlag.senderExiting) !== 0) return false;
  const isIts = ({ timeNs, senderThread, senderStart }: Mark) =>
    senderThread === killer.senderThread &&
    senderStart === killer.senderStart &&
    timeNs >= killer.timeNs &&
    timeNs - killer.timeNs < MARK_NS;
  return marks.some(isIts) ? true : null;
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
