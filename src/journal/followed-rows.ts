import { type JournalRow, seqOf } from './rows.js';
import type { SegmentReader } from './segment-reader.js';

const NEWLINE = 0x0a;

/** What a row begins with. */
const START = /^\{"seq":(\d+),/;

/** More than that. */
const START_BYTES = 32;

/** The rows of the segment that is being followed, which may be read once more. */
export class FollowedRows {
  #first = -1;
  readonly #keys = new Set<string>();

  /** Takes a row of the segment with this number; `false`: it was taken before. */
  take(first: number, row: JournalRow): boolean {
    if (first !== this.#first) {
      this.#first = first;
      this.#keys.clear();
    }
    const { size } = this.#keys;
    return this.#keys.add(keyOf(row)).size > size;
  }

  has(first: number, row: JournalRow): boolean {
    return first === this.#first && this.#keys.has(keyOf(row));
  }
}

/** Without its number, which is another one if it was taken back and written again. */
function keyOf(row: JournalRow): string {
  return row.event === 'exit' ? row.id : JSON.stringify({ ...row, seq: 0 });
}

/** The number of the row after these lines; `null`: unknown. */
export function seqAfter(lines: Buffer): number | null {
  const begin = lines.lastIndexOf(NEWLINE, -2) + 1;
  const seq = seqOf(lines.toString('utf8', begin, lines.length - 1));
  return seq === null ? null : seq + 1;
}

/** Whether a row with this number begins here, or nothing yet. `seq`: `null`: any may. */
export async function isSeqAt(
  reader: SegmentReader,
  at: number,
  seq: number | null,
): Promise<boolean> {
  if (seq === null) return true;
  const text = (await reader.read(at, at + START_BYTES)).toString('latin1');
  const found = START.exec(text)?.[1];
  return found === undefined ? text.length < START_BYTES : Number(found) === seq;
}
