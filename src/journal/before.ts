import { literally } from '../common/name-pattern.js';

import type { JournalDirectory } from './journal-directory.js';
import { type Missing, missingAmong } from './missing.js';
import { momentOf, msBetween, startOf } from './moments.js';
import { isOwnEnd } from './own-ends.js';
import { isAlike, isSamePlace } from './places.js';
import { readEndsBackwards, readOthers } from './read-journal.js';
import type { JournalExit } from './rows.js';
import { namesOf } from './terms.js';

/** The most earlier ends to look for. */
export const MOST_BEFORE = 10;

const DAY_MS = 86_400_000;

/**
 * The earlier ends of the same program in the same place, within a day; the latest first. What ran beside another one
 * was not started after it, and is not among them.
 */
export async function endsBefore(
  journal: JournalDirectory,
  end: JournalExit,
): Promise<JournalExit[]> {
  const name = namesOf(end).find((each) => each !== '');
  if (name === undefined) return [];
  const { unit } = end;
  const query = {
    ...{ name: literally(name), since: dayBeforeOf(end) },
    ...(unit === null ? {} : { unit }),
    until: end.exitedAt,
  };
  const before: JournalExit[] = [];
  for await (const row of readEndsBackwards(journal, query)) {
    if (row.event !== 'exit' || row.seq >= end.seq || isOwnEnd(row)) continue;
    if (!isSamePlace(row, end) && !isAlike(row, end)) continue;
    if (msBetween(momentOf(row), startOf(before.at(-1) ?? end)) < 0) continue;
    before.push(row);
    if (before.length === MOST_BEFORE) break;
  }
  return before;
}

/** What the journal lacks of that day, and may be one of them. */
export async function missingBefore(journal: JournalDirectory, end: JournalExit): Promise<Missing> {
  const rows = readOthers(journal, { since: dayBeforeOf(end), until: end.exitedAt });
  return missingAmong(rows, namesOf(end).map(literally));
}

export function dayBeforeOf({ exitedAt }: JournalExit): Date {
  return new Date(exitedAt.getTime() - DAY_MS);
}
