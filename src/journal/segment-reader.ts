import type { FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

import { bytesAt } from '../common/small-file.js';

import { type BlockCache, giveBack } from './block-cache.js';
import { type JournalDirectory, journalError } from './journal-directory.js';
import { plainRanges, type Range, rangeOf } from './plain-ranges.js';
import type { Query } from './query.js';
import { MOST_HEADER_BYTES, MOST_LINE_BYTES, parseHeader } from './rows.js';
import { packedName, plainName, type SegmentFiles } from './segment-files.js';
import { BLOCK_BYTES, type PackedBlock } from './segment-index.js';
import type { TermSet } from './terms.js';

const decompress = promisify(gunzip);

const NEWLINE = 0x0a;

/** Most lines are shorter. */
const LINE_BYTES = 16 * 1024;

/** Rows that follow each other in a segment; `null` where nothing is known without reading them. */
export interface Block {
  from: number | null;
  to: number | null;
  terms: TermSet | null;
  /** How many there are, if it is compressed. */
  rows: number | null;
  /** The number of the first one, or of one before it. */
  first: number;
  /** Valid until the next block is read. If they cannot be read any more, it rejects with what {@link isDamage} knows. */
  read: () => Promise<Buffer>;
}

/** A segment that is compressed cannot be read. */
class DamagedError extends Error {}

/** Whether what was read is damaged; otherwise, it could not be read now. */
export function isDamage(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return error instanceof DamagedError || code.startsWith('Z_') || code === 'ERR_BUFFER_TOO_LARGE';
}

/** A segment that is open for reading. It stays readable if its file is replaced or removed. */
export class SegmentReader {
  readonly first: number;
  readonly bootId: string;
  readonly #blocks: BlockCache;
  readonly #file: FileHandle | null;
  /** Of a segment that is not compressed. */
  readonly #id: string | null;
  readonly #packed: readonly PackedBlock[] | null;
  /** All its rows: it is compressed, and its index is missing or damaged. */
  readonly #content: Buffer | null;
  /** When it was compressed, in ms; it cannot be read. */
  readonly #damagedAt: number | null;

  private constructor(
    { blocks }: JournalDirectory,
    first: number,
    bootId: string,
    { file = null, id = null, packed = null, content = null, damagedAt = null }: Partial<Source>,
  ) {
    this.#blocks = blocks;
    this.first = first;
    this.bootId = bootId;
    this.#file = file;
    this.#id = id;
    this.#packed = packed;
    this.#content = content;
    this.#damagedAt = damagedAt;
  }

  /** `null`: it was removed, or has no row that matches. */
  static async open(
    directory: JournalDirectory,
    { first, isPlain }: SegmentFiles,
    query: Query,
  ): Promise<SegmentReader | null> {
    // It may be compressed at any moment, but is never gone in between.
    const plain = isPlain ? await directory.file(plainName(first)) : null;
    if (plain !== null) {
      const { dev, ino } = await plain.stat();
      const source = { file: plain, id: `${dev}:${ino}:${first}` };
      return new SegmentReader(directory, first, await bootIn(plain), source);
    }
    if (!(await mayBeIn(directory, first, query))) return null;
    const index = await directory.indexes.whole(first);
    const file = await directory.file(packedName(first));
    if (file === null) return null;
    const { size, mtimeMs } = await file.stat();
    const last = index?.blocks.at(-1);
    if (index !== null && last !== undefined && last.at + last.size === size) {
      return new SegmentReader(directory, first, index.bootId, { file, packed: index.blocks });
    }
    try {
      const content = await decompress(await bytesAt(file, 0, size));
      await file.close();
      return new SegmentReader(directory, first, headerIn(content), { content });
    } catch (error) {
      if (!isDamage(error)) {
        await file.close();
        throw journalError(directory.path, error);
      }
      // Some of its blocks may be whole.
      if (index !== null) {
        return new SegmentReader(directory, first, index.bootId, { file, packed: index.blocks });
      }
      return new SegmentReader(directory, first, '', { file, packed: [], damagedAt: mtimeMs });
    }
  }

  /** It may grow, so that there will be more of them. */
  get isPlain(): boolean {
    return this.#packed === null && this.#content === null;
  }

  /** What it consists of now. */
  async blocks(): Promise<Block[]> {
    const file = this.#file;
    const { first } = this;
    if (this.#damagedAt !== null) {
      const read = () => Promise.reject(new DamagedError());
      return [{ from: 0, to: this.#damagedAt, terms: null, rows: null, first, read }];
    }
    if (file !== null && this.#packed !== null) {
      let next = first;
      return this.#packed.map((block) => ({
        ...{ ...block, first: (next += block.rows) - block.rows },
        read: () => this.#blocks.read(`${first}:${block.at}`, () => packedBlock(file, block)),
      }));
    }
    const size = await this.size();
    const count = Math.ceil(size / BLOCK_BYTES);
    const ranges = this.#id === null ? null : plainRanges(this.#id);
    return Array.from({ length: count }, (_, i) => {
      const { from = null, to = null } = ranges?.get(i) ?? {};
      const read = () => this.#plainBlock(i, size, ranges);
      return { from, to, terms: null, rows: null, first, read };
    });
  }

  async #plainBlock(
    i: number,
    size: number,
    ranges: Map<number, Range | null> | null,
  ): Promise<Buffer> {
    const end = (i + 1) * BLOCK_BYTES;
    const lines = await this.#linesFrom(i * BLOCK_BYTES, Math.min(end, size));
    // The end of the file may change.
    if (ranges !== null && end + BLOCK_BYTES <= size && !ranges.has(i)) {
      // The first line is the segment's own.
      ranges.set(i, rangeOf(i === 0 ? lines.subarray(lines.indexOf(NEWLINE) + 1) : lines));
    }
    return lines;
  }

  /** In bytes, without compression. */
  async size(): Promise<number> {
    if (this.#content !== null) return this.#content.length;
    return (await this.#file?.stat())?.size ?? 0;
  }

  /** Whether its file has no name any more. */
  async isRemoved(): Promise<boolean> {
    return this.#file !== null && (await this.#file.stat()).nlink === 0;
  }

  /** Bytes of a segment that is not compressed. */
  async read(from: number, to: number): Promise<Buffer> {
    if (this.#content !== null) return this.#content.subarray(from, to);
    return this.#file === null ? Buffer.alloc(0) : bytesAt(this.#file, from, to - from);
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  /** The lines that begin in this range. */
  async #linesFrom(from: number, to: number): Promise<Buffer> {
    const start = Math.max(0, from - 1);
    // Room for the rest of the last line: usually little, but lines may be long.
    let bytes = await this.read(start, to + LINE_BYTES);
    if (bytes.indexOf(NEWLINE, to - 1 - start) < 0 && bytes.length > to - start) {
      bytes = await this.read(start, to + MOST_LINE_BYTES);
    }
    const begin = from === 0 ? 0 : bytes.indexOf(NEWLINE) + 1;
    if (from > 0 && begin === 0) return Buffer.alloc(0);
    const end = bytes.indexOf(NEWLINE, to - 1 - start);
    // Without a newline, the last line is being written.
    const stop = end < 0 ? bytes.lastIndexOf(NEWLINE) + 1 : end + 1;
    return bytes.subarray(begin, Math.max(begin, stop));
  }
}

interface Source {
  file: FileHandle | null;
  id: string | null;
  packed: readonly PackedBlock[] | null;
  content: Buffer | null;
  damagedAt: number | null;
}

async function packedBlock(file: FileHandle, { at, size, bytes }: PackedBlock): Promise<Buffer> {
  // Room for all of it at once.
  const chunkSize = Math.min(Math.max(bytes + 1, 1024), 4 * BLOCK_BYTES);
  const packed = await bytesAt(file, at, size);
  const block = await decompress(packed, { chunkSize });
  giveBack(packed);
  return block;
}

/** Whether it may have a row that matches, as far as its index tells. */
async function mayBeIn(
  { indexes }: JournalDirectory,
  first: number,
  query: Query,
): Promise<boolean> {
  const { range = null, head = null } = (await indexes.start(first)) ?? {};
  if (range !== null && !query.isInTime(range.from, range.to)) return false;
  return head === null || query.mayBeInSegment(head.terms);
}

async function bootIn(file: FileHandle): Promise<string> {
  return headerIn(await bytesAt(file, 0, MOST_HEADER_BYTES));
}

function headerIn(bytes: Buffer): string {
  const end = bytes.indexOf(NEWLINE);
  return parseHeader(bytes.toString('utf8', 0, end))?.bootId ?? '';
}
