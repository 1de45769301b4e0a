import type { ExitEvent } from '../events/exit-event.js';

import type { JournalSkip } from './rows.js';

const MINUTE_NS = 60e9;

/** Names to count at once; more share one count. */
const MOST_NAMES = 10_000;

/** Ends whose count is not on disk yet, at about 50 bytes each; a recorder has room for fewer by default. */
const MOST_HELD = 65_536;

interface Count extends Names {
  kept: number;
  sinceNs: number;
  skipped: number;
  /** When they ended, in ms. */
  from: number;
  to: number;
  ids: string[];
}

type Names = Pick<JournalSkip, 'name' | 'program'>;

/** A count of ends that were not kept, and their ids. */
export interface Counted {
  row: JournalSkip;
  ids: readonly string[];
}

/**
 * Keeps so many ends a minute of each name and program, and counts the others, so that a process that crashes and is started
 * again at once does not fill a journal.
 */
export class RateLimit {
  readonly #most: number;
  readonly #nowNs: () => number;
  readonly #counts = new Map<string, Count>();
  #held = 0;

  constructor(most: number, nowNs: () => number = () => Number(process.hrtime.bigint())) {
    this.#most = most;
    this.#nowNs = nowNs;
  }

  /**
   * What to do with an end: `'keep'` it; or it is counted, and {@link RateLimit.takeSkipped} has its id. `'forget'`: it is
   * counted without its id, because there are too many.
   */
  admit(event: ExitEvent): 'keep' | 'count' | 'forget' {
    if (this.#most === Infinity) return 'keep';
    const count = this.#countOf(event);
    if (count.kept < this.#most) {
      count.kept++;
      return 'keep';
    }
    const at = event.exitedAt.getTime();
    count.from = Math.min(count.from, at);
    count.to = Math.max(count.to, at);
    count.skipped++;
    if (this.#held === MOST_HELD) return 'forget';
    count.ids.push(event.id);
    this.#held++;
    return 'count';
  }

  /** What was not kept since the last call, for each name. */
  takeSkipped(): Counted[] {
    const taken: Counted[] = [];
    const now = this.#nowNs();
    for (const [key, count] of this.#counts) {
      const { name, program, skipped, ids, from, to, sinceNs } = count;
      if (skipped > 0) {
        const times = { from: new Date(from), to: new Date(to) };
        taken.push({ row: { event: 'skipped', name, program, count: skipped, ...times }, ids });
        Object.assign(count, NONE, { ids: [] });
      } else if (now - sinceNs >= MINUTE_NS) this.#counts.delete(key);
    }
    this.#held = 0;
    return taken;
  }

  #countOf(event: Names): Count {
    const own = `${event.name ?? ''}/${event.program ?? ''}`;
    const isOwn = this.#counts.size < MOST_NAMES || this.#counts.has(own);
    const [key, { name, program }] = isOwn ? [own, event] : [OTHERS, NAMELESS];
    const now = this.#nowNs();
    const count = this.#counts.get(key) ?? {
      ...{ name, program, kept: 0, sinceNs: now, ...NONE, ids: [] },
    };
    this.#counts.set(key, count);
    if (now - count.sinceNs >= MINUTE_NS) {
      count.kept = 0;
      count.sinceNs = now;
    }
    return count;
  }
}

/** No file has this name. */
const OTHERS = '/';
const NAMELESS: Names = { name: null, program: null };

const NONE = { skipped: 0, from: Infinity, to: -Infinity };
