import type { ExitEvent } from '../../../src';
import type { Intent } from '../../../src/process';
import type { QmpEvent, StopEvidence } from '../../../src/vm';
import { NOWHERE } from '../../../src/where/whereabouts';

import {
  dateOf,
  ITS_PID,
  MINUTE,
  OUR_PID,
  SECOND,
  type Ended,
  type Machine,
  type Sent,
  type Told,
} from './machine';
import { FROM_START_MS, type View } from './views';

/** How far back the reported signals go. */
const RECEIVED_MS = 120_000;

/** Those of which the first and the last one are reported however old they are. */
const LASTING: readonly string[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'];

/** The delay between STOP and the answer about it. */
const ASKED_MS = 10;

/** Everything that a verdict can use. */
export type Evidence = StopEvidence & {
  /** Whether the guest has an agent, and exitwatch holds its only channel; `null`: unknown. */
  agent: 'none' | 'held' | 'open' | null;
  /** The answer of `query-status` after the last STOP. */
  lastStatus: string | null;
};

/** The evidence that these witnesses provide. */
export function evidenceOf(machine: Machine, view: View): Evidence {
  const { options } = machine;
  return {
    name: 'vm',
    exit: view.exit === 'unseen' ? null : exitOf(machine, view),
    ...eventsOf(machine, view),
    ready: view.ready ? machine.isReady : null,
    mayLinger: view.command ? options.noShutdown || options.panic === 'pause' : null,
    obeyed: view.log && options.log ? machine.obeyed : null,
    hasLog: view.log && options.log,
    leftovers: {
      pidfile: view.pidfile && options.pidfile ? machine.left.pidfile : null,
      socket: view.socket && options.qmp ? machine.left.socket : null,
    },
    intents: intentsOf(machine, view),
    agent: view.agent ? options.agent : null,
    debugExit: view.command ? options.debugExit : null,
    ...(view.command ? { incoming: options.incoming } : {}),
  };
}

type Heard = Pick<
  Evidence,
  'events' | 'eventsComplete' | 'eventsUnbroken' | 'heardSince' | 'initialStatus' | 'lastStatus'
>;

function eventsOf(machine: Machine, view: View): Heard {
  const { events } = machine;
  const { link } = view;
  const lastStatus = lastStatusOf(machine, view);
  const initialStatus = link?.asks === true ? statusAt(machine, link.at) : null;
  const heardSince = link === null ? null : dateOf(link.at);
  const isFirst = link !== null && !events.some(({ at }) => at <= link.at);
  // An empty log may be one that does not work.
  if (view.eventLog && events.length > 0) {
    const arrival = isFirst ? initialStatus : null;
    const eventsComplete = isKnownToBeAll(machine, events, arrival);
    return {
      ...{ events: events.map(toEvent), eventsComplete, eventsUnbroken: true },
      ...{ heardSince, initialStatus: arrival, lastStatus },
    };
  }
  if (link === null) {
    return {
      ...{ events: [], eventsComplete: false, eventsUnbroken: false },
      ...{ heardSince, initialStatus: null, lastStatus },
    };
  }
  const heard = events.filter(({ at }) => at > link.at && at <= (link.until ?? Infinity));
  const eventsUnbroken = link.until === null;
  // The client has asked, so it knows that the machine runs.
  const missed = events.filter(({ at, event }) => at <= link.at && event !== 'RESUME');
  const eventsComplete =
    eventsUnbroken &&
    initialStatus !== null &&
    missed.length === 0 &&
    (isFirst || (link.at <= FROM_START_MS && initialStatus === 'running')) &&
    isKnownToBeAll(machine, heard, initialStatus);
  return {
    ...{ events: heard.map(toEvent), eventsComplete, eventsUnbroken },
    ...{ heardSince, initialStatus, lastStatus },
  };
}

/**
 * A guest that came from another host has a past there. Only a client that can see the arrival
 * knows that these are not all of its events.
 */
function isKnownToBeAll(
  { options }: Machine,
  events: readonly Told[],
  initialStatus: string | null,
): boolean {
  if (!options.incoming) return true;
  return initialStatus === 'inmigrate' || events.some(({ event }) => event === 'MIGRATION');
}

export const toEvent = ({ told }: Told): QmpEvent => told;

function statusAt({ statuses }: Machine, at: number): string {
  return statuses.findLast((each) => each.at <= at)?.status ?? 'prelaunch';
}

/** The last answer about its state, unless it has resumed or was paused again since. */
function lastStatusOf(machine: Machine, { link, asksAfterStop, eventLog }: View): string | null {
  if (link === null) return null;
  const isHeard = ({ at }: Told) => at > link.at && at <= (link.until ?? Infinity);
  const last = machine.events.findLast(
    (each) => (each.event === 'STOP' || each.event === 'RESUME') && (eventLog || isHeard(each)),
  );
  if (last?.event !== 'STOP') return null;
  const endedAt = Math.min(machine.end?.at ?? 0, link.until ?? Infinity);
  const askedAt = last.at + ASKED_MS;
  if (isHeard(last)) return asksAfterStop && askedAt < endedAt ? statusAt(machine, askedAt) : null;
  return link.asks && link.at >= last.at ? statusAt(machine, link.at) : null;
}

/** No information about signals. */
const UNTRACED = {
  ...{ traced: false, tracedSince: null, requestsSince: null },
  ...{ sender: null, raisedAfter: null, signalsReceived: [] },
};

function exitOf(machine: Machine, view: View): ExitEvent {
  const { end } = machine;
  if (end === null) throw new Error('it has not ended');
  if (view.exit === 'gone') {
    return {
      ...seenAt(end.at + MINUTE),
      ...UNTRACED,
      how: 'unknown',
      exitCode: null,
      signal: null,
      coreDumped: null,
      oom: null,
      unknownReason: 'gone-before-watch',
    };
  }
  const trace = traceOf(machine, end, view.tracedSince);
  return end.how === 'exited'
    ? {
        ...seenAt(end.at),
        ...(trace ?? UNTRACED),
        how: 'exited',
        exitCode: end.exitCode,
        signal: null,
        coreDumped: false,
        oom: false,
        unknownReason: null,
      }
    : {
        ...seenAt(end.at),
        ...(trace ?? UNTRACED),
        how: 'killed',
        exitCode: null,
        signal: end.signal,
        coreDumped: false,
        oom: trace === null ? null : end.isOom,
        unknownReason: null,
      };
}

function seenAt(ms: number) {
  return {
    event: 'exit' as const,
    id: 'an-exit',
    pid: ITS_PID,
    parentPid: 1,
    name: 'qemu-system-x86',
    program: 'qemu-system-x86_64',
    uid: 0,
    ...{ parentName: null, usage: null, commandLine: null },
    cgroup: '/',
    ...NOWHERE,
    startedAt: dateOf(0),
    exitedAt: dateOf(ms),
    exitedNs: null,
    uncertaintyMs: 0,
    source: 'connector' as const,
    isRepeated: false,
    lossless: true,
  };
}

/** `null`: the trace was missing, or too late for the signal that counts. */
function traceOf({ signals }: Machine, end: Ended, since: number | null) {
  if (since === null) return null;
  const isSeen = ({ at, sender }: Sent) =>
    at >= since && (at > end.at - RECEIVED_MS || LASTING.includes(sender.signal));
  const isKilled = end.how === 'killed';
  const last = signals.at(-1);
  if (isKilled && (last === undefined || !isSeen(last))) return null;
  return {
    traced: true,
    tracedSince: dateOf(since),
    requestsSince: dateOf(since),
    sender: isKilled ? end.by : null,
    raisedAfter: isKilled ? end.raisedAfter : null,
    signalsReceived: signals.filter(isSeen).map(({ sender }) => sender),
  };
}

const ITSELF = { pid: ITS_PID, startTicks: 1, bootId: 'a-boot', pidNamespace: null, id: 'it' };
const US = { ...ITSELF, pid: OUR_PID, id: 'us' };

function intentsOf(machine: Machine, { intents }: View): Intent[] | null {
  if (intents === null) return null;
  const judgedAt = (machine.end?.at ?? 0) + SECOND;
  return machine.intents.map(({ at, deadline, outcome, ...rest }) => {
    const open = deadline < judgedAt ? 'expired' : 'pending';
    return {
      ...{ ...rest, at: dateOf(at), deadline: dateOf(deadline) },
      ...{ identity: ITSELF as never, who: { identity: US as never, uid: 0 } },
      outcome: intents === 'pending' || outcome === 'pending' ? open : outcome,
    };
  });
}
