import type { ProcessRow } from '../identity/process-table.js';

import type { PidCursor, PidMark } from './pid-cursor.js';

/** How others refer to a process: as their parent, or by what it leads. */
export type NumberKind = 'process' | 'session' | 'group';

/**
 * Numbers that are known to mean a member of a tree, its session or its group. A number is given to
 * nobody else while one of these has it; afterwards it is forgotten as soon as that may have happened.
 */
export class HeldNumbers {
  readonly #cursor: PidCursor;
  /** With the last moment at which it was a member's. */
  readonly #held = new Map<string, { kind: NumberKind; number: number; mark: PidMark }>();

  constructor(cursor: PidCursor) {
    this.#cursor = cursor;
  }

  hold(kind: NumberKind, number: number, mark: PidMark): void {
    this.#held.set(`${kind} ${number}`, { kind, number, mark });
  }

  has(kind: NumberKind, number: number | null): boolean {
    return number !== null && this.#held.has(`${kind} ${number}`);
  }

  /**
   * Forgets the numbers that are, or may be, somebody else's by now. `rows`: all processes, as they were
   * read after `before`; `present`: the members among them, seen to be still there after `now`.
   */
  renew(
    rows: ReadonlyMap<number, ProcessRow>,
    present: readonly ProcessRow[],
    before: PidMark,
    now: PidMark,
  ): void {
    for (const [key, { kind, number, mark }] of this.#held) {
      if (present.some(({ pid }) => pid === number)) this.hold(kind, number, now);
      else if (rows.has(number)) this.#held.delete(key);
      else if (isInUse(kind, number, present)) this.hold(kind, number, before);
      else if (this.#cursor.mayHaveBeenGiven(number, mark, now)) this.#held.delete(key);
    }
  }
}

/** Whether one of these keeps the number from being given again, although its owner has gone. */
function isInUse(kind: NumberKind, number: number, present: readonly ProcessRow[]): boolean {
  if (kind === 'process') return false;
  return present.some(
    ({ sessionId, groupId }) => (kind === 'session' ? sessionId : groupId) === number,
  );
}
