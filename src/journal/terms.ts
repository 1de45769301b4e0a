import type { ExitEvent } from '../events/exit-event.js';
import { killerOf, requestBefore } from '../events/ended-by.js';
import { unitsOf } from '../where/whereabouts.js';

import type { JournalEvent } from './rows.js';

const BYTES = 4096;
const BITS = BYTES * 8;
const HASHES = 3;

/** Docker and its like print so many digits of a container's id. */
export const SHORT_ID = 12;

/** What can be asked for without reading every row. */
export const term = {
  name: (name: string) => `n:${name}`,
  pid: (pid: number) => `p:${pid}`,
  unit: (unit: string) => `u:${unit}`,
  container: (id: string) => `c:${id.slice(0, SHORT_ID)}`,
  containerName: (name: string) => `m:${name}`,
  killerName: (name: string) => `k:${name}`,
  killerPid: (pid: number) => `q:${pid}`,
  /** Not an end: it is of interest to everybody. */
  other: () => 'other',
};

/**
 * A set of terms that never forgets one, and takes some for its own that it has not: a Bloom filter.
 * With 3,000 terms, it errs in one of 75 cases.
 */
export class TermSet {
  readonly #bits: Uint8Array;

  constructor(bits: Uint8Array = new Uint8Array(BYTES)) {
    this.#bits = bits;
  }

  /** `null`: it is damaged. */
  static parse(text: string): TermSet | null {
    const bits = Buffer.from(text, 'base64');
    return bits.length === BYTES ? new TermSet(bits) : null;
  }

  add(text: string): void {
    const { first, step } = hashOf(text);
    for (let i = 0; i < HASHES; i++) {
      const bit = (first + i * step) % BITS;
      this.#bits[bit >> 3] = (this.#bits[bit >> 3] ?? 0) | (1 << (bit & 7));
    }
  }

  mayHave(text: string): boolean {
    const { first, step } = hashOf(text);
    for (let i = 0; i < HASHES; i++) {
      const bit = (first + i * step) % BITS;
      if (((this.#bits[bit >> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
    }
    return true;
  }

  toString(): string {
    return Buffer.from(this.#bits).toString('base64');
  }
}

/** FNV-1a, and a second hash from its bits. */
function hashOf(text: string): { first: number; step: number } {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  return { first: hash >>> 0, step: (mixed | 1) >>> 0 };
}

/** Adds what a row can be found by. */
export function addTerms(terms: TermSet, event: JournalEvent): void {
  if (event.event !== 'exit') {
    terms.add(term.other());
    return;
  }
  terms.add(term.pid(event.pid));
  for (const name of namesOf(event)) terms.add(term.name(name));
  for (const unit of unitsOf(event.cgroup).units) terms.add(term.unit(unit));
  // A program may append what an earlier version has told it.
  const container = event.container as ExitEvent['container'] | undefined;
  if (container != null) {
    terms.add(term.container(container.id));
    if (container.name !== null) terms.add(term.containerName(container.name));
  }
  const killer = enderOf(event);
  if (killer?.pid == null) return;
  terms.add(term.killerPid(killer.pid));
  for (const name of namesOf(killer)) terms.add(term.killerName(name));
}

/** Earlier versions did not write the program of a sender. */
type Names = Pick<ExitEvent, 'name'> & { program?: string | null };

/** The kernel's name and the program's, if they are known. */
export function namesOf({ name, program = null }: Names): string[] {
  if (program === null || program === name) return name === null ? [] : [name];
  return name === null ? [program] : [name, program];
}

/** Who ended it: by a signal that killed it, or that asked it to exit. */
export function enderOf(event: ExitEvent) {
  return killerOf(event) ?? requestBefore(event);
}
