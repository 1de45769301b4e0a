import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync, readSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';

import { bootId } from '../identity/boot-id.js';

import type { JournalFolder } from './journal-folder.js';
import {
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
  };
  let isNewest = true;
  for (const { first, isPlain, isPacked } of segments.toReversed()) {
    if (isPlain && !isPacked) {
      const { header, size, lines } = wholeLines(folder, first, isNewest);
      if (header === null) {
        // The power failed before it was on disk.
        if (isNewest) folder.remove(plainName(first));
        continue;
      }
      const isSame = header.bootId === bootId() && isDeepStrictEqual(header.keeps, keeps);
      if (isNewest && isSame) recovered.resumable = { header, size };
      else if (isNewest && lines.length === 0) {
        // The next segment has its number, and so its name.
        folder.remove(plainName(first));
        recovered.next = Math.max(recovered.next, first);
        continue;
      } else recovered.unpacked.unshift(first);
      takeLines(recovered, lines, header.bootId);
    } else if (recovered.ids.size < MOST_IDS) {
      const { lines, bootId } = packedLines(folder, first);
      takeLines(recovered, lines, bootId);
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

/**
 * The lines of a segment. `mustFollow`: up to the first one that is torn, or whose number does not follow, and cuts
 * off the rest: after a power failure, anything may be there.
 */
function wholeLines(folder: JournalFolder, first: number, mustFollow: boolean) {
  const bytes = contentOf(folder, plainName(first));
  const lines: string[] = [];
  let header: SegmentHeader | null = null;
  let size = 0;
  let expected = first;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, size)) {
    const line = bytes.toString('utf8', size, end);
    if (header === null) {
      header = parseHeader(line);
      if (header === null) {
        const later = laterVersion(line);
        if (later === null) break;
        const detail = `its file ${plainName(first)} has version ${later}, and this release knows 1`;
        throw new Error(detail);
      }
    } else {
      if (mustFollow && wholeRowSeq(line) !== expected) break;
      lines.push(line);
      expected++;
    }
    size = end + 1;
  }
  if (mustFollow && header !== null && size < bytes.length) cut(folder, plainName(first), size);
  return { header, size, lines };
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

/** The last lines of a compressed segment. */
function packedLines(
  folder: JournalFolder,
  first: number,
): { lines: string[]; bootId: string | null } {
  const bytes = contentOf(folder, packedName(first));
  const index = parseIndex(folder.read(indexName(first)) ?? '');
  const bootId = index?.bootId ?? null;
  try {
    const members =
      index === null
        ? [bytes]
        : index.blocks.map(({ at, size }) => bytes.subarray(at, at + size)).slice(-32);
    const lines = members.flatMap((member) => gunzipSync(member).toString('utf8').split('\n'));
    return { lines, bootId };
  } catch {
    return { lines: [], bootId }; // damaged
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
