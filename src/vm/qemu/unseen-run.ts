import { GrowingFile } from '../evidence/growing-file.js';
import type { ObeyedSignal } from '../evidence/vm-evidence.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { classifyStop } from './classify-stop.js';
import { parseLogLine } from './event-log-line.js';
import { isWhole, splitRuns } from './log-runs.js';
import type { QmpEvent } from './qmp-event.js';
import { hasHadAgent, tellingOf } from './telling-events.js';

/** A run that nobody saw, known from an event log. */
export interface UnseenRun {
  events: QmpEvent[];
  /** When its last event came. */
  until: Date;
  /** A full disk has torn a line of it, or the log was cut. */
  mayLackEvents: boolean;
}

/** Stands where a line was torn. */
const TORN = '';

/** Which log to read. */
export interface UnseenLog {
  path: string;
  /** The users who may have written it; `null` trusts everybody. */
  trustedUids: readonly number[] | null;
  /** What came up to this time is accounted for. */
  after: Date | null;
}

/** Nobody misses more than this; beyond it, the last ones count. */
const MOST_RUNS = 100;
const MOST_EVENTS = 10_000;

/**
 * The runs in a log, in order; `refusal`: why the log is not trusted. Rejects if the log exists but
 * cannot be read.
 */
export async function readRuns({
  path,
  trustedUids,
  after,
}: UnseenLog): Promise<{ runs: UnseenRun[]; refusal: string | null }> {
  const events: QmpEvent[] = [];
  const file = new GrowingFile(path, (line) => {
    const said = parseLogLine(line);
    // What was torn before the first event is of no run that is whole.
    if (said === null || (said === 'torn' && events.length === 0)) return;
    const torn = { event: TORN, data: {}, at: events.at(-1)?.at ?? null };
    const event = said === 'torn' ? torn : tellingOf(said);
    if (event === null) return;
    events.push(event);
    if (events.length > 2 * MOST_EVENTS) events.splice(0, MOST_EVENTS);
  });
  file.trustedUids = trustedUids;
  await file.read();
  if (file.failure !== null) throw file.failure;
  const from = after?.getTime() ?? -Infinity;
  const isNew = ({ at }: QmpEvent) => at === null || at.getTime() > from;
  // Of a log that is too long, only the end was read, and one run may be cut.
  const isCut = file.wasReplaced && events.every(isNew);
  const runs = splitRuns(events.filter(isNew)).map((run, i) => ({
    events: run.filter(({ event }) => event !== TORN),
    until: lastOf(run),
    mayLackEvents: file.wasFull || (isCut && i === 0) || run.some(({ event }) => event === TORN),
  }));
  const told = runs.filter((run) => run.events.length > 0);
  return { runs: told.slice(-MOST_RUNS), refusal: file.refusal };
}

/** Whether SHUTDOWN ended the run. A later STOP means that it lingers (`-no-shutdown`). */
export function hasEnded({ events }: UnseenRun): boolean {
  const names = events.map(({ event }) => event);
  return names.lastIndexOf('SHUTDOWN') > names.lastIndexOf('STOP');
}

/** Why a run ended that nobody saw, judged by its event log, and by its log if that is its own. */
export function judgeUnseen(
  name: string,
  { events, mayLackEvents }: UnseenRun,
  leftovers: { pidfile: boolean | null; socket: boolean | null },
  obeyed: ObeyedSignal | null,
): VmVerdict {
  const isComplete = isWhole(events) && !mayLackEvents;
  return classifyStop({
    name,
    exit: null,
    events,
    eventsComplete: isComplete,
    eventsUnbroken: isComplete,
    initialStatus: null,
    ready: events.length > 1 ? true : null,
    mayLinger: null,
    agent: hasHadAgent(events) ? 'open' : 'none',
    obeyed,
    hasLog: false,
    leftovers,
    // Intents name processes, and which process this was is unknown.
    intents: null,
  });
}

function lastOf(events: readonly QmpEvent[]): Date {
  return new Date(Math.max(0, ...events.map(({ at }) => at?.getTime() ?? 0)));
}
