/** The files of a segment. */
export interface SegmentFiles {
  /** The number of its first row. */
  first: number;
  isPlain: boolean;
  isPacked: boolean;
  hasIndex: boolean;
}

const DIGITS = 16;
const NAME = new RegExp(`^(\\d{${DIGITS}})\\.(jsonl|jsonl\\.gz|index)$`);

/** The rows of a segment, as they were written. */
export function plainName(first: number): string {
  return `${stem(first)}.jsonl`;
}

/** The same, compressed: gzip members, one for each block. */
export function packedName(first: number): string {
  return `${stem(first)}.jsonl.gz`;
}

export function indexName(first: number): string {
  return `${stem(first)}.index`;
}

function stem(first: number): string {
  return String(first).padStart(DIGITS, '0');
}

/** The segments of a directory with these entries, oldest first. */
export function segmentsIn(entries: readonly string[]): SegmentFiles[] {
  const found = new Map<number, SegmentFiles>();
  for (const entry of entries) {
    const [, digits, kind] = NAME.exec(entry) ?? [];
    if (digits === undefined) continue;
    const first = Number(digits);
    const files = found.get(first) ?? { first, isPlain: false, isPacked: false, hasIndex: false };
    if (kind === 'jsonl') files.isPlain = true;
    else if (kind === 'index') files.hasIndex = true;
    else files.isPacked = true;
    found.set(first, files);
  }
  return [...found.values()]
    .filter(({ isPlain, isPacked }) => isPlain || isPacked)
    .sort((a, b) => a.first - b.first);
}
