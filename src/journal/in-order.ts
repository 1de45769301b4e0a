import type { JournalRow } from './rows.js';

/** How late an end may be written after those that came later, by the kernel's time stamps. */
const LATE_NS = 5e9;

/** Most rows to hold for that; about 1 KiB each. */
const MOST = 4096;

interface Held {
  row: JournalRow;
  ns: number;
}

/**
 * Puts the ends of one boot into the order of the kernel's time stamps: what a recorder remembered, or the live
 * stream lost, is written later. Everything else keeps its place.
 */
export class InOrder {
  #held: Held[] = [];
  #taken = 0;
  #latest = 0;

  /** Takes the next row of the journal, and returns those that no other can precede. */
  push(row: JournalRow): JournalRow[] {
    const ns = (row.event === 'exit' ? row.exitedNs : null) ?? this.#latest;
    let at = this.#held.length;
    while (at > this.#taken && (this.#held[at - 1]?.ns ?? 0) > ns) at--;
    if (at === this.#held.length) this.#held.push({ row, ns });
    else this.#held.splice(at, 0, { row, ns });
    this.#latest = Math.max(this.#latest, ns);
    const due: JournalRow[] = [];
    for (
      let first = this.#held[this.#taken];
      first !== undefined;
      first = this.#held[this.#taken]
    ) {
      if (this.#held.length - this.#taken <= MOST && this.#latest - first.ns <= LATE_NS) break;
      due.push(first.row);
      this.#taken++;
    }
    // Shifting the array on every row would be slow.
    if (this.#taken > MOST) {
      this.#held = this.#held.slice(this.#taken);
      this.#taken = 0;
    }
    return due;
  }

  /** All the rest. */
  end(): JournalRow[] {
    const rest = this.#held.slice(this.#taken).map(({ row }) => row);
    this.#held = [];
    this.#taken = 0;
    this.#latest = 0;
    return rest;
  }
}
