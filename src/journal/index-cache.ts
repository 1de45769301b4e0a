import type { FileHandle } from 'node:fs/promises';

import { bytesAt } from '../common/small-file.js';

import { MOST_HEADER_BYTES } from './rows.js';
import { indexName } from './segment-files.js';
import {
  headIn,
  type IndexHead,
  keepsOfIndex,
  parseIndex,
  rangeIn,
  type SegmentIndex,
} from './segment-index.js';

/** How many segments to remember, at about 20 KiB each. */
const MOST_STARTS = 512;

/** What the beginning of an index says; `null` where it is damaged, or of another version. */
export interface IndexStart extends Pick<IndexHead, 'keeps'> {
  /** The times of the earliest and the latest row, in ms. */
  range: { from: number; to: number } | null;
  head: IndexHead | null;
}

/**
 * The indexes of a directory, each of which is read once: a story takes many questions. What is compressed does not change;
 * who asks for long has a new one for each question, because a directory may be replaced.
 */
export class IndexCache {
  readonly #mostWhole: number;
  readonly #open: (name: string) => Promise<FileHandle | null>;
  readonly #starts = new Map<number, IndexStart>();
  readonly #whole = new Map<number, SegmentIndex>();

  /** Keeps so many with all their blocks, at about 300 KiB each. `open`: opens a file of the directory. */
  constructor(mostWhole: number, open: (name: string) => Promise<FileHandle | null>) {
    this.#mostWhole = mostWhole;
    this.#open = open;
  }

  /** What the index of this segment begins with; `null`: it has none. */
  async start(first: number): Promise<IndexStart | null> {
    const known = this.#starts.get(first);
    if (known !== undefined) return known;
    const file = await this.#open(indexName(first));
    if (file === null) return null;
    try {
      const text = (await bytesAt(file, 0, MOST_HEADER_BYTES)).toString('utf8');
      const start = { range: rangeIn(text), head: headIn(text), keeps: keepsOfIndex(text) };
      return remember(this.#starts, MOST_STARTS, first, start);
    } finally {
      await file.close();
    }
  }

  /** All of it; `null`: there is none that can be read. */
  async whole(first: number): Promise<SegmentIndex | null> {
    const known = this.#whole.get(first);
    if (known !== undefined) return known;
    const file = await this.#open(indexName(first));
    if (file === null) return null;
    try {
      const index = parseIndex(await file.readFile('utf8'));
      return index && remember(this.#whole, this.#mostWhole, first, index);
    } finally {
      await file.close();
    }
  }
}

function remember<T>(known: Map<number, T>, most: number, first: number, value: T): T {
  const [oldest] = known.keys();
  if (known.size >= most && oldest !== undefined) known.delete(oldest);
  known.set(first, value);
  return value;
}
