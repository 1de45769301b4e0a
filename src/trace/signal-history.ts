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
  /** The OOM killer has chosen it, or whoever shares its memory. */
  oom: boolean;
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
  sender: SignalSender;
}

/** What is known of one process. */
interface Life {
  inode: number;
  startTicks: number;
  since: number;
  received: Seen[];
  /** By signal: the latest that may have killed it, however long ago: it may have been blocked. */
  readonly last: Map<SignalName, Seen>;
  /** With this it began to die. */
  deadly: Seen | null;
  oom: boolean;
}

const NOTHING: SignalStory = Object.freeze({
  sender: null,
  received: Object.freeze([]),
  oom: false,
});

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
    if ((signal.flags & SignalFlag.oom) !== 0) life.oom = true;
    if (signal.signal === 0) return null;
    const { timeNs, flags } = signal;
    const sender = senderOf(signal, this.#cgroups.path(signal.senderCgroup));
    const seen: Seen = { timeNs, flags, sender };
    if ((flags & SignalFlag.deadly) !== 0) life.deadly ??= seen;
    if ((flags & SignalFlag.caught) === 0) life.last.set(sender.signal, seen);
    remember(life.received, seen);
    return sender;
  }

  /**
   * The story of a process that has ended; forgets it unless it will be asked for again.
   */
  end(end: End, isAskedAgain: boolean): SignalStory {
    const lives = this.#lives.get(end.pid);
    if (lives === undefined) return NOTHING;
    const at = lives.findIndex((life) => isSame(life, end) && life.since <= end.timeNs);
    const life = lives[at];
    if (life === undefined) return NOTHING;
    if (!isAskedAgain) {
      lives.splice(0, at + 1);
      if (lives.length === 0) this.#lives.delete(end.pid);
    }
    return {
      sender: end.signal === null ? null : killerOf(life, end.signal, end.timeNs),
      received: life.received
        .filter(({ timeNs }) => timeNs <= end.timeNs && timeNs > end.timeNs - RECEIVED_NS)
        .map(({ sender }) => sender),
      oom: life.oom,
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
      last: new Map(),
      deadly: null,
      oom: false,
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

function killerOf(life: Life, signal: SignalName, endNs: number): SignalSender | null {
  if (life.deadly?.sender.signal === signal) return life.deadly.sender;
  const last = life.last.get(signal);
  return last !== undefined && last.timeNs <= endNs ? last.sender : null;
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
