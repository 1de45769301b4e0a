import { GrowingFile } from '../evidence/growing-file.js';
import type { ObeyedSignal } from '../evidence/vm-evidence.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { classifyStop } from './classify-stop.js';
import { parseLogLine } from './event-log-line.js';
import { isWhole, splitRuns } from './log-runs.js';
import type { QmpEvent } from './qmp-event.js';
import { hasHadAgent, isTelling } from './telling-events.js';

/** A run that an event log tells of, and nobody has seen. */
export interface UnseenRun {
  events: QmpEvent[];
  /** Its last word. */
  until: Date;
}

/** Of what log, and whose. */
export interface UnseenLog {
  path: string;
  /** The users who may have written it; `null`: anybody. */
  trustedUids: readonly number[] | null;
  /** What came up to then is accounted for. */
  after: Date | null;
}

/** Nobody has missed more; of more, the last ones count. */
const MOST_RUNS = 100;
const MOST_EVENTS = 10_000;

/**
 * The runs that a log tells of, one after the other; `refusal`: why it is not believed. Rejects where it
 * cannot be read just now.
 */
export async function readRuns({
  path,
  trustedUids,
  after,
}: UnseenLog): Promise<{ runs: UnseenRun[]; refusal: string | null }> {
  const events: QmpEvent[] = [];
  const file = new GrowingFile(path, (line) => {
    const event = parseLogLine(line);
    if (event === null || event === 'torn' || !isTelling(event)) return;
    events.push(event);
    if (events.length > 2 * MOST_EVENTS) events.splice(0, MOST_EVENTS);
  });
  file.trustedUids = trustedUids;
  await file.read();
  if (file.failure !== null) throw file.failure;
  const from = after?.getTime() ?? -Infinity;
  const isNew = ({ at }: QmpEvent) => at === null || at.getTime() > from;
  const runs = splitRuns(events.filter(isNew)).map((run) => ({ events: run, until: lastOf(run) }));
  return { runs: runs.slice(-MOST_RUNS), refusal: file.refusal };
}

/** Whether its last word was its end, unless it was to stay (`-no-shutdown`). */
export function hasEnded({ events }: UnseenRun): boolean {
  const names = events.map(({ event }) => event);
  return names.lastIndexOf('SHUTDOWN') > names.lastIndexOf('STOP');
}

/** Why a run has ended that nobody has seen: by its event log, and by its log, if that is its own. */
export function judgeUnseen(
  name: string,
  { events }: UnseenRun,
  leftovers: { pidfile: boolean | null; socket: boolean | null },
  obeyed: ObeyedSignal | null,
): VmVerdict {
  const isComplete = isWhole(events);
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
    // They name processes, and which one this was is not known.
    intents: null,
  });
}

function lastOf(events: readonly QmpEvent[]): Date {
  return new Date(Math.max(0, ...events.map(({ at }) => at?.getTime() ?? 0)));
}
