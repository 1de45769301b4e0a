import { readFileSync } from 'node:fs';

import type { ExitEvent } from '../events/exit-event.js';
import type { LikelyClient, OnBehalfReason, SignalSender } from '../events/signal-event.js';
import { pids } from '../identity/pids.js';
import { processTable } from '../identity/platform-table.js';

import { clientIn, isClient, isClientOf } from './clients.js';
import { commandLineOf, type Redact } from './command-lines.js';
import { runningArguments, type RunningArguments } from './running-arguments.js';
import { runsScripts } from './scripts.js';
import type { SignalStory } from './signal-story.js';

/** How long before a signal its client may have ended, in ms. */
const BEFORE_MS = 5000;

/** How exactly /proc tells when a process started, in ms. */
const TICK_MS = 10;

/** How many ends to remember. */
const MOST_ENDED = 64;

/**
 * Looks at the process table take a tenth of the time at most, once they have taken 100 ms of CPU time
 * together: a shutdown ends hundreds of processes one by one.
 */
const LOOK_SHARE = 10;
const LOOKS_AT_ONCE_MS = 100;

/** A sender that acts for others, and when it sent its signal. */
export interface Agent {
  pid: number;
  onBehalfReason: OnBehalfReason;
  sentAt: Date;
}

/**
 * Who may have asked a sender that acts for others: what runs, and what has just ended, under the name
 * of a program that does such things.
 */
export class LikelyClients {
  readonly #redact: Redact | null;
  readonly #ended: LikelyClient[] = [];
  /** `null`: the process table could not be read. */
  #running: readonly LikelyClient[] | null = [];
  /** When they were looked for, by the wall clock, as signals have it. */
  #lookedAtMs = -Infinity;
  /** Until when the looks so far take their share of the time, by performance.now(). */
  #paidUntilMs = -Infinity;

  /** `redact`: what command lines go through; `null` if they are not wanted. */
  constructor(redact: Redact | null) {
    this.#redact = redact;
  }

  /** A process has ended. */
  noteEnd({ pid, name, program, uid, commandLine, startedAt, exitedAt }: ExitEvent): void {
    const known = clientIn([name, program], commandLine);
    if (known === null || startedAt === null) return;
    this.#ended.push({ pid, name: known, uid, commandLine, startedAt, endedAt: exitedAt });
    if (this.#ended.length > MOST_ENDED) this.#ended.shift();
  }

  /** What may have asked for the signal that this sender has just sent; `null`: nobody has looked. */
  of(agent: Agent): readonly LikelyClient[] | null {
    const now = Date.now();
    const isTooOld = agent.sentAt.getTime() > this.#lookedAtMs;
    // Otherwise the clock was set back.
    const hasLooked = (!isTooOld && now >= this.#lookedAtMs) || this.#lookAgain(now);
    const clients = this.#withEnded(this.#running ?? [], agent);
    return (hasLooked && this.#running !== null) || clients.length > 0 ? clients : null;
  }

  /** The same story, with the clients whose ends were told since its signals were. */
  complete(story: SignalStory): SignalStory {
    if (!story.received.some(isOnBehalf) && !isOnBehalf(story.sender)) return story;
    const completed = new Map<SignalSender, SignalSender>();
    const complete = (sender: SignalSender) => {
      const before = completed.get(sender);
      if (before !== undefined || !isOnBehalf(sender)) return before ?? sender;
      const { likelyClients } = sender;
      const clients = this.#withEnded(likelyClients ?? [], sender);
      const isKnown = likelyClients !== null || clients.length > 0;
      const after = { ...sender, likelyClients: isKnown ? clients : null };
      completed.set(sender, after);
      return after;
    };
    const { sender, raisedAfter, received } = story;
    return {
      ...story,
      sender: sender && complete(sender),
      raisedAfter: raisedAfter && complete(raisedAfter),
      received: received.map(complete),
    };
  }

  #withEnded(
    others: readonly LikelyClient[],
    { pid: agentPid, onBehalfReason, sentAt }: Agent,
  ): readonly LikelyClient[] {
    const isThen = ({ pid, name, startedAt, endedAt }: LikelyClient) =>
      isClientOf(onBehalfReason, [name]) &&
      startedAt.getTime() <= sentAt.getTime() + TICK_MS &&
      (endedAt === null || sentAt.getTime() - endedAt.getTime() <= BEFORE_MS) &&
      // The sender itself, such as monit; not one that had its pid before.
      (pid !== agentPid || (endedAt !== null && endedAt < sentAt));
    const ended = this.#ended.filter(isThen);
    const isOther = (client: LikelyClient) => !ended.some((one) => isSame(one, client));
    const clients = [...ended, ...others.filter(isThen).filter(isOther)];
    const endOf = ({ endedAt }: LikelyClient) => endedAt?.getTime() ?? Infinity;
    return clients.sort((one, other) => (endOf(one) < endOf(other) ? 1 : -1));
  }

  /** `false`: looks have taken too much time; only what does not run any more was taken out. */
  #lookAgain(now: number): boolean {
    const begin = performance.now();
    if (begin < this.#paidUntilMs) {
      this.#running = this.#running?.filter(isRunning) ?? null;
      return false;
    }
    this.#lookedAtMs = now;
    const cpuBefore = process.cpuUsage();
    // The latest first: a client ends as soon as it has its answer.
    const latestFirst = pidsOrNone()?.sort((one, other) => other - one) ?? null;
    this.#running = latestFirst?.flatMap((pid) => this.#clientAt(pid) ?? []) ?? null;
    // Other threads use CPU time, too, and on a busy machine others use most of the wall clock's.
    const { user, system } = process.cpuUsage(cpuBefore);
    const spentMs = Math.min(performance.now() - begin, (user + system) / 1000);
    const since = Math.max(this.#paidUntilMs, begin - LOOK_SHARE * LOOKS_AT_ONCE_MS);
    this.#paidUntilMs = since + LOOK_SHARE * spentMs;
    return true;
  }

  #clientAt(pid: number): LikelyClient | null {
    const ownName = nameOf(pid);
    if (ownName === null || !this.#mayBeClient(ownName)) return null;
    const row = processTable().lookNow(pid);
    if (row === null || row === 'unknown' || row.startTicks === null || row.isDead) return null;
    const { uid, startTicks } = row;
    const args = this.#redact === null ? null : runningArguments(pid, uid);
    const asRead = textOf(args, (words) => words);
    const name = clientIn([ownName], asRead);
    if (name === null) return null;
    // Another process may have got the pid while we looked.
    const after = processTable().lookNow(pid);
    const isAnother = after !== null && after !== 'unknown' && after.startTicks !== startTicks;
    if (isAnother || row.name !== ownName) return null;
    const commandLine = this.#redact && textOf(args, this.#redact);
    const startedAt = processTable().startTime(startTicks);
    return { pid, name, uid, commandLine, startedAt, endedAt: null };
  }

  #mayBeClient(name: string): boolean {
    return isClient(name) || (this.#redact !== null && runsScripts(name));
  }
}

function textOf(args: RunningArguments | null, redact: Redact): readonly string[] | null {
  return args && commandLineOf(args.bytes, args.isCut, redact);
}

type OnBehalf = SignalSender & Agent;

function isOnBehalf(sender: SignalSender | null): sender is OnBehalf {
  return sender?.onBehalfReason != null;
}

function isRunning(client: LikelyClient): boolean {
  const row = processTable().lookNow(client.pid);
  if (row === null || row === 'unknown' || row.startTicks === null || row.isDead) return false;
  return isSame(client, { pid: row.pid, startedAt: processTable().startTime(row.startTicks) });
}

type Run = Pick<LikelyClient, 'pid' | 'startedAt'>;

function isSame(one: Run, other: Run): boolean {
  const apartMs = one.startedAt.getTime() - other.startedAt.getTime();
  return one.pid === other.pid && Math.abs(apartMs) <= 2 * TICK_MS;
}

function pidsOrNone(): number[] | null {
  try {
    return pids();
  } catch {
    return null; // no descriptor is left
  }
}

function nameOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').slice(0, -1);
  } catch {
    return null; // it has ended, or is hidden
  }
}
