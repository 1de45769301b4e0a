import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { isCount, isListOf, isObjectOf, isText, isTime, orNull } from '../common/json-checks.js';
import { replaceFile } from '../common/small-file.js';
import type { Counted } from '../journal/rate-limit.js';
import { readJournal } from '../journal/read-journal.js';
import type { JournalSkip } from '../journal/rows.js';

const FILE = 'counted';

/**
 * The ids of the ends that the latest `skipped` rows have counted, in a file beside the journal. Like those in rows, they
 * may be delivered again: a recorder forgets in its own order, and so not at once.
 */
export class CountedEnds {
  readonly #dir: string;
  readonly #known = new Set<string>();
  /** What was noted last. A recorder has forgotten what was counted before that. */
  #latest: Counted[] = [];

  /** `dir`: the journal's. */
  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Whether an earlier recording has counted this end. */
  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** Takes what an earlier recording has noted, if the journal has its row: otherwise it was killed in between. */
  async restore(): Promise<void> {
    const noted = this.#read();
    if (noted.length === 0) return;
    const since = new Date(Math.min(...noted.map(({ row }) => row.from.getTime())));
    const keys = new Set<string>();
    try {
      for await (const row of readJournal({ dir: this.#dir, since })) {
        if (row.event === 'skipped') keys.add(keyOf(row));
      }
    } catch {
      // What cannot be read is no reason not to record.
    }
    this.#latest = noted.filter(({ row }) => keys.has(keyOf(row)));
    for (const { ids } of this.#latest) for (const id of ids) this.#known.add(id);
  }

  /** Call this before the rows are written. Resolves with whether there was room for it. */
  async note(counted: Counted[]): Promise<boolean> {
    try {
      await replaceFile(join(this.#dir, FILE), JSON.stringify([...this.#latest, ...counted]));
    } catch {
      return false;
    }
    this.#latest = counted;
    return true;
  }

  #read(): Counted[] {
    try {
      const noted: unknown = JSON.parse(readFileSync(join(this.#dir, FILE), 'utf8'));
      return Array.isArray(noted) ? noted.flatMap((each) => countedIn(each) ?? []) : [];
    } catch {
      return []; // there is none
    }
  }
}

const isCounted = isObjectOf({
  row: isObjectOf({ name: orNull(isText), count: isCount, from: isTime, to: isTime }),
  ids: isListOf(isText),
});

function countedIn(value: unknown): Counted | null {
  if (!isCounted(value)) return null;
  const { row, ids } = value as Counted;
  const { program = null } = row as Partial<JournalSkip>; // an earlier version did not write it
  return { row: { ...row, program, from: new Date(row.from), to: new Date(row.to) }, ids };
}

function keyOf({ name, program, count, from, to }: JournalSkip): string {
  return JSON.stringify([name, program, count, from, to]);
}
