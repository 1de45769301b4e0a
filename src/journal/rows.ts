import { isObject } from '../common/is-object.js';
import { isCount, isObjectOf, isText, isTime, isWord, orNull } from '../common/json-checks.js';
import { toJsonLine } from '../common/safe-text.js';
import type { ExitEvent, Gap, SourceChange } from '../events/exit-event.js';
import { isExitJson, reviveExit } from '../events/revive.js';

import { timeText } from './time-text.js';

/**
 * Ends that a journal lacks. `'disk-full'`: the disk had no room for them. `'not-written'`: they could not be written for
 * another reason, or not fast enough. `'not-recording'`: no recorder remembered what ended while nobody wrote the journal.
 * `'damaged'`: rows cannot be read any more. If that is found when they are read, the gap has a number that is not later than
 * theirs; if a writer found it, a later one. The other reasons are those of a monitor's {@link Gap}.
 *
 * @see [The journal](../../docs/journal.md#in-a-program)
 */
export type JournalGap = Omit<Gap, 'reason'> & {
  reason: Gap['reason'] | 'disk-full' | 'not-written' | 'not-recording' | 'damaged';
};

/**
 * Ends of processes with this name and program that were counted and not kept, because there were too many.
 *
 * @see [The journal](../../docs/journal.md#in-a-program)
 */
export type JournalSkip = {
  event: 'skipped';
  name: string | null;
  /** Earlier versions did not write it. */
  program: string | null;
  count: number;
  from: Date;
  to: Date;
};

/**
 * What a journal takes.
 *
 * @see [The journal](../../docs/journal.md#in-a-program)
 */
export type JournalEvent = ExitEvent | JournalGap | SourceChange | JournalSkip;

/**
 * A row of a journal: an event with its number, which rises by one from row to row.
 *
 * @see [The journal](../../docs/journal.md#in-a-program)
 */
export type JournalRow = JournalEvent & { seq: number };

/**
 * A row with an end.
 *
 * @see [The journal](../../docs/journal.md#in-a-program)
 */
export type JournalExit = ExitEvent & { seq: number };

/** The first line of a segment. */
export interface SegmentHeader {
  event: 'segment';
  version: 1;
  /** The number of its first row. */
  first: number;
  bootId: string;
  /** The wall clock, and CLOCK_MONOTONIC of the same moment. */
  at: Date;
  monotonicNs: number;
  /** Which ends its writer was given, in words for a reader; `null`: all. */
  keeps: readonly string[] | null;
}

/** A header is shorter. */
export const MOST_HEADER_BYTES = 64 * 1024;

/** Longer lines are not ours. */
export const MOST_LINE_BYTES = 256 * 1024;

/** What a row begins with, so that its number can be read without parsing all of it. */
const START = '{"seq":';

/** With the number in front, it fits into a line. */
const MOST_EVENT_BYTES = MOST_LINE_BYTES - 1024;

/**
 * An event as a row has it. Who may have asked for a signal is left out if there are so many, which anybody
 * can arrange, that nobody would read the row.
 */
export function eventText(event: JournalEvent): string {
  const text = toJsonLine(event.event === 'exit' ? withTimeTexts(event) : event);
  if (text.length <= MOST_EVENT_BYTES / 3 || Buffer.byteLength(text) <= MOST_EVENT_BYTES)
    return text;
  return toJsonLine(event, (key, value) => (key === 'likelyClients' ? null : value));
}

/** JSON.stringify() is slow with dates, and most rows have three. */
function withTimeTexts(event: ExitEvent): object {
  const { startedAt, exitedAt, tracedSince, requestsSince } = event;
  return {
    ...event,
    startedAt: startedAt && timeText(startedAt),
    exitedAt: timeText(exitedAt),
    tracedSince: tracedSince && timeText(tracedSince),
    requestsSince: requestsSince && timeText(requestsSince),
  };
}

/** The beginning of a row's line, and the rest of it: an event has no number before it is written. */
export function rowStart(seq: number): string {
  return `${START}${seq},`;
}

/** The number of a row; `null`: it is no row. */
export function seqOf(line: string): number | null {
  if (!line.startsWith(START) || !line.endsWith('}')) return null;
  const end = line.indexOf(',', START.length);
  const seq = Number(line.slice(START.length, end));
  return Number.isSafeInteger(seq) && seq > 0 ? seq : null;
}

/** When it happened, by the wall clock. */
export function timeOf(event: JournalEvent): Date {
  switch (event.event) {
    case 'exit':
      return event.exitedAt;
    case 'source':
      return event.at;
    case 'gap':
    case 'skipped':
      return event.to;
  }
}

/** The first line of a segment; `null`: it is none. */
export function parseHeader(line: string): SegmentHeader | null {
  const header = parse(line);
  if (header?.['event'] !== 'segment' || header['version'] !== 1) return null;
  const { first, bootId, at, monotonicNs } = header;
  const keeps = keepsIn(header['keeps']);
  if (!Number.isSafeInteger(first) || typeof bootId !== 'string') return null;
  if (typeof monotonicNs !== 'number') return null;
  const date = new Date(String(at));
  return {
    ...{ event: 'segment', version: 1, first: first as number, bootId, at: date },
    ...{ monotonicNs, keeps },
  };
}

/** What a header or an index says of it; `null`: all ends, or nobody knows. */
export function keepsIn(value: unknown): readonly string[] | null {
  return isTexts(value) ? value : null;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every(isText);
}

/** The version of a segment that a later release has written, by its first line; `null`: it has not. */
export function laterVersion(line: string): number | null {
  const header = parse(line);
  const version = header?.['event'] === 'segment' ? header['version'] : null;
  return typeof version === 'number' && version > 1 ? version : null;
}

/** The number of a whole row, also of one of a later version; `null`: it is none. */
export function wholeRowSeq(line: string): number | null {
  const seq = seqOf(line);
  return seq !== null && typeof parse(line)?.['event'] === 'string' ? seq : null;
}

/** The row in a line; `null`: it is none, or one of a later version. */
export function parseRow(line: string): JournalRow | null {
  const row = parse(line);
  if (row === null || !Number.isSafeInteger(row['seq'])) return null;
  switch (row['event']) {
    case 'exit':
      return isExitJson(row) ? (reviveExit(row) as JournalExit) : null;
    case 'gap':
      return isGap(row) ? revive(row, ['from', 'to']) : null;
    case 'skipped':
      row['program'] ??= null;
      return isSkip(row) ? revive(row, ['from', 'to']) : null;
    case 'source':
      return isChange(row) ? revive(row, ['at']) : null;
    default:
      return null;
  }
}

function parse(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : null;
  } catch {
    return null; // torn, or damaged
  }
}

const isGap = isObjectOf({
  ...{ from: isTime, to: isTime, lost: orNull(isCount), reason: isWord, recovered: isCount },
});
const isSkip = isObjectOf({
  ...{ from: isTime, to: isTime, name: orNull(isText), program: orNull(isText), count: isCount },
});
const isChange = isObjectOf({
  ...{ at: isTime, source: isWord, previous: isWord, filter: orNull(isWord) },
  downgrade: orNull(isObjectOf({ code: isWord, detail: isText, remedy: orNull(isText) })),
});

function revive(row: Record<string, unknown>, dates: readonly string[]): JournalRow {
  for (const name of dates) row[name] = new Date(row[name] as string);
  return row as unknown as JournalRow;
}
