import { enderOf, namesOf } from './terms.js';
import { type Moment, momentOf, msBetween, startOf } from './moments.js';
import type { JournalExit } from './rows.js';

/** How soon after each other the steps of a run end. */
const TOGETHER_MS = 10_000;

/** For how long systemd may wait before it kills what is left of a run; by default, it is much less. */
const ENDING_MS = 600_000;

/**
 * The end that tells how the last run of a unit or container ended. Of processes that lived at the same time, it
 * is that of the one that was started first: what was run, and not what that ran. Of several that were run one after the
 * other, as ExecStartPre= and ExecStopPost= of systemd are, it is that of the first one that failed, or else of the one
 * that lived longest. `ends`: of the unit, the latest first. `runsSince`: when the run began that has not ended; what
 * ended since then does not count. `null`: there is none.
 */
export async function endOfLastRun(
  ends: AsyncIterable<JournalExit>,
  runsSince: Moment | null,
): Promise<JournalExit | null> {
  const steps: JournalExit[] = [];
  let latest: JournalExit | undefined;
  let first: JournalExit | undefined;
  for await (const end of ends) {
    if (runsSince !== null && msBetween(runsSince, momentOf(end)) > 0) continue;
    latest ??= end;
    first ??= end;
    const apartMs = Math.abs(msBetween(momentOf(end), momentOf(latest)));
    // Another boot is another run.
    if (!(apartMs <= (wasGivenUp(latest) ? ENDING_MS : TOGETHER_MS))) break;
    if (livedTogether(end, first)) {
      if (msBetween(startOf(first), startOf(end)) < 0) first = end;
      continue;
    }
    if (apartMs > TOGETHER_MS) continue;
    if (isOfEarlierRun(first, steps)) return tellingOf(steps);
    steps.push(first);
    first = end;
  }
  if (first !== undefined && !isOfEarlierRun(first, steps)) steps.push(first);
  return tellingOf(steps);
}

/** What has ended it had waited for it: the run may have ended long before. */
function wasGivenUp(end: JournalExit): boolean {
  const { sender } = end;
  return sender?.signal === 'SIGKILL' && sender.onBehalfReason === 'service-manager';
}

/** `end`: the earlier one of both. */
function livedTogether(end: JournalExit, first: JournalExit): boolean {
  return end === first || msBetween(startOf(first), momentOf(end)) > 0;
}

/** The same program was run again. */
function isOfEarlierRun(step: JournalExit, later: readonly JournalExit[]): boolean {
  const [name] = namesOf(step);
  return later.some((each) => namesOf(each)[0] === name);
}

/** `steps`: the last one first. */
function tellingOf(steps: readonly JournalExit[]): JournalExit | null {
  const failed = steps.findLast(isOfInterest);
  if (failed !== undefined) return failed;
  const lived = (step: JournalExit) => msBetween(startOf(step), momentOf(step));
  return steps.reduce<JournalExit | null>(
    (best, step) => (best === null || lived(step) >= lived(best) ? step : best),
    null,
  );
}

/** It did not just go well: it failed, was killed, asked to end, or nobody saw how it ended. */
export function isOfInterest(end: JournalExit): boolean {
  return end.how !== 'exited' || end.exitCode !== 0 || enderOf(end) !== null;
}
