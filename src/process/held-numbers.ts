import type { ProcessRow } from '../identity/process-table.js';

import type { PidCursor, PidMark } from './pid-cursor.js';

/** How other processes refer to a process: as parent, session leader or group leader. */
export type NumberKind = 'process' | 'session' | 'group';

/**
 * Ids of processes, sessions and groups that are known to belong to a tree. The kernel does not
 * reuse an id while it is in use. After that, the id is dropped as soon as it may have been reused.
 */
export class HeldNumbers {
  readonly #cursor: PidCursor;
  /** With the last time at which it belonged to a member. */
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
   * Drops the ids that belong to other processes now, or may. `rows`: all processes, read after
   * `before`. `present`: the members among them that still existed after `now`.
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

/** Whether a member keeps the id in use although its owner is gone. */
function isInUse(kind: NumberKind, number: number, present: readonly ProcessRow[]): boolean {
  if (kind === 'process') return false;
  return present.some(
    ({ sessionId, groupId }) => (kind === 'session' ? sessionId : groupId) === number,
  );
}
