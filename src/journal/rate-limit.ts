import type { ExitEvent } from '../events/exit-event.js';

import type { JournalSkip } from './rows.js';

const MINUTE_NS = 60e9;

/** Names to count at once; more share one count. */
const MOST_NAMES = 10_000;

/** Ends whose count is not on disk yet, at about 50 bytes each; a recorder has room for fewer by default. */
const MOST_HELD = 65_536;

/** Of a name. */
interface Count {
  kept: number;
  sinceNs: number;
  /** Since it was last taken, by program. */
  skipped: Map<string | null, Skipped>;
}

interface Skipped {
  count: number;
  /** When they ended, in ms. */
  from: number;
  to: number;
  ids: string[];
}

/** A count of ends that were not kept, and their ids. */
export interface Counted {
  row: JournalSkip;
  ids: readonly string[];
}

/**
 * Keeps so many ends a minute of each name, and counts the others, so that a process that crashes and is started
 * again at once does not fill a journal.
 */
export class RateLimit {
  readonly #most: number;
  readonly #nowNs: () => number;
  readonly #counts = new Map<string | null, Count>();
  #held = 0;

  constructor(most: number, nowNs: () => number = () => Number(process.hrtime.bigint())) {
    this.#most = most;
    this.#nowNs = nowNs;
  }

  /**
   * What to do with an end: `'keep'` it; or it is counted, and {@link RateLimit.takeSkipped} has its id. `'forget'`: it is
   * counted without its id, because there are too many.
   */
  admit({ id, name, program, exitedAt }: ExitEvent): 'keep' | 'count' | 'forget' {
    if (this.#most === Infinity) return 'keep';
    const { key, count } = this.#countOf(name ?? program);
    if (count.kept < this.#most) {
      count.kept++;
      return 'keep';
    }
    const own = key === null ? null : program;
    const skipped = count.skipped.get(own) ?? { count: 0, from: Infinity, to: -Infinity, ids: [] };
    count.skipped.set(own, skipped);
    const at = exitedAt.getTime();
    skipped.from = Math.min(skipped.from, at);
    skipped.to = Math.max(skipped.to, at);
    skipped.count++;
    if (this.#held === MOST_HELD) return 'forget';
    skipped.ids.push(id);
    this.#held++;
    return 'count';
  }

  /** What was not kept since the last call, for each name and program. */
  takeSkipped(): Counted[] {
    const taken: Counted[] = [];
    const now = this.#nowNs();
    for (const [name, { skipped, sinceNs }] of this.#counts) {
      for (const [program, { count, from, to, ids }] of skipped) {
        const times = { from: new Date(from), to: new Date(to) };
        taken.push({ row: { event: 'skipped', name, program, count, ...times }, ids });
      }
      if (skipped.size > 0) skipped.clear();
      else if (now - sinceNs >= MINUTE_NS) this.#counts.delete(name);
    }
    this.#held = 0;
    return taken;
  }

  #countOf(name: string | null): { key: string | null; count: Count } {
    const key = this.#counts.size < MOST_NAMES || this.#counts.has(name) ? name : null;
    const now = this.#nowNs();
    const count = this.#counts.get(key) ?? { kept: 0, sinceNs: now, skipped: new Map() };
    this.#counts.set(key, count);
    if (now - count.sinceNs >= MINUTE_NS) {
      count.kept = 0;
      count.sinceNs = now;
    }
    return { key, count };
  }
}
