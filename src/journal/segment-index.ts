import { isObject } from '../common/is-object.js';

import type { RowFacts } from './row-facts.js';
import { keepsIn, type SegmentHeader } from './rows.js';
import { BLOCK_SET_BYTES, isOfSegment, SEGMENT_SET_BYTES, termsOf, TermSet } from './terms.js';

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
  readonly terms = TermSet.ofBytes(SEGMENT_SET_BYTES);
  #next: number;
  /** What the set of the last block has for sure. */
  readonly #known = new Set<string>();

  /** `start`: where the first row begins; what precedes it belongs to the first block. */
  constructor(start = 0) {
    this.#next = start;
  }

  /** The next row has so many bytes. */
  add({ from, to, found }: RowFacts, bytes: number): void {
    const block = this.#blockFor(bytes);
    if (block.rows === 0) {
      block.from = from;
      block.to = to;
    }
    block.rows++;
    if (from < block.from) block.from = from;
    if (to > block.to) block.to = to;
    for (const text of termsOf(found)) this.#addTerm(block, text);
  }

  /** The next line is none that can be read; it is kept as it is. */
  addUnread(bytes: number): void {
    this.#blockFor(bytes);
  }

  #addTerm(block: BlockSummary, text: string): void {
    if (!isOfSegment(text)) block.terms.add(text);
    else if (!this.#known.has(text)) {
      this.#known.add(text);
      block.terms.add(text);
      this.terms.add(text);
    }
  }

  #blockFor(bytes: number): BlockSummary {
    let block = this.blocks.at(-1);
    if (block === undefined || block.bytes >= BLOCK_BYTES) {
      const offset = block === undefined ? 0 : this.#next;
      const before = this.#next - offset;
      const terms = TermSet.ofBytes(BLOCK_SET_BYTES);
      block = { offset, bytes: before, rows: 0, from: 0, to: 0, terms };
      this.blocks.push(block);
      this.#known.clear();
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

/** What holds for a whole segment. */
export interface IndexHead extends Pick<SegmentHeader, 'first' | 'bootId' | 'keeps'> {
  /** What may be in it, without pids. */
  terms: TermSet;
}

/** What a compressed segment holds, without reading it. */
export interface SegmentIndex extends IndexHead {
  blocks: PackedBlock[];
}

const VERSION = 4;

/** The text of an index: two lines about the segment, and one for each block. */
export function formatIndex({ first, bootId, keeps, terms, blocks }: SegmentIndex): string {
  const read = blocks.filter((block) => block.rows > 0);
  const rows = read.reduce((sum, block) => sum + block.rows, 0);
  const from = Math.min(...read.map((block) => block.from));
  const to = Math.max(...read.map((block) => block.to));
  const lines = [
    { event: 'index', version: VERSION, first, bootId, rows, from, to, keeps },
    { terms: terms.toString() },
    ...blocks.map((block) => ({ ...block, terms: block.terms.toString() })),
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

/** `null`: it is damaged, or of another version, which lacks terms; then read the whole segment. */
export function parseIndex(text: string): SegmentIndex | null {
  const head = headIn(text);
  if (head === null) return null;
  const blocks = text.trimEnd().split('\n').slice(2).map(blockIn);
  return blocks.includes(null) ? null : { ...head, blocks: blocks as PackedBlock[] };
}

const NUMBERS = ['offset', 'bytes', 'rows', 'from', 'to', 'at', 'size'] as const;

function blockIn(text: string): PackedBlock | null {
  const line = objectIn(text);
  const isWhole = NUMBERS.every(
    (name) => Number.isSafeInteger(line?.[name]) && Number(line?.[name]) >= 0,
  );
  const terms = TermSet.parse(line?.['terms'], BLOCK_SET_BYTES);
  return isWhole && terms !== null ? { ...(line as unknown as PackedBlock), terms } : null;
}

/** What the beginning of an index says; `null`: it is damaged, too short, or of another version. */
export function headIn(text: string): IndexHead | null {
  const [head, second] = text.split('\n', 2).map(objectIn);
  if (head?.['event'] !== 'index' || head['version'] !== VERSION) return null;
  const { first, bootId, keeps } = head;
  const terms = TermSet.parse(second?.['terms'], SEGMENT_SET_BYTES);
  if (!Number.isSafeInteger(first) || typeof bootId !== 'string' || terms === null) return null;
  return { first: first as number, bootId, keeps: keepsIn(keeps), terms };
}

/** Which ends the rows are of, from the beginning of an index of any version. */
export function keepsOfIndex(text: string): readonly string[] | null {
  return keepsIn(objectIn(text.split('\n', 1).join())?.['keeps']);
}

function objectIn(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * The times of the earliest and the latest row, from the beginning of an index of any version; `null`:
 * unknown.
 */
export function rangeIn(text: string): { from: number; to: number } | null {
  const [, from, to] =
    /^\{"event":"index","version":\d+,.*?"from":(-?\d+),"to":(-?\d+)[,}]/.exec(text) ?? [];
  return from === undefined ? null : { from: Number(from), to: Number(to) };
}
