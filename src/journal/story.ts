import type { SignalSender } from '../events/signal-event.js';
import { clientIn, isClientOf } from '../trace/clients.js';

import { dayBeforeOf, endsBefore, missingBefore } from './before.js';
import type { Coverage } from './coverage.js';
import type { JournalDirectory } from './journal-directory.js';
import { isEndedBy } from './child-end.js';
import { type Missing, missingAmong, NOTHING } from './missing.js';
import { areWithin, bootOf, type Moment, momentOf, msBetween, startOf } from './moments.js';
import { isOwnEnd } from './own-ends.js';
import { isSamePlace } from './places.js';
import type { JournalQuery } from './query.js';
import { exitsIn, readEnds, readRows } from './read-journal.js';
import type { JournalExit, JournalGap, JournalRow } from './rows.js';
import { enderOf, namesOf } from './terms.js';

/** What somebody asks about. */
export type Subject = Pick<JournalQuery, 'name' | 'pid' | 'unit' | 'container'>;

/** An end, and what the journal has about it. */
export interface Story {
  end: JournalExit;
  /** Who ended it: by a signal that killed it, or that asked it to exit. */
  ender: SignalSender | null;
  /** How that process itself ended; `null`: it has not, or nobody knows. */
  enderEnd: JournalExit | null;
  /** Other ends by the same process, whose signals were sent within seconds. */
  sameEnder: JournalExit[];
  /** The same, if the pid was not given to another process in between: likely. */
  likelySameEnder: JournalExit[];
  /** Other ends in the same unit or cgroup, within seconds. */
  samePlace: JournalExit[];
  /** Earlier ends of the same program in the same place, within a day; the latest first. */
  before: JournalExit[];
  /** If who ended it acts for others: what ran then, and may have asked it. Likely. */
  clients: JournalExit[];
  /** What the journal lacks of that time. */
  gaps: (JournalGap & { seq: number })[];
  /** What the journal lacks of that day, and may be one of them. */
  missingBefore: Missing;
  /** If the journal began within that day: when. */
  beginsAt: Date | null;
  /** Which ends it was given since that day, in the words of its writers, each for a part of it; `null`: all. */
  keeps: readonly (readonly string[] | null)[] | null;
  /** What the journal lacks since then: there may be a later end of what was asked for. `null`: it was not asked for. */
  missingSince: Missing | null;
  /** A run of the unit or container that was asked for, which has not ended; `null`: there is none, or nobody knows. */
  run: (Pick<Run, 'at'> & { hasEnd: boolean }) | null;
  /**
   * The end of its child that explains it: a shell exits with 128+n after signal n has killed its child, and `timeout`,
   * `sudo` or `npm` end as what they have run. Likely. `null`: there is none.
   */
  child: Story | null;
  /** Later ends of this name; `null`: there is none, or it was not asked for the last one. */
  later: Later | null;
}

/** What was passed over to find an end of a name that somebody asks about. */
export interface Later {
  /** Later ends that exited with 0 though nobody had asked them to. */
  count: number;
  /** Later ends that have the names of exitwatch's own commands and helpers, which anybody can take. */
  own: number;
  /** There were so many that earlier ones were not looked at: one of them may be of interest. */
  isCut: boolean;
}

/** A run of a unit or container that has not ended. */
export interface Run {
  /** When it began. */
  at: Date;
  /** All earlier ones had ended by then. */
  moment: Moment;
}

/** What is within seconds. */
const SECONDS_MS = 10_000;

/** Processes start and end at moments that are known to so many ms without the eBPF filter. */
const BLUR_MS = 10;

/** The same with it: to 1 ms each. */
const EXACT_MS = 2;

/** How long before a signal its client may have ended, in ms. */
const CLIENT_MS = 5000;

/** How many wrappers in each other to look through: `sudo`, `npm`, a shell. */
const MOST_NESTED = 4;

/** Everything that the journal has about an end. `asked`: it is the last one of this subject. */
export async function storyOf(
  journal: JournalDirectory,
  end: JournalExit,
  asked: Subject | null,
  coverage: Coverage,
  depth = 0,
): Promise<Story> {
  const ender = enderOf(end);
  const story: Story = {
    ...{ end, ender, enderEnd: null, sameEnder: [], likelySameEnder: [] },
    ...{ samePlace: [], before: [], clients: [], gaps: [], missingBefore: NOTHING, beginsAt: null },
    ...{ keeps: null, missingSince: null, run: null, later: null },
    child: null,
  };
  const { exitedAt } = end;
  const sentMs = (ender?.sentAt ?? exitedAt).getTime();
  const since = new Date(Math.min(sentMs, exitedAt.getTime()) - SECONDS_MS);
  const until = new Date(exitedAt.getTime() + SECONDS_MS);
  let child: JournalExit | null = null;
  for await (const row of readRows(journal, { since, until })) {
    take(story, row);
    if (row.event !== 'exit' || !isEndedBy(row, end)) continue;
    if (child === null || msBetween(momentOf(child), momentOf(row)) > 0) child = row;
  }
  if (child !== null && depth < MOST_NESTED) {
    story.child = await storyOf(journal, child, null, coverage, depth + 1);
  }
  if (ender?.pid != null && ender.pid !== end.pid) {
    story.enderEnd = await endOf(journal, ender.pid, story);
  }
  const isSure = (row: JournalExit) => isSameEnder(story, row);
  story.sameEnder = story.likelySameEnder.filter(isSure);
  story.likelySameEnder = story.likelySameEnder.filter((row) => !isSure(row));
  const told = story.gaps.map(({ seq }) => seq);
  story.before = await endsBefore(journal, end);
  story.missingBefore = await missingBefore(journal, end);
  const dayBefore = dayBeforeOf(end);
  const { begins } = coverage;
  if (begins !== null && begins > dayBefore) story.beginsAt = begins;
  const keeps = coverage.kept(dayBefore, asked === null ? exitedAt : undefined);
  if (keeps.some((each) => each !== null)) story.keeps = keeps;
  if (asked !== null) {
    const names = asked.name === undefined ? [] : [asked.name];
    const later = readRows(journal, { ...asked, since: exitedAt });
    story.missingSince = await missingAmong(later, names, told);
  }
  return story;
}

/** Adds a row of the seconds around the end to what it belongs to. */
function take(story: Story, row: JournalRow): void {
  const { end, ender } = story;
  if (row.event === 'gap') story.gaps.push(row);
  if (row.event !== 'exit' || row.id === end.id) return;
  const isSender = ender?.pid === row.pid && isEnder(row, story);
  if (isNearSameEnder(row, story)) story.likelySameEnder.push(row);
  else if (
    !isOwnEnd(row) &&
    isSamePlace(row, end) &&
    areWithin(momentOf(row), momentOf(end), SECONDS_MS)
  ) {
    story.samePlace.push(row);
  }
  const reason = ender?.onBehalfReason ?? null;
  if (reason === null || isSender || !mayHaveAsked(row, story)) return;
  const client = clientIn(namesOf(row), row.commandLine);
  if (client !== null && isClientOf(reason, [client])) story.clients.push(row);
}

/** When its signal was sent; without one, when it ended. */
function sentOf(end: JournalExit) {
  return momentOf(end, enderOf(end)?.sentAt);
}

/** Whether it ran when the signal was sent, or shortly before. */
function mayHaveAsked(row: JournalExit, { end }: Story): boolean {
  const sent = sentOf(end);
  return msBetween(startOf(row), sent) >= 0 && msBetween(sent, momentOf(row)) >= -CLIENT_MS;
}

/** Whether who ended it may have ended the other, too, by a signal of that time. */
function isNearSameEnder(row: JournalExit, { end, ender }: Story): boolean {
  return seemsSame(ender, enderOf(row)) && areWithin(sentOf(row), sentOf(end), SECONDS_MS);
}

/** Whether nothing speaks against it that both are the same process. */
function seemsSame(one: SignalSender | null, other: SignalSender | null): boolean {
  if (one?.pid == null || other?.pid == null) return false;
  if (one.startedAt !== null && other.startedAt !== null) {
    const apartMs = Math.abs(one.startedAt.getTime() - other.startedAt.getTime());
    if (apartMs > BLUR_MS) return false;
  }
  return one.pid === other.pid && one.name === other.name && one.uid === other.uid;
}

/**
 * Whether the process that ended the row is surely who ended the other: it had the pid from before
 * the first signal until after the last one.
 */
function isSameEnder({ end, ender, enderEnd }: Story, row: JournalExit): boolean {
  const by = enderOf(row);
  if (ender?.pid == null || by?.pid == null) return false;
  // Init has its pid until the next boot.
  if (by.pid === 1) return bootOf(row.id) === bootOf(end.id);
  const parents = (sender: SignalSender) => sender.ancestors?.map(({ pid }) => pid).join();
  const lives = (victim: JournalExit) =>
    enderEnd?.startedAt != null &&
    msBetween(startOf(enderEnd), sentOf(victim)) >= 0 &&
    msBetween(sentOf(victim), momentOf(enderEnd)) >= 0;
  return enderEnd?.pid === by.pid && parents(by) === parents(ender) && lives(row) && lives(end);
}

/** Whether this may be the process that sent the signal, and is no other one with its pid as far as its start tells. */
function isEnder(row: JournalExit, { end, ender }: Story): boolean {
  if (row.startedAt === null || ender?.pid == null) return false;
  const sent = sentOf(end);
  if (ender.startedAt === null) {
    return msBetween(startOf(row), sent) >= 0 && msBetween(sent, momentOf(row)) >= 0;
  }
  const exactMs = row.exitedNs === null ? BLUR_MS : EXACT_MS;
  return (
    areWithin(startOf(row), momentOf(end, ender.startedAt), exactMs) &&
    msBetween(sent, momentOf(row)) >= -exactMs
  );
}

/**
 * The end of the process that sent the signal; `null`: it is not known, or a later process with its pid started in
 * the same moment.
 */
async function endOf(
  journal: JournalDirectory,
  pid: number,
  story: Story,
): Promise<JournalExit | null> {
  const sent = sentOf(story.end);
  const since = new Date(sent.wallMs - BLUR_MS);
  const found: JournalExit[] = [];
  for await (const row of exitsIn(readEnds(journal, { pid, since }))) {
    if (isEnder(row, story)) found.push(row);
    // It is of a later process, and rows are nearly in order.
    if (msBetween(sent, startOf(row)) > SECONDS_MS) break;
  }
  const [only = null, ...others] = found;
  return others.length === 0 ? only : null;
}
