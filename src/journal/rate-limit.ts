import type { ExitEvent } from '../events/exit-event.js';

import type { JournalSkip } from './rows.js';

const MINUTE_NS = 60e9;

/** Names to count at once; more share one count. */
const MOST_NAMES = 10_000;

interface Count {
  kept: number;
  sinceNs: number;
  skipped: ExitEvent[];
}

/**
 * Keeps so many ends a minute of each name, and counts the others, so that a process that crashes and is started
 * again at once does not fill a journal.
 */
export class RateLimit {
  readonly #most: number;
  readonly #nowNs: () => number;
  readonly #counts = new Map<string | null, Count>();

  constructor(most: number, nowNs: () => number = () => Number(process.hrtime.bigint())) {
    this.#most = most;
    this.#nowNs = nowNs;
  }

  /** Whether to keep this end; otherwise {@link RateLimit.takeSkipped} has it. */
  admits(event: ExitEvent): boolean {
    if (this.#most === Infinity) return true;
    const name = event.name ?? event.program;
    const key = this.#counts.size < MOST_NAMES || this.#counts.has(name) ? name : null;
    const now = this.#nowNs();
    const count = this.#counts.get(key) ?? { kept: 0, sinceNs: now, skipped: [] };
    this.#counts.set(key, count);
    if (now - count.sinceNs >= MINUTE_NS) {
      count.kept = 0;
      count.sinceNs = now;
    }
    if (count.kept < this.#most) {
      count.kept++;
      return true;
    }
    count.skipped.push(event);
    return false;
  }

  /** What was not kept since the last call: a row for each name, and the ends themselves. */
  takeSkipped(): { row: JournalSkip; exits: ExitEvent[] }[] {
    const taken = [];
    const now = this.#nowNs();
    for (const [name, count] of this.#counts) {
      const exits = count.skipped;
      count.skipped = [];
      if (exits.length > 0) taken.push({ row: rowOf(name, exits), exits });
      else if (now - count.sinceNs >= MINUTE_NS) this.#counts.delete(name);
    }
    return taken;
  }
}

function rowOf(name: string | null, exits: readonly ExitEvent[]): JournalSkip {
  const times = exits.map(({ exitedAt }) => exitedAt.getTime());
  const from = times.reduce((a, b) => Math.min(a, b));
  const to = times.reduce((a, b) => Math.max(a, b));
  const [first, last] = [new Date(from), new Date(to)];
  return { event: 'skipped', name, count: exits.length, from: first, to: last };
}
