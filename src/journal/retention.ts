import { statSync } from 'node:fs';
import { join } from 'node:path';

import type { JournalFolder } from './journal-folder.js';
import {
  indexName,
  packedName,
  plainName,
  type SegmentFiles,
  segmentsIn,
} from './segment-files.js';
import { rangeIn } from './segment-index.js';

/** How much of a journal to keep. */
export interface Retention {
  bytes: number;
  ms: number;
}

/**
 * How many segments may go because of their age for each one that begins: if somebody sets the clock a
 * year ahead, a journal must not lose all at once.
 */
export const MOST_BY_AGE = 2;

/**
 * Removes the oldest segments until the rest fits, never the one that is written to, `active`; because
 * of their age `mostByAge` at most. How many it removed because of it.
 */
export function removeOldest(
  folder: JournalFolder,
  { bytes, ms }: Retention,
  active: number | null,
  nowMs: number,
  mostByAge: number,
): number {
  const segments = segmentsIn(folder.entries).filter(({ first }) => first !== active);
  const sizes = segments.map((segment) => sizeOf(folder, segment));
  let total = sizes.reduce((sum, size) => sum + size, 0);
  if (active !== null) total += bytesOf(folder, plainName(active));
  let byAge = 0;
  for (const [i, segment] of segments.entries()) {
    if (total <= bytes) {
      const latest = latestOf(folder, segment);
      if (latest === null || latest >= nowMs - ms || byAge === mostByAge) return byAge;
      byAge++;
    }
    total -= sizes[i] ?? 0;
    for (const name of [plainName, packedName, indexName]) folder.remove(name(segment.first));
  }
  return byAge;
}

function sizeOf(folder: JournalFolder, { first }: SegmentFiles): number {
  return [plainName, packedName, indexName].reduce(
    (sum, name) => sum + bytesOf(folder, name(first)),
    0,
  );
}

function bytesOf(folder: JournalFolder, name: string): number {
  return statSync(join(folder.path, name), { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * When its last row was, at the latest; `null`: not known before it is compressed. It was compressed later, so one
 * row of a moment when the clock was ahead does not keep it, and what lies behind it, for ever.
 */
function latestOf(
  folder: JournalFolder,
  { first, isPacked, hasIndex }: SegmentFiles,
): number | null {
  if (!isPacked) return null;
  const name = join(folder.path, packedName(first));
  const packedMs = statSync(name, { throwIfNoEntry: false })?.mtimeMs ?? null;
  const to = hasIndex ? (rangeIn(folder.read(indexName(first)) ?? '')?.to ?? null) : null;
  return packedMs === null || to === null ? packedMs : Math.min(packedMs, to);
}
