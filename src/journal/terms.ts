import type { ExitEvent } from '../events/exit-event.js';
import { killerOf, requestBefore } from '../events/ended-by.js';
import { containerIdsOf, unitsOf } from '../where/whereabouts.js';

import type { JournalEvent } from './rows.js';

/** The size of the set of a block, and of a segment. */
export const BLOCK_SET_BYTES = 4096;
export const SEGMENT_SET_BYTES = 16_384;

const HASHES = 3;

/** Docker and its like print so many digits of a container's id. */
export const SHORT_ID = 12;

/** The fewest digits of one that can be asked for. */
export const SHORTEST_ID = 4;

/** What can be asked for without reading every row. */
export const term = {
  name: (name: string) => `n:${name}`,
  pid: (pid: number) => `p:${pid}`,
  unit: (unit: string) => `u:${unit}`,
  container: (id: string) => `c:${id.slice(0, SHORT_ID)}`,
  containerStart: (id: string) => `s:${id.slice(0, SHORTEST_ID)}`,
  containerName: (name: string) => `m:${name}`,
  killerName: (name: string) => `k:${name}`,
  killerPid: (pid: number) => `q:${pid}`,
  /** Not an end: it is of interest to everybody. */
  other: () => 'other',
};

/** Pids, which each row has others of: a set of a whole segment would seem to have all of them. */
const VARIED = /^[pq]:/;

/** Whether the set of a segment has such terms. */
export function isOfSegment(text: string): boolean {
  return !VARIED.test(text);
}

/**
 * A set of terms that never forgets one, and takes some for its own that it has not: a Bloom filter.
 * That of a block errs in one of 75 cases with 3,000 terms.
 */
export class TermSet {
  readonly #bits: Uint8Array;

  constructor(bits: Uint8Array) {
    this.#bits = bits;
  }

  static ofBytes(bytes: number): TermSet {
    return new TermSet(new Uint8Array(bytes));
  }

  /** `null`: it is damaged. */
  static parse(text: unknown, bytes: number): TermSet | null {
    if (typeof text !== 'string') return null;
    const bits = Buffer.from(text, 'base64');
    return bits.length === bytes ? new TermSet(bits) : null;
  }

  add(text: string): void {
    const { first, step } = hashOf(text);
    const size = this.#bits.length * 8;
    for (let i = 0; i < HASHES; i++) {
      const bit = (first + i * step) % size;
      this.#bits[bit >> 3] = (this.#bits[bit >> 3] ?? 0) | (1 << (bit & 7));
    }
  }

  mayHave(text: string): boolean {
    const { first, step } = hashOf(text);
    const size = this.#bits.length * 8;
    for (let i = 0; i < HASHES; i++) {
      const bit = (first + i * step) % size;
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

/** What an end can be found by. */
export interface Findable extends Names {
  pid: number;
  cgroup: string | null;
  container: ExitEvent['container'];
  killer: (Names & { pid: number }) | null;
}

/** `null`: it is no end. */
export function findableOf(event: JournalEvent): Findable | null {
  if (event.event !== 'exit') return null;
  const { pid, name, program, cgroup } = event;
  // A program may append what an earlier version has told it.
  const container = (event.container as ExitEvent['container'] | undefined) ?? null;
  const by = enderOf(event);
  const killer = by?.pid == null ? null : { pid: by.pid, name: by.name, program: by.program };
  return { pid, name, program, cgroup, container, killer };
}

/** The terms of a row. */
export function termsOf(found: Findable | null): string[] {
  if (found === null) return [term.other()];
  const { container, killer } = found;
  const terms = [term.pid(found.pid)];
  for (const name of namesOf(found)) terms.push(term.name(name));
  for (const unit of unitsOf(found.cgroup).units) terms.push(term.unit(unit));
  for (const id of containerIdsOf(found)) terms.push(term.container(id), term.containerStart(id));
  if (container?.name != null) terms.push(term.containerName(container.name));
  if (killer === null) return terms;
  terms.push(term.killerPid(killer.pid));
  for (const name of namesOf(killer)) terms.push(term.killerName(name));
  return terms;
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
