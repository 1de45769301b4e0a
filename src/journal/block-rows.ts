import type { Query } from './query.js';
import { type JournalRow, MOST_LINE_BYTES, parseRow } from './rows.js';

const NEWLINE = 0x0a;

/** The rows of a block that match. */
export function* rowsIn(bytes: Buffer, query: Query): Generator<JournalRow> {
  for (const line of linesIn(bytes, query.texts)) {
    if (!query.mayBe(line)) continue;
    const row = parseRow(line);
    if (row !== null && query.matches(row)) yield row;
  }
}

/** The lines that have one of these texts. */
function* linesIn(bytes: Buffer, texts: readonly Buffer[] | null): Generator<string> {
  const next = texts?.map((text) => bytes.indexOf(text)) ?? [];
  for (let start = 0; start < bytes.length;) {
    if (texts !== null) {
      const hits = next.filter((at) => at >= 0);
      if (hits.length === 0) return;
      start = bytes.lastIndexOf(NEWLINE, Math.min(...hits)) + 1;
    }
    const found = bytes.indexOf(NEWLINE, start);
    const end = found < 0 ? bytes.length : found;
    if (end - start <= MOST_LINE_BYTES) yield bytes.toString('utf8', start, end);
    start = end + 1;
    texts?.forEach((text, i) => {
      const at = next[i] ?? -1;
      if (at >= 0 && at < start) next[i] = bytes.indexOf(text, start);
    });
  }
}
