import type { QmpEvent } from './qmp-event.js';

/** Nobody says more than that it runs so soon; and that, /proc and the log may date so far apart. */
const STARTING_MS = 20;

/**
 * The events of each start, of a log that several starts have in common. A machine that runs cannot resume,
 * and one that has shut down says nothing more, unless it stays, which STOP tells at once.
 */
export function splitRuns(events: readonly QmpEvent[]): QmpEvent[][] {
  const runs: QmpEvent[][] = [];
  let run: QmpEvent[] = [];
  let isRunning = false;
  for (const event of events) {
    const isNext =
      (event.event === 'RESUME' && isRunning) ||
      (run.at(-1)?.event === 'SHUTDOWN' && event.event !== 'STOP');
    if (isNext) {
      runs.push(run);
      run = [];
      isRunning = false;
    }
    if (event.event === 'RESUME') isRunning = true;
    if (event.event === 'STOP') isRunning = false;
    run.push(event);
  }
  if (run.length > 0) runs.push(run);
  return runs;
}

/** Whether a run's events are there from its beginning: one that was started paused has said nothing. */
export function isWhole(run: readonly QmpEvent[]): boolean {
  return run[0]?.event === 'RESUME';
}

/** What is known of one start among others that have the same log. */
export interface RunBounds {
  /** When its process started; `null`: not known. */
  startedAt: Date | null;
  /** What came up to then is another's; `null`: nothing is known of that. */
  after: Date | null;
  /** When it was seen to be there; `null`: it was not. */
  seenAt: Date | null;
  /** When it had ended at the latest; `null`: not known. */
  endedAt: Date | null;
}

/** Its own events, of a log that others have written to before and after it. */
export function runOf(
  events: readonly QmpEvent[],
  { startedAt, after, seenAt, endedAt }: RunBounds,
): QmpEvent[] {
  const start = startedAt?.getTime() ?? -Infinity;
  const until = endedAt?.getTime() ?? Infinity;
  const isOwn = ({ event, at }: QmpEvent) => {
    if (at === null) return true;
    const from = event === 'RESUME' ? start - STARTING_MS : start + STARTING_MS;
    return at.getTime() >= Math.max(from, later(after)) && at.getTime() <= until;
  };
  const runs = splitRuns(events.filter(isOwn));
  if (startedAt !== null || after !== null || seenAt === null) return runs[0] ?? [];
  // When it started is not known: it was there then, so that the last one that had begun is its own.
  const begun = runs.filter(([first]) => (first?.at?.getTime() ?? 0) <= seenAt.getTime());
  return begun.at(-1) ?? runs[0] ?? [];
}

function later(after: Date | null): number {
  return after === null ? -Infinity : after.getTime() + 1;
}
