import { once, EventEmitter } from 'node:events';

import type { ExitEvent } from '../../events/exit-event.js';
import { processTable } from '../../identity/platform-table.js';

/** Hooks that ended, whose children may still be told. */
const MOST_HOOKS = 16;
const MOST_PARENTS = 4096;
const MOST_GENERATIONS = 32;

/** How long after an end the end of its parent may be told. */
const LATE_MS = 2000;

/** Tells the ends of what a hook has started: a hook for these would never come to an end. */
export class OwnFamily {
  readonly #hooks = new Set<number>();
  /** The parents of those that ended of late. */
  readonly #parents = new Map<number, number>();
  readonly #learned = new EventEmitter();

  add(pid: number): void {
    this.#hooks.add(pid);
    trim(this.#hooks, MOST_HOOKS);
  }

  /** Of every end, as soon as it is told. */
  learn({ pid, parentPid }: ExitEvent): void {
    if (this.#hooks.size === 0 || parentPid === null) return;
    this.#parents.delete(pid);
    this.#parents.set(pid, parentPid);
    trim(this.#parents, MOST_PARENTS);
    this.#learned.emit('learned');
  }

  /**
   * Whether it was a descendant. A parent lived when its child ended: if it is gone by now, its end is
   * about to be told, and is waited for.
   */
  async has(event: ExitEvent): Promise<boolean> {
    for (;;) {
      const verdict = this.#judge(event);
      const leftMs = event.exitedAt.getTime() + LATE_MS - Date.now();
      if (verdict !== null || leftMs <= 0) return verdict === true;
      const signal = AbortSignal.timeout(leftMs);
      await once(this.#learned, 'learned', { signal }).catch(() => undefined);
    }
  }

  /** `null`: an ancestor is gone, and has not been told. */
  #judge({ pid, parentPid }: ExitEvent): boolean | null {
    if (this.#hooks.size === 0) return false;
    if (this.#hooks.has(pid)) return true;
    let ancestor = parentPid;
    for (let i = 0; i < MOST_GENERATIONS && ancestor !== null && ancestor > 1; i++) {
      if (this.#hooks.has(ancestor)) return true;
      ancestor = this.#parentOf(ancestor);
      if (ancestor === null) return null;
    }
    return false;
  }

  /** 0: it cannot be looked at, and is nobody that we have started. */
  #parentOf(pid: number): number | null {
    const lookup = processTable().lookNow(pid);
    if (lookup === null) return this.#parents.get(pid) ?? null;
    return lookup === 'unknown' ? 0 : (lookup.parentPid ?? 0);
  }
}

function trim(collection: Set<number> | Map<number, number>, most: number): void {
  for (const oldest of collection.keys()) {
    if (collection.size <= most) return;
    collection.delete(oldest);
  }
}
