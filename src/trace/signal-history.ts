import { RECEIVED_MS } from '../events/ended-by.js';
import type { SignalSender } from '../events/signal-event.js';
import { SignalFlag } from '../native/abi.js';
import type { End } from '../native/kernel-records.js';
import type { TracedSignal } from '../native/signal-records.js';

import type { CgroupPaths } from './cgroup-paths.js';
import { Generations, type Seen } from './generations.js';
import { isAmbiguous, senderOf } from './signal-sender.js';
import { NO_STORY, type SignalStory } from './signal-story.js';

/** The OOM killer has marked a process. */
type Mark = Pick<Seen, 'timeNs' | 'senderThread' | 'senderStart'>;

/** What is known of one process. */
interface Run {
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
  hasAmbiguous: boolean;
}

const DOUBT: SignalStory = Object.freeze({ ...NO_STORY, oom: null, isDoubtful: true });

/** Between a kill by the OOM killer and its mark. */
const MARK_NS = 1e9;

/** Of one process. */
const MARKS = 4;

/** How far back, and how many, signals are offered. */
const RECEIVED_NS = RECEIVED_MS * 1e6;
const RECEIVED = 16;

/** Runs of one pid whose ends are still to come. */
const RUNS = 64;

/** Keeps what was sent to processes until they end, and tells then what ended them. */
export class SignalHistory {
  /** By pid: one run after another, as ends come later than signals. */
  readonly #runs = new Map<number, Run[]>();
  readonly #cgroups: CgroupPaths;

  constructor(cgroups: CgroupPaths) {
    this.#cgroups = cgroups;
  }

  get isEmpty(): boolean {
    return this.#runs.size === 0;
  }

  /** Who has sent a signal just now; `null`: nobody has, or it cannot be told. */
  add(signal: TracedSignal): SignalSender | null {
    const run = this.#runOf(signal);
    const { timeNs, flags, senderPid, senderThread, senderStart } = signal;
    if (signal.signal === 0) {
      run.marks.push({ timeNs, senderThread, senderStart });
      if (run.marks.length > MARKS) run.marks.shift();
      return null;
    }
    const sender = senderOf(signal, this.#cgroups.path(signal.senderCgroup));
    const seen: Seen = { timeNs, flags, senderPid, senderThread, senderStart, sender };
    if ((flags & SignalFlag.taken) !== 0) {
      run.generations.take(signal, seen);
      return null;
    }
    if (isAmbiguous(signal) && (flags & SignalFlag.ignored) === 0) run.hasAmbiguous = true;
    if (!run.generations.add(signal, seen)) return null;
    if ((flags & SignalFlag.ignored) === 0) remember(run.received, seen);
    return sender;
  }

  /** Ends were lost: a run that seems to go on may be over. */
  doubtRuns(): void {
    for (const runs of this.#runs.values()) for (const run of runs) run.isDoubtful = true;
  }

  /** Signals were lost: what is taken from now on may be one of them. */
  doubtSignals(): void {
    for (const runs of this.#runs.values()) {
      for (const run of runs) run.generations.doubt();
    }
  }

  /**
   * The story of a process that has ended; forgets it unless it will be asked for again.
   */
  end(end: End, isAskedAgain: boolean): SignalStory {
    const runs = this.#runs.get(end.pid);
    if (runs === undefined) return NO_STORY;
    const isEarlier = (run: Run) => run.since <= end.timeNs;
    let at = runs.findIndex((run) => isEarlier(run) && isSurelySame(run, end));
    if (at < 0) {
      at = runs.findIndex((run) => isEarlier(run) && isSame(run, end));
      if (runs[at]?.isDoubtful === true) return DOUBT;
    }
    const run = runs[at];
    if (run === undefined) return NO_STORY;
    if (!isAskedAgain) {
      runs.splice(0, at + 1);
      if (runs.length === 0) this.#runs.delete(end.pid);
    }
    const killer = end.signal === null ? null : run.generations.killer(end.signal, end.timeNs);
    return {
      sender: killer?.sender ?? null,
      raisedAfter: killer === null ? null : requestBefore(run, killer, end.pid),
      received: run.received
        .filter(({ timeNs }) => timeNs <= end.timeNs && timeNs > end.timeNs - RECEIVED_NS)
        .map(({ sender }) => sender),
      oom: oomOf(run, killer),
      isDoubtful: run.hasAmbiguous,
    };
  }

  /** Nobody will ask for this process any more. */
  forget({ pid, inode, startTicks }: Omit<End, 'timeNs' | 'signal'>): void {
    const runs = this.#runs.get(pid)?.filter((run) => !isSame(run, { inode, startTicks }));
    if (runs === undefined) return;
    if (runs.length === 0) this.#runs.delete(pid);
    else this.#runs.set(pid, runs);
  }

  #runOf({ pid, inode, startTicks, timeNs }: TracedSignal): Run {
    let runs = this.#runs.get(pid);
    if (runs === undefined) {
      runs = [];
      this.#runs.set(pid, runs);
    }
    const latest = runs.at(-1);
    if (latest !== undefined && isSame(latest, { inode, startTicks })) return latest;
    const run: Run = {
      inode,
      startTicks,
      since: timeNs,
      received: [],
      generations: new Generations(),
      marks: [],
      isDoubtful: false,
      hasAmbiguous: false,
    };
    runs.push(run);
    if (runs.length > RUNS) runs.shift(); // whose end was lost
    return run;
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
function requestBefore(run: Run, killer: Seen, pid: number): SignalSender | null {
  const { signal } = killer.sender;
  if (killer.sender.pid !== pid) return null;
  const isRequest = ({ timeNs, sender }: Seen) =>
    sender.signal === signal &&
    sender.pid !== pid &&
    !OWN_DOING.includes(sender.origin) &&
    timeNs < killer.timeNs &&
    timeNs > killer.timeNs - RECEIVED_NS;
  return run.received.findLast(isRequest)?.sender ?? null;
}

const OWN_DOING: readonly SignalSender['origin'][] = ['fault', 'timer'];

/** The OOM killer marks a process right after it has killed it, or where it finds it dying. */
function oomOf({ marks }: Run, killer: Seen | null): boolean | null {
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
