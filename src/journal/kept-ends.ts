import { bytesAt, JournalDirectory } from './journal-directory.js';
import { Query } from './query.js';
import { MOST_HEADER_BYTES, parseHeader } from './rows.js';
import { indexName, plainName, type SegmentFiles } from './segment-files.js';
import { HEAD_BYTES, headIn, rangeIn } from './segment-index.js';

type Kept = readonly string[] | null;

/**
 * Which ends a journal was given at these times, in the words of its writers; each answer once.
 * `null` among them: all.
 */
export async function keptEnds(dir: string, since: Date | undefined): Promise<Kept[]> {
  const query = new Query({ dir, ...(since && { since }) });
  const directory = await JournalDirectory.open(dir);
  const kept = new Map<string, Kept>();
  for (const files of await directory.segments()) {
    const keeps = await keptIn(directory, files, query);
    if (keeps !== undefined) kept.set(JSON.stringify(keeps), keeps);
  }
  return [...kept.values()];
}

/** `undefined`: it has no rows of these times, or was removed. */
async function keptIn(
  directory: JournalDirectory,
  { first, isPlain }: SegmentFiles,
  query: Query,
): Promise<Kept | undefined> {
  const start = isPlain ? await startOf(directory, plainName(first), MOST_HEADER_BYTES) : null;
  if (start !== null) return parseHeader(start.split('\n', 1).join())?.keeps ?? null;
  const index = await startOf(directory, indexName(first), MOST_HEADER_BYTES + HEAD_BYTES);
  if (index === null) return undefined;
  const range = rangeIn(index);
  if (range !== null && !query.isInTime(range.from, range.to)) return undefined;
  return headIn(index)?.keeps ?? null;
}

async function startOf(
  directory: JournalDirectory,
  name: string,
  bytes: number,
): Promise<string | null> {
  const file = await directory.file(name);
  if (file === null) return null;
  try {
    return (await bytesAt(file, 0, bytes)).toString('utf8');
  } finally {
    await file.close();
  }
}
