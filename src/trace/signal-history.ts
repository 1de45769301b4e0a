import { isFromOutside, isRequest, RECEIVED_MS } from '../events/ended-by.js';
import type { ExitEvent } from '../events/exit-event.js';
import type { SignalSender } from '../events/signal-event.js';
import { SignalFlag } from '../native/abi.js';
import type { End } from '../native/kernel-records.js';
import type { TracedSignal } from '../native/signal-records.js';

import type { CgroupPaths } from './cgroup-paths.js';
import type { CommandLines } from './command-lines.js';
import { Generations, type Seen } from './generations.js';
import type { LikelyClients } from './likely-clients.js';
import { remember, reported } from './received-signals.js';
import { isAmbiguous, senderOf } from './signal-sender.js';
import { NO_STORY, type SignalStory } from './signal-story.js';

/** The OOM killer marked a process. */
type Mark = Pick<Seen, 'timeNs' | 'senderThread' | 'senderStart'>;

/** What is known about one process. */
interface Run {
  inode: number;
  startTicks: number;
  since: number;
  received: Seen[];
  /** However old: a signal may stay blocked. */
  readonly generations: Generations;
  /** Marks by the OOM killer. */
  readonly marks: Mark[];
  /** Exits were lost since: the process may be gone, and its pid reused. */
  isDoubtful: boolean;
  /** It was sent a signal whose sender is unknown. */
  hasAmbiguous: boolean;
}

const DOUBT: SignalStory = Object.freeze({ ...NO_STORY, oom: null, isDoubtful: true });

/** The longest time between a kill by the OOM killer and its mark. */
const MARK_NS = 1e9;

/** Marks to keep per process. */
const MARKS = 4;

/** How far back signals are reported that are no requests. */
const RECEIVED_NS = RECEIVED_MS * 1e6;

/** Processes to keep per pid while their exits have not arrived. */
const RUNS = 64;

/**
 * Keeps the signals that processes were sent until they exit, and then reports what killed them.
 */
export class SignalHistory {
  /** By pid, in order: exits arrive later than signals, so a pid can have several processes. */
  readonly #runs = new Map<number, Run[]>();
  readonly #cgroups: CgroupPaths;
  readonly #commandLines: CommandLines | null;
  readonly #clients: LikelyClients | null;

  /** `commandLines`: `null` if they are not wanted. `clients`: `null` if it is too late to look. */
  constructor(
    cgroups: CgroupPaths,
    commandLines: CommandLines | null = null,
    clients: LikelyClients | null = null,
  ) {
    this.#cgroups = cgroups;
    this.#commandLines = commandLines;
    this.#clients = clients;
  }

  get isEmpty(): boolean {
    return this.#runs.size === 0;
  }

  /**
   * Adds a record; returns the sender if it is a signal that was just sent and its sender is known.
   */
  add(signal: TracedSignal): SignalSender | null {
    const run = this.#runOf(signal);
    const { timeNs, flags, senderPid, senderThread, senderStart } = signal;
    if (signal.signal === 0) {
      run.marks.push({ timeNs, senderThread, senderStart });
      if (run.marks.length > MARKS) run.marks.shift();
      return null;
    }
    const sender = senderOf(signal, {
      pathOf: (id) => this.#cgroups.path(id),
      commandLine: this.#commandLines?.of(signal.senderCommandLine) ?? null,
      clientsOf: (agent) => this.#clients?.of(agent) ?? null,
    });
    const seen: Seen = { timeNs, flags, senderPid, senderThread, senderStart, sender };
    if ((flags & SignalFlag.taken) !== 0) {
      run.generations.take(signal, seen);
      return null;
    }
    if (isAmbiguous(signal) && (flags & SignalFlag.ignored) === 0) run.hasAmbiguous = true;
    if (!run.generations.add(signal, seen)) return null;
    if ((flags & SignalFlag.ignored) === 0) remember(run.received, seen, signal.pid);
    return sender;
  }

  /** Exits were lost: a process that seems to be alive may be gone. */
  doubtRuns(): void {
    for (const runs of this.#runs.values()) for (const run of runs) run.isDoubtful = true;
  }

  /** Signals were lost: a signal that is taken from now on may be one of them. */
  doubtSignals(): void {
    for (const runs of this.#runs.values()) {
      for (const run of runs) run.generations.doubt();
    }
  }

  /** The story of a process that has exited. Forgets it, unless it will be asked for again. */
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
    const story = {
      sender: killer?.sender ?? null,
      raisedAfter: killer === null ? null : requestBefore(run, killer, end.pid),
      received: receivedUntil(end, run).map(({ sender }) => sender),
      oom: oomOf(run, killer),
      isDoubtful: run.hasAmbiguous,
    };
    return this.#clients?.complete(story) ?? story;
  }

  /** A process has ended, which may have asked for a signal. */
  noteEnd(event: ExitEvent): void {
    this.#clients?.noteEnd(event);
  }

  /** Forgets a process whose exit is not needed any more. */
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
    if (runs.length > RUNS) runs.shift(); // its exit was lost
    return run;
  }
}

type Identity = Pick<End, 'inode' | 'startTicks'>;

function isSame(a: Identity, b: Identity): boolean {
  if (a.inode !== 0 && b.inode !== 0) return a.inode === b.inode;
  return a.startTicks === 0 || b.startTicks === 0 || a.startTicks === b.startTicks;
}

/** Whether both have the same inode or, if one lacks it, the same known start. */
function isSurelySame(a: Identity, b: Identity): boolean {
  if (a.inode !== 0 && b.inode !== 0) return a.inode === b.inode;
  return a.startTicks !== 0 && a.startTicks === b.startTicks;
}

/** The earlier sender of the same signal, if the process then sent it to itself. */
function requestBefore(run: Run, killer: Seen, pid: number): SignalSender | null {
  const { signal } = killer.sender;
  if (killer.sender.pid !== pid) return null;
  const mayBeRaised = ({ timeNs, sender }: Seen) =>
    sender.signal === signal &&
    isFromOutside(sender, pid) &&
    timeNs < killer.timeNs &&
    (isRequest(sender, pid) || timeNs > killer.timeNs - RECEIVED_NS);
  return run.received.findLast(mayBeRaised)?.sender ?? null;
}

/** The requests of its life, and what else it was sent in its last two minutes. */
function receivedUntil({ pid, timeNs: endNs }: End, { received }: Run): Seen[] {
  const before = received.filter(({ timeNs }) => timeNs <= endNs);
  return reported(before, pid, ({ timeNs }) => timeNs > endNs - RECEIVED_NS);
}

/** The OOM killer marks a process right after killing it, or when it finds it dying. */
function oomOf({ marks }: Run, killer: Seen | null): boolean | null {
  if (killer !== null && (killer.flags & SignalFlag.oom) !== 0) return true;
  if (marks.length === 0 || killer?.sender.origin !== 'kernel') return false;
  // The first process of the pid namespace exits, and the kernel kills this one with it.
  if ((killer.flags & SignalFlag.senderExiting) !== 0) return false;
  const isIts = ({ timeNs, senderThread, senderStart }: Mark) =>
    senderThread === killer.senderThread &&
    senderStart === killer.senderStart &&
    timeNs >= killer.timeNs &&
    timeNs - killer.timeNs < MARK_NS;
  return marks.some(isIts) ? true : null;
}
