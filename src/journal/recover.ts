import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync, readSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';

import { bootId } from '../identity/boot-id.js';

import type { JournalFolder } from './journal-folder.js';
import {
  type JournalGap,
  laterVersion,
  parseHeader,
  parseRow,
  type SegmentHeader,
  seqOf,
  timeOf,
  wholeRowSeq,
} from './rows.js';
import {
  indexName,
  packedName,
  plainName,
  type SegmentFiles,
  segmentsIn,
} from './segment-files.js';
import { parseIndex } from './segment-index.js';

const { O_RDONLY, O_RDWR } = constants;

/** More than a recorder in the kernel may deliver again by default. */
const MOST_IDS = 65_536;

/** What an earlier writer has left. */
export interface Recovered {
  /** The segment to go on with, and how many of its bytes are whole rows; `null`: begin one. */
  resumable: { header: SegmentHeader; size: number } | null;
  /** Complete segments that are not compressed yet. */
  unpacked: number[];
  /** The number of the next row. */
  next: number;
  /** When the last row was; `null`: there is none. */
  last: { at: Date; bootId: string | null } | null;
  /** The ids of the latest ends: they may be delivered again. */
  ids: Set<string>;
  /** What stands for rows that were stored, and cannot be read any more; `null`: all can. */
  damaged: JournalGap | null;
}

/**
 * Reads what is needed to go on with a journal. Removes files that hold nothing. A segment says which ends it
 * `keeps`: it is not gone on with if that is different now.
 *
 * @throws Error if a later release has written there, in a format that this one does not know
 */
export function recover(folder: JournalFolder, keeps: readonly string[] | null): Recovered {
  const segments = segmentsIn(folder.entries);
  removeRests(folder, segments);
  const recovered: Recovered = {
    resumable: null,
    unpacked: [],
    next: 1,
    last: null,
    ids: new Set(),
    damaged: null,
  };
  let isNewest = true;
  for (const { first, isPlain, isPacked } of segments.toReversed()) {
    if (isPlain && !isPacked) {
      const { header, size, lines, damaged } = wholeLines(folder, first, isNewest);
      if (header === null && lines.length === 0) {
        // The power failed before it was on disk.
        if (isNewest) folder.remove(plainName(first));
        continue;
      }
      const isSame = header?.bootId === bootId() && isDeepStrictEqual(header.keeps, keeps);
      // What is damaged is told in another segment: once.
      if (isNewest) recovered.damaged = damaged;
      if (isNewest && isSame && damaged === null) recovered.resumable = { header, size };
      else if (isNewest && lines.length === 0) {
        // The next segment has its number, and so its name.
        folder.remove(plainName(first));
        recovered.next = Math.max(recovered.next, first);
        continue;
      } else recovered.unpacked.unshift(first);
      takeLines(recovered, lines, header?.bootId ?? null);
    } else if (recovered.ids.size < MOST_IDS) {
      const { lines, bootId, next } = packedLines(folder, first);
      takeLines(recovered, lines, bootId);
      // What is newer has greater numbers.
      if (isNewest) recovered.next = Math.max(recovered.next, next);
    }
    isNewest = false;
    recovered.next = Math.max(recovered.next, first);
    if (recovered.ids.size >= MOST_IDS) break;
  }
  for (const { first, isPlain, isPacked } of segments) {
    const isKnown =
      recovered.unpacked.includes(first) || recovered.resumable?.header.first === first;
    if (isPlain && !isPacked && !isKnown && first < recovered.next) recovered.unpacked.push(first);
  }
  return recovered;
}

/** What a writer leaves that was killed while it compressed a segment or removed one. */
function removeRests(folder: JournalFolder, segments: readonly SegmentFiles[]): void {
  for (const { first, isPlain, isPacked } of segments) {
    if (isPlain && isPacked) folder.remove(plainName(first));
  }
  const known = new Set(segments.map(({ first }) => indexName(first)));
  for (const entry of folder.entries) {
    if (entry.endsWith('.index') && !known.has(entry)) folder.remove(entry);
  }
}

function takeLines(recovered: Recovered, lines: string[], bootId: string | null): void {
  const isNewest = recovered.last === null;
  for (let i = lines.length - 1; i >= 0; i--) {
    const line = lines[i] ?? '';
    const seq = seqOf(line);
    if (seq === null) continue;
    recovered.next = Math.max(recovered.next, seq + 1);
    if (isNewest && recovered.last === null) {
      const row = parseRow(line);
      if (row !== null) recovered.last = { at: timeOf(row), bootId };
    }
    if (recovered.ids.size >= MOST_IDS) return;
    const id = /"event":"exit","id":"([^"]+)"/.exec(line)?.[1];
    if (id !== undefined) recovered.ids.add(id);
  }
}

/** No row is shorter. */
const LEAST_ROW_BYTES = 20;

/**
 * The rows of a segment, whose numbers rise. What is torn behind the last one of the newest segment is cut off; after a
 * power failure, anything may be between them, too.
 */
function wholeLines(folder: JournalFolder, first: number, isNewest: boolean) {
  const bytes = contentOf(folder, plainName(first));
  const lines: string[] = [];
  let header: SegmentHeader | null = null;
  let damaged: JournalGap | null = null;
  let size = 0;
  let expected = first;
  for (let at = 0, end = bytes.indexOf(10); end >= 0; at = end + 1, end = bytes.indexOf(10, at)) {
    const line = bytes.toString('utf8', at, end);
    if (at === 0) {
      header = headerIn(line, first);
      if (header !== null) size = end + 1;
      continue;
    }
    // What is in others was seen to be whole, or told, when they were the newest one.
    const seq = isNewest ? wholeRowSeq(line) : seqOf(line);
    if (seq === null || seq < expected) continue;
    const lost = seq - expected;
    if (lost > (at - size) / LEAST_ROW_BYTES) continue; // it is no number of ours
    if (lost > 0) damaged = gapBetween(damaged, lines.at(-1) ?? null, line, lost);
    expected = seq + 1;
    lines.push(line);
    size = end + 1;
  }
  if (isNewest && size > 0 && size < bytes.length) cut(folder, plainName(first), size);
  return { header, size, lines, damaged };
}

/** @throws Error if a later release has written it */
function headerIn(line: string, first: number): SegmentHeader | null {
  const header = parseHeader(line);
  const later = header === null ? laterVersion(line) : null;
  if (later === null) return header;
  const detail = `its file ${plainName(first)} has version ${later}, and this release knows 1`;
  throw new Error(detail);
}

/** What stands for damaged rows between these lines; `earlier`: for those of before. */
function gapBetween(
  earlier: JournalGap | null,
  before: string | null,
  after: string,
  lost: number,
): JournalGap {
  const timeIn = (line: string | null) => {
    const row = line === null ? null : parseRow(line);
    return row === null ? null : timeOf(row);
  };
  const to = timeIn(after) ?? new Date();
  const from = earlier?.from ?? timeIn(before) ?? to;
  const sum = (earlier?.lost ?? 0) + lost;
  return { event: 'gap', from, to, lost: sum, reason: 'damaged', recovered: 0 };
}

function cut(folder: JournalFolder, name: string, size: number): void {
  const file = folder.open(name, O_RDWR);
  try {
    ftruncateSync(file, size);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** How many members of a compressed segment to look at. */
const MOST_MEMBERS = 32;

/** More rows than a segment has. */
const MANY_ROWS = 2 ** 24;

/** The last lines of a compressed segment; if its last ones are damaged, `next` is greater than their numbers. */
function packedLines(folder: JournalFolder, first: number) {
  const bytes = contentOf(folder, packedName(first));
  const index = parseIndex(folder.read(indexName(first)) ?? '');
  const members = index?.blocks
    .slice(-MOST_MEMBERS)
    .map(({ at, size }) => bytes.subarray(at, at + size)) ?? [bytes];
  const texts = members.map(textOf);
  const lines = texts.flatMap((text) => text?.split('\n') ?? []);
  const isWhole = texts.at(-1) !== null;
  return { lines, bootId: index?.bootId ?? null, next: first + (isWhole ? 0 : MANY_ROWS) };
}

/** `null`: it is damaged. */
function textOf(member: Buffer): string | null {
  try {
    return gunzipSync(member).toString('utf8');
  } catch {
    return null;
  }
}

function contentOf(folder: JournalFolder, name: string): Buffer {
  const file = folder.open(name, O_RDONLY);
  try {
    const bytes = Buffer.alloc(fstatSync(file).size);
    let taken = 0;
    while (taken < bytes.length) {
      const count = readSync(file, bytes, taken, bytes.length - taken, taken);
      if (count === 0) break;
      taken += count;
    }
    return bytes.subarray(0, taken);
  } finally {
    closeSync(file);
  }
}
