import { setTimeout as sleep } from 'node:timers/promises';

import { invalidOption } from '../common/options.js';

import { rowsIn } from './block-rows.js';
import { FollowedRows, isSeqAt, seqAfter } from './followed-rows.js';
import { InOrder } from './in-order.js';
import { JournalDirectory, journalError } from './journal-directory.js';
import { type JournalQuery, Query, type RowKind } from './query.js';
import type { JournalExit, JournalRow } from './rows.js';
import { type Block, isDamage, SegmentReader } from './segment-reader.js';

const NEWLINE = 0x0a;

/** How often to look for more. */
const FOLLOW_MS = 200;

/** Most bytes to read at once while following. */
const MOST_BYTES = 1024 * 1024;

/**
 * Reads a journal, the oldest rows first: ends in the order of the kernel's time stamps within a boot, gaps and
 * changes of the source between them. A writer may go on writing, compressing and removing meanwhile.
 *
 * Rejects with `ERR_EXITWATCH_NO_JOURNAL` or `ERR_EXITWATCH_JOURNAL`.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`
 * @see [The journal](../../docs/journal.md#in-a-program)
 */
export function readJournal(options: JournalQuery): AsyncIterableIterator<JournalRow> {
  const query = new Query(options);
  if (query.isNever) throw invalidOption('since must not be later than until');
  return read(query);
}

/** A question to a directory that is open, because it is asked several. @internal */
export type Question = Omit<JournalQuery, 'dir' | 'follow'>;

/** All rows that match. @internal */
export function readRows(
  directory: JournalDirectory,
  question: Question,
): AsyncIterableIterator<JournalRow> {
  return read(queryOf(directory, question, 'all'), directory);
}

/** The same for ends alone, which takes less. @internal */
export function readEnds(
  directory: JournalDirectory,
  question: Question,
): AsyncIterableIterator<JournalRow> {
  return read(queryOf(directory, question, 'ends'), directory);
}

/** The ends among rows. @internal */
export async function* exitsIn(rows: AsyncIterable<JournalRow>): AsyncGenerator<JournalExit> {
  for await (const row of rows) if (row.event === 'exit') yield row;
}

/** The same for what is no end: gaps, and what was counted. @internal */
export function readOthers(
  directory: JournalDirectory,
  question: Pick<Question, 'since' | 'until'>,
): AsyncIterableIterator<JournalRow> {
  return read(queryOf(directory, question, 'others'), directory);
}

/** Ends alone, the newest rows first, in the order of their numbers. @internal */
export function readEndsBackwards(
  directory: JournalDirectory,
  question: Question,
): AsyncIterableIterator<JournalRow> {
  return readBackwards(queryOf(directory, question, 'ends'), directory);
}

function queryOf({ path }: JournalDirectory, question: Question, kind: RowKind): Query {
  return new Query({ dir: path, ...question }, kind);
}

async function* read(
  query: Query,
  opened?: JournalDirectory,
): AsyncGenerator<JournalRow, undefined> {
  const directory = opened ?? (await JournalDirectory.open(query.dir));
  const inOrder = new InOrder();
  const followed = new FollowedRows();
  let bootId = '';
  let next = 0;
  for (;;) {
    const segments = (await directory.segments()).filter(({ first }) => first >= next);
    let isWaiting = segments.length === 0;
    for (const [i, files] of segments.entries()) {
      if (isEnded(query)) return undefined;
      const isLast = i === segments.length - 1;
      const reader = await SegmentReader.open(directory, files, query);
      // The last one may have been begun, and removed because the disk is full: it will have the same name.
      isWaiting = reader === null && isLast;
      if (!isWaiting) next = files.first + 1;
      if (reader === null) continue;
      try {
        if (reader.bootId !== bootId) yield* inOrder.end();
        bootId = reader.bootId;
        if (query.follow && isLast && reader.isPlain) {
          const isRead = yield* follow(directory, reader, query, inOrder, followed);
          if (!isRead) next = files.first;
        } else {
          for (const block of await reader.blocks()) {
            if (isEnded(query)) return undefined;
            for (const row of await matching(block, query, directory)) {
              if (!followed.has(files.first, row)) yield* inOrder.push(row);
            }
          }
        }
      } finally {
        await reader.close();
      }
    }
    if (!query.follow || isEnded(query)) break;
    if (isWaiting && !(await pause(query))) break;
  }
  yield* inOrder.end();
  return undefined;
}

/**
 * Yields the rows of a segment as they are written. Returns `true` when another segment has begun, and `false` if this
 * one was removed, or the reader is to end.
 */
async function* follow(
  directory: JournalDirectory,
  reader: SegmentReader,
  query: Query,
  inOrder: InOrder,
  followed: FollowedRows,
): AsyncGenerator<JournalRow, boolean> {
  let at = 0;
  let nextSeq: number | null = null;
  let isComplete = false;
  for (;;) {
    const size = await reader.size();
    // What could not be written whole is taken back, and written again behind other rows.
    if (size < at || !(await isSeqAt(reader, at, nextSeq))) at = 0;
    const before = at;
    while (at < size) {
      const bytes = await reader.read(at, Math.min(size, at + MOST_BYTES));
      const end = bytes.lastIndexOf(NEWLINE) + 1;
      if (end === 0) break; // being written
      const lines = bytes.subarray(0, end);
      for (const row of rowsIn(lines, query)) {
        if (followed.take(reader.first, row)) yield* inOrder.push(row);
      }
      at += end;
      nextSeq = seqAfter(lines);
    }
    if (at === before) yield* inOrder.end();
    if (isComplete) return true;
    if (isEnded(query) || (await reader.isRemoved())) return false;
    isComplete = (await directory.segments()).some(({ first }) => first > reader.first);
    if (!isComplete && !(await pause(query))) return false;
  }
}

function isEnded({ signal }: Query): boolean {
  return signal?.aborted === true;
}

/** Resolves with `false` if the loop is to end. */
async function pause({ signal }: Query): Promise<boolean> {
  try {
    await sleep(FOLLOW_MS, undefined, signal === undefined ? {} : { signal });
    return true;
  } catch {
    return false;
  }
}

async function* readBackwards(
  query: Query,
  directory: JournalDirectory,
): AsyncGenerator<JournalRow, undefined> {
  for (const files of (await directory.segments()).toReversed()) {
    const reader = await SegmentReader.open(directory, files, query);
    if (reader === null) continue;
    try {
      for (const block of (await reader.blocks()).toReversed()) {
        yield* (await matching(block, query, directory)).toReversed();
      }
    } finally {
      await reader.close();
    }
  }
  return undefined;
}

async function matching(
  block: Block,
  query: Query,
  { path }: JournalDirectory,
): Promise<JournalRow[]> {
  const { from, to, terms } = block;
  if (from !== null && to !== null && !query.isInTime(from, to)) return [];
  if (terms !== null && !query.mayBeIn(terms)) return [];
  let bytes;
  try {
    bytes = await block.read();
  } catch (error) {
    if (!isDamage(error)) throw journalError(path, error);
    return [gapFor(block)].filter((gap) => query.matches(gap));
  }
  return [...rowsIn(bytes, query)];
}

/** What stands for rows that cannot be read any more. */
function gapFor({ from, to, rows, first }: Block): JournalRow {
  return {
    ...{ event: 'gap', from: new Date(from ?? 0), to: new Date(to ?? 0), lost: rows },
    ...{ reason: 'damaged', recovered: 0, seq: first },
  };
}
