import { NamePattern } from '../common/name-pattern.js';

import type { JournalRow } from './rows.js';

/** Ends that a journal knows of, and has no rows of. */
export interface Missing {
  /** So many were lost, or fewer: with the cBPF filter, it is messages that are counted. */
  lost: number;
  /** More were lost, and nobody knows how many. */
  isMore: boolean;
  /** So many were counted, and not kept. */
  counted: number;
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
  const missing: Missing = { lost: 0, isMore: false, counted: 0 };
  for await (const row of rows) {
    if (known.includes(row.seq)) continue;
    // What was lost of signals is no end.
    if (row.event === 'gap' && row.reason !== 'trace-buffer') {
      // Those that were recovered follow.
      missing.lost += Math.max(0, (row.lost ?? 0) - row.recovered);
      missing.isMore ||= row.lost === null;
    }
    const isOfIt = (name: string | null) => name === null || pattern?.matches([name]) !== false;
    if (row.event === 'skipped' && isOfIt(row.name)) missing.counted += row.count;
  }
  return missing;
}
