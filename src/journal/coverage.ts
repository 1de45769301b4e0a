import { bytesAt } from '../common/small-file.js';

import type { JournalDirectory } from './journal-directory.js';
import { MOST_HEADER_BYTES, parseHeader, parseRow, timeOf } from './rows.js';
import { packedName, plainName, type SegmentFiles } from './segment-files.js';

/** In the words of a writer; `null`: all ends. */
export type Kept = readonly string[] | null;

/** The times of a segment, in ms, and which ends its writer was given. */
interface Part {
  from: number;
  to: number;
  keeps: Kept;
}

/** Which times a journal is about, and which ends it was given. */
export class Coverage {
  readonly #parts: readonly Part[];

  private constructor(parts: readonly Part[]) {
    this.#parts = parts;
  }

  /** Rejects with `ERR_EXITWATCH_JOURNAL`. */
  static async of(directory: JournalDirectory): Promise<Coverage> {
    const parts: Part[] = [];
    for (const files of await directory.segments()) {
      const part = await partIn(directory, files);
      if (part !== null) parts.push(part);
    }
    return new Coverage(parts);
  }

  /** `null`: it has no rows yet, or nobody knows. */
  get begins(): Date | null {
    const from = Math.min(...this.#parts.map((part) => part.from));
    return Number.isFinite(from) ? new Date(from) : null;
  }

  /** Which ends it was given at these times; each answer once. */
  kept(since?: Date, until?: Date): Kept[] {
    const [from, to] = [since?.getTime() ?? -Infinity, until?.getTime() ?? Infinity];
    const kept = new Map<string, Kept>();
    for (const part of this.#parts) {
      if (part.to >= from && part.from <= to) kept.set(JSON.stringify(part.keeps), part.keeps);
    }
    return [...kept.values()];
  }
}

/** `null`: it was removed meanwhile. */
async function partIn(
  directory: JournalDirectory,
  { first, isPlain }: SegmentFiles,
): Promise<Part | null> {
  const plain = isPlain ? await startOf(directory, plainName(first)) : null;
  if (plain !== null) {
    const [line = '', second = ''] = plain.split('\n', 2);
    const header = parseHeader(line);
    const row = parseRow(second);
    const times = [header?.at, row === null ? undefined : timeOf(row)];
    const from = Math.min(...times.map((time) => time?.getTime() ?? Infinity));
    return {
      from: from === Infinity ? -Infinity : from,
      to: Infinity,
      keeps: header?.keeps ?? null,
    };
  }
  const index = await directory.indexes.start(first);
  if (index === null) {
    const packed = await directory.file(packedName(first));
    await packed?.close();
    return packed === null ? null : { from: -Infinity, to: Infinity, keeps: null };
  }
  return { ...(index.range ?? { from: -Infinity, to: Infinity }), keeps: index.keeps };
}

async function startOf(directory: JournalDirectory, name: string): Promise<string | null> {
  const file = await directory.file(name);
  if (file === null) return null;
  try {
    return (await bytesAt(file, 0, MOST_HEADER_BYTES)).toString('utf8');
  } finally {
    await file.close();
  }
}
