import { setTimeout as sleep } from 'node:timers/promises';

import { rowsIn } from './block-rows.js';
import { InOrder } from './in-order.js';
import { JournalDirectory } from './journal-directory.js';
import { type JournalQuery, Query } from './query.js';
import type { JournalRow } from './rows.js';
import { type Block, SegmentReader } from './segment-reader.js';

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
  return read(new Query(options));
}

/** The same for ends alone, which takes less. @internal */
export function readEnds(options: JournalQuery): AsyncIterableIterator<JournalRow> {
  return read(new Query(options, 'ends'));
}

/** The same for what is no end: gaps, and what was counted. @internal */
export function readOthers(
  options: Pick<JournalQuery, 'dir' | 'since' | 'until'>,
): AsyncIterableIterator<JournalRow> {
  return read(new Query(options, 'others'));
}

/** Ends alone, the newest rows first, in the order of their numbers. @internal */
export function readEndsBackwards(
  options: Omit<JournalQuery, 'follow'>,
): AsyncIterableIterator<JournalRow> {
  return readBackwards(new Query(options, 'ends'));
}

async function* read(query: Query): AsyncGenerator<JournalRow, undefined> {
  const directory = await JournalDirectory.open(query.dir);
  const inOrder = new InOrder();
  let bootId = '';
  let next = 0;
  for (;;) {
    const segments = (await directory.segments()).filter(({ first }) => first >= next);
    for (const [i, files] of segments.entries()) {
      if (isEnded(query)) return undefined;
      next = files.first + 1;
      const reader = await SegmentReader.open(directory, files, query);
      if (reader === null) continue;
      try {
        if (reader.bootId !== bootId) yield* inOrder.end();
        bootId = reader.bootId;
        const isLast = i === segments.length - 1;
        if (query.follow && isLast && reader.isPlain) {
          yield* follow(directory, reader, query, inOrder);
        } else {
          for (const block of await reader.blocks()) {
            if (isEnded(query)) return undefined;
            for (const row of await matching(block, query)) yield* inOrder.push(row);
          }
        }
      } finally {
        await reader.close();
      }
    }
    if (!query.follow || isEnded(query)) break;
    if (segments.length === 0 && !(await pause(query))) break;
  }
  yield* inOrder.end();
  return undefined;
}

/** Yields the rows of a segment as they are written, until another segment has begun. */
async function* follow(
  directory: JournalDirectory,
  reader: SegmentReader,
  query: Query,
  inOrder: InOrder,
): AsyncGenerator<JournalRow, undefined> {
  let at = 0;
  let isComplete = false;
  for (;;) {
    const size = await reader.size();
    const before = at;
    while (at < size) {
      const bytes = await reader.read(at, Math.min(size, at + MOST_BYTES));
      const end = bytes.lastIndexOf(NEWLINE) + 1;
      for (const row of rowsIn(bytes.subarray(0, end), query)) yield* inOrder.push(row);
      at += end;
      if (end === 0) break; // being written
    }
    if (at === before) yield* inOrder.end();
    if (isComplete && at === size) return undefined;
    isComplete = (await directory.segments()).some(({ first }) => first > reader.first);
    if (!isComplete && !(await pause(query))) return undefined;
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

async function* readBackwards(query: Query): AsyncGenerator<JournalRow, undefined> {
  const directory = await JournalDirectory.open(query.dir);
  for (const files of (await directory.segments()).toReversed()) {
    const reader = await SegmentReader.open(directory, files, query);
    if (reader === null) continue;
    try {
      for (const block of (await reader.blocks()).toReversed()) {
        yield* (await matching(block, query)).toReversed();
      }
    } finally {
      await reader.close();
    }
  }
  return undefined;
}

async function matching(block: Block, query: Query): Promise<JournalRow[]> {
  const { from, to, terms } = block;
  if (from !== null && to !== null && !query.isInTime(from, to)) return [];
  if (terms !== null && !query.mayBeIn(terms)) return [];
  let bytes;
  try {
    bytes = await block.read();
  } catch {
    return []; // damaged
  }
  return [...rowsIn(bytes, query)];
}
