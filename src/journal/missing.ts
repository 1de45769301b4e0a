import { NamePattern } from '../common/name-pattern.js';

import type { JournalGap, JournalRow } from './rows.js';
import { namesOf } from './terms.js';

/** Ends that a journal knows of, and has no rows of. */
export interface Missing {
  /** So many were lost, or fewer: with the cBPF filter, it is messages that are counted. */
  lost: number;
  /** More were lost, and nobody knows how many. */
  isMore: boolean;
  /** So many were counted, and not kept. */
  counted: number;
}

export const NOTHING: Missing = { lost: 0, isMore: false, counted: 0 };

/** How many ends a gap has lost; `null`: nobody knows. What was lost of signals is no end. */
export function lostIn({ reason, lost, recovered }: JournalGap): number | null {
  if (reason === 'trace-buffer') return 0;
  // Those that were recovered follow.
  return lost === null ? null : Math.max(0, lost - recovered);
}

/**
 * What is missing among these rows, and may be the end of a process with one of these names, or of any, if there are none.
 * `known`: numbers of rows to leave out.
 */
export async function missingAmong(
  rows: AsyncIterable<JournalRow>,
  names: readonly string[],
  known: readonly number[] = [],
): Promise<Missing> {
  const pattern = names.length === 0 ? null : new NamePattern(names);
  const missing: Missing = { ...NOTHING };
  for await (const row of rows) {
    if (known.includes(row.seq)) continue;
    if (row.event === 'gap') {
      const lost = lostIn(row);
      missing.lost += lost ?? 0;
      missing.isMore ||= lost === null;
    }
    if (row.event === 'skipped') {
      const own = namesOf(row);
      const isOfIt = own.length === 0 || pattern === null || pattern.matches(own);
      if (isOfIt) missing.counted += row.count;
    }
  }
  return missing;
}
