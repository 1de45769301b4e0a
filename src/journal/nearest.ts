import { basename } from 'node:path';

import { NamePattern } from '../common/name-pattern.js';
import { ownedText } from '../where/owned-name.js';
import { ownedUnitOf } from '../where/whereabouts.js';

import type { JournalDirectory } from './journal-directory.js';
import { isOfInterest } from './last-run.js';
import { isOwnEnd } from './own-ends.js';
import { exitsIn, readEndsBackwards } from './read-journal.js';
import type { JournalExit } from './rows.js';
import { namesOf } from './terms.js';

/** How many ends to look at. */
const MOST_LOOKED_AT = 50_000;

/** How many names to offer. */
const MOST_NAMES = 5;

/** A shorter name is in too many others. */
const LEAST_COMMON = 3;

/** What a journal has that resembles a name which no end has. */
export interface Nearest {
  /** The last end of a process that called itself so, as in {@link findEnd}; `null`: there is none. */
  called: JournalExit | null;
  /** Names and units that are there, the nearest first. */
  names: string[];
}

export const NOTHING_NEAR: Nearest = { called: null, names: [] };

/**
 * Looks where the index does not help: at what processes called themselves, which they can choose, and at similar names.
 *
 * @param word as somebody has asked
 */
export async function nearest(
  journal: JournalDirectory,
  word: string,
  since: Date | undefined,
): Promise<Nearest> {
  const pattern = new NamePattern([word]);
  const names = new Map<string, number>();
  let called: JournalExit | null = null;
  let good: JournalExit | null = null;
  let looked = 0;
  const query = since === undefined ? {} : { since };
  for await (const end of exitsIn(readEndsBackwards(journal, query))) {
    if (++looked > MOST_LOOKED_AT) break;
    if (isOwnEnd(end)) continue;
    const titles = titlesOf(end);
    if (pattern.matches(titles)) {
      good ??= end;
      if (isOfInterest(end)) called ??= end;
    }
    const unit = ownedUnitOf(end.cgroup);
    const all = [...namesOf(end), ...titles, ...(unit === null ? [] : [ownedText(unit)])];
    for (const name of all) {
      if (!names.has(name)) names.set(name, distance(word, name));
    }
  }
  const near = [...names].filter(([, away]) => away < Infinity).sort(([, a], [, b]) => a - b);
  return { called: called ?? good, names: near.slice(0, MOST_NAMES).map(([name]) => name) };
}

/** What a process called itself: the first argument, its file name, and the first word of what it wrote in place of both. */
function titlesOf({ commandLine }: JournalExit): string[] {
  const [called] = commandLine ?? [];
  if (called === undefined || called === '') return [];
  const [word = ''] = called.split(/:? /, 1);
  return [...new Set([called, basename(called), basename(word).replace(/^-/, '')])];
}

/** How unlike two names are; `Infinity`: they have nothing in common. */
function distance(one: string, other: string): number {
  const [a, b] = [one.toLowerCase(), other.toLowerCase()];
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  if (short.length >= LEAST_COMMON && long.includes(short))
    return (long.length - short.length) / 100;
  const most = Math.ceil(short.length / 4);
  const away = long.length - short.length > most ? Infinity : edits(a, b);
  return away <= most ? away : Infinity;
}

/** Levenshtein's distance. */
function edits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      next.push(
        Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (isSame ? 0 : 1)),
      );
    }
    row = next;
  }
  return row[b.length] ?? Infinity;
}
