import { enderOf, namesOf } from './terms.js';
import { areWithin, momentOf, msBetween, startOf } from './moments.js';
import type { JournalExit } from './rows.js';

/** How soon after each other the processes of a run end. */
const TOGETHER_MS = 10_000;

/**
 * The end that tells how the last run of a unit or container ended. Of processes that lived at the same time, it
 * is that of the one that was started first: what was run, and not what that ran. Of several that were run one after the
 * other, as ExecStartPre= and ExecStopPost= of systemd are, it is that of the first one that failed, or else of the one
 * that lived longest. `ends`: of the unit, the latest first. `null`: there is none.
 */
export async function endOfLastRun(ends: AsyncIterable<JournalExit>): Promise<JournalExit | null> {
  const steps: JournalExit[] = [];
  let latest: JournalExit | undefined;
  let first: JournalExit | undefined;
  for await (const end of ends) {
    latest ??= end;
    if (!areWithin(momentOf(latest), momentOf(end), TOGETHER_MS)) break;
    if (first !== undefined && !livedTogether(end, first)) {
      if (isOfEarlierRun(first, steps)) return tellingOf(steps);
      steps.push(first);
      first = undefined;
    }
    if (first === undefined || msBetween(startOf(first), startOf(end)) < 0) first = end;
  }
  if (first !== undefined && !isOfEarlierRun(first, steps)) steps.push(first);
  return tellingOf(steps);
}

/** `end`: the earlier one of both. */
function livedTogether(end: JournalExit, first: JournalExit): boolean {
  return msBetween(startOf(first), momentOf(end)) > 0;
}

/** The same program was run again. */
function isOfEarlierRun(step: JournalExit, later: readonly JournalExit[]): boolean {
  const [name] = namesOf(step);
  return later.some((each) => namesOf(each)[0] === name);
}

/** `steps`: the last one first. */
function tellingOf(steps: readonly JournalExit[]): JournalExit | null {
  const failed = steps.findLast(hasFailed);
  if (failed !== undefined) return failed;
  const lived = (step: JournalExit) => msBetween(startOf(step), momentOf(step));
  return steps.reduce<JournalExit | null>(
    (best, step) => (best === null || lived(step) >= lived(best) ? step : best),
    null,
  );
}

function hasFailed(end: JournalExit): boolean {
  return end.how !== 'exited' || end.exitCode !== 0 || enderOf(end) !== null;
}
