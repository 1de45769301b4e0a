import type { SignalSender } from '../events/signal-event.js';
import { clientIn, isClientOf } from '../trace/clients.js';
import { unitsOf } from '../where/whereabouts.js';

import type { JournalQuery } from './query.js';
import { readEnds, readEndsBackwards, readJournal } from './read-journal.js';
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
  /** Other ends by the same process, within seconds. */
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
  gaps: JournalGap[];
}

/** What is within seconds. */
const SECONDS_MS = 10_000;

const DAY_MS = 86_400_000;

/** The most earlier ends to look for. */
export const MOST_BEFORE = 10;

/** How soon after each other the processes of a unit end. */
const TOGETHER_MS = 10_000;

/**
 * The latest end of the subject, `null`: there is none. Of a unit or container, it is the end of what was started
 * first among those that ended together: what it ran, and not what that ran.
 */
export async function findEnd(
  dir: string,
  subject: Subject,
  since: Date | undefined,
): Promise<JournalExit | null> {
  const isPlace = subject.unit !== undefined || subject.container !== undefined;
  let best: JournalExit | null = null;
  let latestMs: number | null = null;
  /** By its name, when the last run of each program began. */
  const begun = new Map<string | undefined, number>();
  for await (const row of readEndsBackwards({ dir, ...subject, ...timesOf(since) })) {
    if (row.event !== 'exit') continue;
    if (!isPlace) return row;
    const at = row.exitedAt.getTime();
    latestMs ??= at;
    if (latestMs - at > TOGETHER_MS) break;
    // What was over before the same program began again is of an earlier run.
    const [name] = namesOf(row);
    const next = begun.get(name);
    if (next !== undefined && row.exitedAt.getTime() <= next) continue;
    begun.set(name, Math.min(next ?? Infinity, startOf(row)));
    if (best === null || startOf(row) < startOf(best)) best = row;
  }
  return best;
}

/** All ends of the subject, the oldest first. */
export async function* findEnds(
  dir: string,
  subject: Subject,
  since: Date | undefined,
): AsyncGenerator<JournalExit> {
  for await (const row of readEnds({ dir, ...subject, ...timesOf(since) })) {
    if (row.event === 'exit') yield row;
  }
}

/** Everything that the journal has about an end. */
export async function storyOf(dir: string, end: JournalExit): Promise<Story> {
  const ender = enderOf(end);
  const story: Story = {
    ...{ end, ender, enderEnd: null, sameEnder: [], likelySameEnder: [] },
    ...{ samePlace: [], before: [], clients: [], gaps: [] },
  };
  const sentMs = (ender?.sentAt ?? end.exitedAt).getTime();
  const since = new Date(Math.min(sentMs, end.exitedAt.getTime()) - SECONDS_MS);
  const until = new Date(end.exitedAt.getTime() + SECONDS_MS);
  for await (const row of readJournal({ dir, since, until })) take(story, row, sentMs);
  if (ender?.pid != null && ender.pid !== end.pid) {
    story.enderEnd ??= await endOf(dir, ender.pid, ender.sentAt);
  }
  const isSure = (row: JournalExit) => isSameEnder(story, row);
  story.sameEnder = story.likelySameEnder.filter(isSure);
  story.likelySameEnder = story.likelySameEnder.filter((row) => !isSure(row));
  story.before = await endsBefore(dir, end);
  return story;
}

/** Adds a row of the seconds around the end to what it belongs to. */
function take(story: Story, row: JournalRow, sentMs: number): void {
  const { end, ender } = story;
  if (row.event === 'gap') story.gaps.push(row);
  if (row.event !== 'exit' || row.id === end.id) return;
  if (ender?.pid != null && row.pid === ender.pid && isOf(row, ender)) story.enderEnd = row;
  if (seemsSame(ender, enderOf(row))) story.likelySameEnder.push(row);
  else if (isSamePlace(row, end)) story.samePlace.push(row);
  const reason = ender?.onBehalfReason ?? null;
  const isThen = startOf(row) <= sentMs && row.exitedAt.getTime() >= sentMs - SECONDS_MS / 2;
  if (reason === null || !isThen) return;
  const client = clientIn(namesOf(row), row.commandLine);
  if (client !== null && isClientOf(reason, [client])) story.clients.push(row);
}

/** Whether nothing speaks against it that both are the same process. */
function seemsSame(one: SignalSender | null, other: SignalSender | null): boolean {
  if (one?.pid == null || other?.pid == null) return false;
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
  if (by.pid === 1) return bootOf(row) === bootOf(end);
  const parents = (sender: SignalSender) => sender.ancestors?.map(({ pid }) => pid).join();
  const lives = ({ sentAt }: SignalSender) =>
    enderEnd?.startedAt != null && enderEnd.startedAt <= sentAt && sentAt <= enderEnd.exitedAt;
  return enderEnd?.pid === by.pid && parents(by) === parents(ender) && lives(by) && lives(ender);
}

/** The first part of an id. */
function bootOf({ id }: JournalExit): string {
  return id.split('-', 1).join();
}

function isSamePlace(row: JournalExit, end: JournalExit): boolean {
  if (end.cgroup === null || end.cgroup === '/' || row.cgroup === null) return false;
  return row.cgroup === end.cgroup || isSameUnit(row, end);
}

/** Where no cgroup tells programs of one name apart: of the same user, and started by the same program. */
function isAlike(row: JournalExit, end: JournalExit): boolean {
  if (row.cgroup !== end.cgroup || (end.cgroup !== null && end.cgroup !== '/')) return false;
  return row.uid === end.uid && row.parentName === end.parentName && row.program === end.program;
}

/** Users, containers and machines may have units of the same name. A slice has everything of a user. */
function isSameUnit(row: JournalExit, end: JournalExit): boolean {
  const pathOf = ({ cgroup, container, pod, machine }: JournalExit) =>
    [...unitsOf(cgroup).units, container?.id, pod?.uid, machine?.name].join('/');
  return end.unit !== null && pathOf(row) === pathOf(end);
}

/** Whether this is the process that sent the signal, and not a later one with its pid. */
function isOf(row: JournalExit, { sentAt }: SignalSender): boolean {
  const ms = sentAt.getTime();
  // A clock that is set makes times of one process differ by milliseconds.
  return startOf(row) <= ms + 10 && row.exitedAt.getTime() >= ms - 10;
}

/** The end of the process that had this pid then. */
async function endOf(dir: string, pid: number, then: Date): Promise<JournalExit | null> {
  for await (const row of readEnds({ dir, pid, since: then })) {
    if (row.event !== 'exit') continue;
    return row.startedAt !== null && row.startedAt.getTime() <= then.getTime() + 10 ? row : null;
  }
  return null;
}

async function endsBefore(dir: string, end: JournalExit): Promise<JournalExit[]> {
  const name = namesOf(end).find((each) => each !== '');
  if (name === undefined) return [];
  const { unit } = end;
  const query = {
    ...{ dir, name: literally(name), since: new Date(end.exitedAt.getTime() - DAY_MS) },
    ...(unit === null ? {} : { unit }),
    until: end.exitedAt,
  };
  const before: JournalExit[] = [];
  for await (const row of readEndsBackwards(query)) {
    const isBefore = row.event === 'exit' && row.seq < end.seq;
    if (!isBefore || !(isSamePlace(row, end) || isAlike(row, end))) continue;
    // What ran beside it was not started again.
    if (row.exitedAt.getTime() > startOf(end)) continue;
    before.push(row);
    if (before.length === MOST_BEFORE) break;
  }
  return before;
}

/** A pattern for this name alone. */
function literally(name: string): string {
  return name.replace(/[*?[]/g, '[$&]');
}

function startOf({ startedAt, exitedAt }: JournalExit): number {
  return (startedAt ?? exitedAt).getTime();
}

function timesOf(since: Date | undefined): Pick<JournalQuery, 'since'> {
  return since === undefined ? {} : { since };
}
