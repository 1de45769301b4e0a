import { isObject } from '../common/is-object.js';

import { type JournalEvent, timeOf } from './rows.js';
import { addTerms, TermSet } from './terms.js';

/** How many bytes of rows are compressed together, and found or skipped together. */
export const BLOCK_BYTES = 1024 * 1024;

/** Rows that follow each other in a segment. */
export interface BlockSummary {
  /** Where it begins in the rows, and how many bytes it has, before compression. */
  offset: number;
  bytes: number;
  rows: number;
  /** The earliest and the latest time of a row, in ms; the clock may have been set in between. */
  from: number;
  to: number;
  terms: TermSet;
}

/** Summarizes the rows of a segment while they are written. */
export class SegmentSummary {
  readonly blocks: BlockSummary[] = [];
  #next: number;

  /** `start`: where the first row begins; what precedes it belongs to the first block. */
  constructor(start = 0) {
    this.#next = start;
  }

  /** The next row is this event, in so many bytes. */
  add(event: JournalEvent, bytes: number): void {
    const at = timeOf(event).getTime();
    const block = this.#blockFor(bytes);
    if (block.rows === 0) block.from = block.to = at;
    block.rows++;
    // What is missing may have begun long before it was known.
    const from = 'from' in event ? Math.min(event.from.getTime(), at) : at;
    if (from < block.from) block.from = from;
    if (at > block.to) block.to = at;
    addTerms(block.terms, event);
  }

  /** The next line is none that can be read; it is kept as it is. */
  addUnread(bytes: number): void {
    this.#blockFor(bytes);
  }

  #blockFor(bytes: number): BlockSummary {
    let block = this.blocks.at(-1);
    if (block === undefined || block.bytes >= BLOCK_BYTES) {
      const offset = block === undefined ? 0 : this.#next;
      const before = this.#next - offset;
      block = { offset, bytes: before, rows: 0, from: 0, to: 0, terms: new TermSet() };
      this.blocks.push(block);
    }
    this.#next += bytes;
    block.bytes += bytes;
    return block;
  }
}

/** A block in a compressed segment. */
export interface PackedBlock extends BlockSummary {
  /** Where its gzip member is in the file. */
  at: number;
  size: number;
}

/** What a compressed segment holds, without reading it. */
export interface SegmentIndex {
  bootId: string;
  blocks: PackedBlock[];
}

/** The text of an index: a line about the segment, and one for each block. */
export function formatIndex(first: number, bootId: string, blocks: readonly PackedBlock[]): string {
  const read = blocks.filter((block) => block.rows > 0);
  const rows = read.reduce((sum, block) => sum + block.rows, 0);
  const from = Math.min(...read.map((block) => block.from));
  const to = Math.max(...read.map((block) => block.to));
  const head = { event: 'index', version: 2, first, bootId, rows, from, to };
  const lines = blocks.map(({ terms, ...block }) => ({ ...block, terms: terms.toString() }));
  return [head, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('');
}

/** `null`: it is damaged, or of another version, which lacks terms; then read the whole segment. */
export function parseIndex(text: string): SegmentIndex | null {
  try {
    const [head, ...lines] = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    if (!isObject(head) || head['event'] !== 'index' || head['version'] !== 2) return null;
    const { bootId } = head;
    const blocks = lines.map(blockIn);
    if (typeof bootId !== 'string' || blocks.includes(null)) return null;
    return { bootId, blocks: blocks as PackedBlock[] };
  } catch {
    return null;
  }
}

const NUMBERS = ['offset', 'bytes', 'rows', 'from', 'to', 'at', 'size'] as const;

function blockIn(line: unknown): PackedBlock | null {
  if (!isObject(line)) return null;
  const isWhole = NUMBERS.every(
    (name) => Number.isSafeInteger(line[name]) && Number(line[name]) >= 0,
  );
  const terms = typeof line['terms'] === 'string' ? TermSet.parse(line['terms']) : null;
  if (!isWhole || terms === null) return null;
  return { ...(line as unknown as PackedBlock), terms };
}

/** The first line of an index is shorter. */
export const MOST_HEAD = 512;

/** The times of the earliest and the latest row, from the first line of an index; `null`: unknown. */
export function rangeIn(text: string): { from: number; to: number } | null {
  const [, from, to] =
    /^\{"event":"index","version":\d+,.*?"from":(-?\d+),"to":(-?\d+)\}/.exec(text) ?? [];
  return from === undefined ? null : { from: Number(from), to: Number(to) };
}
