import type { JournalDirectory } from './journal-directory.js';
import { endOfLastRun, isOfInterest } from './last-run.js';
import { momentOf, msBetween } from './moments.js';
import { isOwnEnd, isOwnName } from './own-ends.js';
import { exitsIn, type Question, readEnds, readEndsBackwards } from './read-journal.js';
import type { JournalExit } from './rows.js';
import type { Later, Run, Story, Subject } from './story.js';

/** The last end of a subject. */
export interface LastEnd {
  end: JournalExit;
  /** `hasEnd`: it is an end of a process in this run, because the journal has none of an earlier one. */
  run: Story['run'];
  later: Later | null;
}

/** Says since when a unit or container runs, by an end of a process in it; `null`: it does not, or nobody knows. */
export type RunsSince = (subject: Subject, end: JournalExit) => Run | null;

/** How exactly systemd and a journal agree on the time, in ms. */
const CLOCK_MS = 10_000;

/** What a recorder remembers comes so much later than what a monitor is told. */
const LATE_MS = 10_000;

/** How many ends to look at for one of interest. */
const MOST_LOOKED_AT = 20_000;

/**
 * The end that somebody asks about, `null`: there is none. Of a unit or container, it is the one that tells how its last run
 * ended, if there was one. Of a name, the last one that did not just go well: that of a process that was killed, failed, was
 * asked to end, or ended unseen; without one, the last one. Nobody asks about ends of exitwatch itself.
 */
export async function findEnd(
  journal: JournalDirectory,
  subject: Subject,
  since: Date | undefined,
  runsSince: RunsSince = () => null,
): Promise<LastEnd | null> {
  const query = { ...subject, ...timesOf(since) };
  if (subject.unit === undefined && subject.container === undefined) {
    return endOfName(journal, query);
  }
  const { latest } = await latestOf(journal, query, () => true);
  if (latest === null) return null;
  const run = runsSince(subject, latest);
  const wallMs = run?.moment.wallMs;
  const until = wallMs === undefined ? {} : { until: new Date(wallMs + CLOCK_MS) };
  const ends = exitsIn(readEndsBackwards(journal, { ...query, ...until }));
  const end = await endOfLastRun(ends, run?.moment ?? null);
  return { end: end ?? latest, run: run && { at: run.at, hasEnd: end === null }, later: null };
}

async function endOfName(journal: JournalDirectory, query: Question): Promise<LastEnd | null> {
  const { name } = query;
  const isOthers = (end: JournalExit) => isOwnName(name ?? '') || !isOwnEnd(end);
  const isAsked = (end: JournalExit) => isOthers(end) && isOfInterest(end);
  // A pid is that of one process after the other.
  if (name !== undefined) {
    const { latest, later } = await latestOf(journal, query, isAsked, isOthers);
    const isPassed = later.count > 0 || later.own > 0;
    if (latest !== null) return { end: latest, run: null, later: isPassed ? later : null };
    const { latest: good, later: before } = await latestOf(journal, query, isOthers, isOthers);
    if (good !== null) {
      const { own } = before;
      const isTold = own > 0 || later.isCut;
      return { end: good, run: null, later: isTold ? { count: 0, own, isCut: later.isCut } : null };
    }
  }
  const { latest } = await latestOf(journal, query, () => true);
  return latest && { end: latest, run: null, later: null };
}

/**
 * The latest end of this kind, and what was passed over.
 *
 * @param isIt whether it is of this kind
 * @param isCounted whether it is not one of exitwatch itself
 */
async function latestOf(
  journal: JournalDirectory,
  query: Question,
  isIt: (end: JournalExit) => boolean,
  isCounted: (end: JournalExit) => boolean = () => true,
) {
  let latest: JournalExit | null = null;
  let looked = 0;
  const later: Later = { count: 0, own: 0, isCut: false };
  for await (const end of exitsIn(readEndsBackwards(journal, query))) {
    // Rows are nearly in order.
    if (latest !== null && msBetween(momentOf(end), momentOf(latest)) > LATE_MS) break;
    if (++looked > MOST_LOOKED_AT) {
      later.isCut = true;
      break;
    }
    if (!isIt(end)) {
      if (latest === null) later[isCounted(end) ? 'count' : 'own']++;
    } else if (latest === null || msBetween(momentOf(latest), momentOf(end)) > 0) {
      latest = end;
    }
  }
  return { latest, later };
}

/** All ends of the subject, the oldest first. */
export async function* findEnds(
  journal: JournalDirectory,
  subject: Subject,
  since: Date | undefined,
): AsyncGenerator<JournalExit> {
  yield* exitsIn(readEnds(journal, { ...subject, ...timesOf(since) }));
}

function timesOf(since: Date | undefined): Pick<Question, 'since'> {
  return since === undefined ? {} : { since };
}
