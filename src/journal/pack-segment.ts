import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  read,
  renameSync,
  rmSync,
  write,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

import type { JournalFolder } from './journal-folder.js';
import { factsOf } from './row-facts.js';
import { MOST_HEADER_BYTES, parseHeader, parseRow } from './rows.js';
import { indexName, packedName, plainName } from './segment-files.js';
import {
  BLOCK_BYTES,
  type BlockSummary,
  formatIndex,
  type PackedBlock,
  SegmentSummary,
} from './segment-index.js';

const { O_RDONLY } = constants;

const readSome = promisify(read);
const writeSome = promisify(write);
const compress = promisify(gzip);

/** Higher levels take two and a half times as long, and save a fifth. */
const LEVEL = 3;

/**
 * Compresses a segment that is complete, and writes its index beside it. A reader finds the one form
 * or the other at any time. Leaves everything as it was if `isEnding` says so, or if it rejects.
 */
export async function packSegment(
  folder: JournalFolder,
  first: number,
  summary: SegmentSummary | null,
  isEnding: () => boolean,
): Promise<void> {
  const temporary = `.${packedName(first)}.${randomBytes(6).toString('hex')}`;
  const plain = folder.open(plainName(first), O_RDONLY);
  try {
    const { blocks = [], terms } = summary ?? (await summarize(plain, isEnding)) ?? {};
    if (terms === undefined || blocks.length === 0 || isEnding()) return;
    const packed = await pack(folder, plain, temporary, blocks, isEnding);
    if (packed === null || isEnding()) return;
    const header = parseHeader(
      (await bytesAt(plain, 0, MOST_HEADER_BYTES)).toString('utf8').split('\n', 1)[0] ?? '',
    );
    // Somebody has removed it because it was too old: it must not come back, behind younger ones.
    if (fstatSync(plain).nlink === 0) return;
    const { bootId = '', keeps = null } = header ?? {};
    folder.replace(indexName(first), formatIndex({ first, bootId, keeps, terms, blocks: packed }));
    renameSync(join(folder.path, temporary), join(folder.path, packedName(first)));
    folder.sync();
    folder.remove(plainName(first));
  } finally {
    closeSync(plain);
    rmSync(join(folder.path, temporary), { force: true });
  }
}

async function pack(
  folder: JournalFolder,
  plain: number,
  temporary: string,
  blocks: readonly BlockSummary[],
  isEnding: () => boolean,
): Promise<PackedBlock[] | null> {
  const { O_CREAT, O_EXCL, O_RDWR } = constants;
  const file = folder.open(temporary, O_RDWR | O_CREAT | O_EXCL);
  try {
    const packed: PackedBlock[] = [];
    let at = 0;
    for (const block of blocks) {
      if (isEnding()) return null;
      const member = await compress(await bytesAt(plain, block.offset, block.bytes), {
        level: LEVEL,
      });
      for (let written = 0; written < member.length;) {
        const { bytesWritten } = await writeSome(
          file,
          member,
          written,
          member.length - written,
          at + written,
        );
        written += bytesWritten;
      }
      packed.push({ ...block, at, size: member.length });
      at += member.length;
    }
    fsyncSync(file);
    return packed;
  } finally {
    closeSync(file);
  }
}

/** Reads what an earlier writer has written. */
async function summarize(plain: number, isEnding: () => boolean): Promise<SegmentSummary | null> {
  let summary: SegmentSummary | undefined;
  let rest = Buffer.alloc(0);
  for (let at = 0; ;) {
    const chunk = await bytesAt(plain, at, BLOCK_BYTES);
    if (isEnding()) return null;
    at += chunk.length;
    const bytes = Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      const length = end + 1 - start;
      // The first line is the header.
      const row = summary === undefined ? null : parseRow(bytes.toString('utf8', start, end));
      if (summary === undefined) summary = new SegmentSummary(length);
      else if (row === null) summary.addUnread(length);
      else summary.add(factsOf(row), length);
      start = end + 1;
    }
    rest = bytes.subarray(start);
    if (chunk.length === 0) return summary ?? null;
  }
}

async function bytesAt(file: number, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let taken = 0;
  while (taken < length) {
    const { bytesRead } = await readSome(file, bytes, taken, length - taken, offset + taken);
    if (bytesRead === 0) break;
    taken += bytesRead;
  }
  return bytes.subarray(0, taken);
}
