const NEWLINE = 0x0a;

/** What an end says of its time, ahead of everything else that looks like it. */
const AT = Buffer.from('"exitedAt":"');

/** An ISO date: 2026-11-26T07:15:00.000Z. */
const DATE_BYTES = 24;

/** How many files to remember. */
const MOST_FILES = 8;

export interface Range {
  from: number;
  to: number;
}

/** The earliest and the latest time of the rows in a block, in ms; `null`: not all of them are ends. */
type Known = Range | null;

const files = new Map<string, Map<number, Known>>();

/**
 * The times of the blocks of a segment that is not compressed, as far as they were read before: who asks
 * many questions, one after the other, reads only those that may have an answer. `file` identifies it.
 */
export function plainRanges(file: string): Map<number, Known> {
  const known = files.get(file) ?? new Map<number, Known>();
  files.delete(file);
  files.set(file, known);
  for (const [oldest] of files) {
    if (files.size <= MOST_FILES) break;
    files.delete(oldest);
  }
  return known;
}

/** The times of the rows in these lines; `null`: not all of them are ends. */
export function rangeOf(lines: Buffer): Known {
  let from = Infinity;
  let to = -Infinity;
  for (let start = 0; start < lines.length;) {
    const found = lines.indexOf(NEWLINE, start);
    const end = found < 0 ? lines.length : found;
    const at = lines.indexOf(AT, start);
    const begin = at + AT.length;
    if (at < 0 || begin + DATE_BYTES > end) return null;
    const time = Date.parse(lines.toString('latin1', begin, begin + DATE_BYTES));
    if (Number.isNaN(time)) return null;
    from = Math.min(from, time);
    to = Math.max(to, time);
    start = end + 1;
  }
  return from <= to ? { from, to } : null;
}
