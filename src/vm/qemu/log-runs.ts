import type { QmpEvent } from './qmp-event.js';

/**
 * A process this young has logged no event but RESUME. The times of /proc and of the log may also
 * differ by this much.
 */
const STARTING_MS = 20;

/**
 * Splits an event log that several starts share into their runs. A running machine cannot resume,
 * so RESUME then begins a new run. So does any event after SHUTDOWN but STOP, which a machine that
 * lingers reports at once.
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

/** Whether events begin at a run's start: a run that starts paused logs nothing before RESUME. */
export function isWhole(run: readonly QmpEvent[]): boolean {
  return run[0]?.event === 'RESUME';
}

/** What is known about one start among others that share a log. */
export interface RunBounds {
  /** When its process started; `null` if unknown. */
  startedAt: Date | null;
  /** Events up to this time belong to another start; `null` if unknown. */
  after: Date | null;
  /** When it was seen to exist; `null`: it was not. */
  seenAt: Date | null;
  /** When it had exited at the latest; `null` if unknown. */
  endedAt: Date | null;
}

/** The events of one start, in a log that others have written to before and after it. */
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
  // Its start is unknown: of the runs begun by `seenAt`, the last one is its own.
  const begun = runs.filter(([first]) => (first?.at?.getTime() ?? 0) <= seenAt.getTime());
  return begun.at(-1) ?? runs[0] ?? [];
}

function later(after: Date | null): number {
  return after === null ? -Infinity : after.getTime() + 1;
}
