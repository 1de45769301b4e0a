import { once, EventEmitter } from 'node:events';

import type { ExitEvent } from '../../events/exit-event.js';
import { processTable } from '../../identity/platform-table.js';

/** How many finished hooks to remember: exits of their children may still be reported. */
const MOST_HOOKS = 16;
const MOST_PARENTS = 4096;
const MOST_GENERATIONS = 32;

/** How long after an exit the exit of its parent may be reported. */
const LATE_MS = 2000;

/**
 * Recognizes the exits of processes that a hook started: running the hook for them would never end.
 */
export class OwnFamily {
  readonly #hooks = new Set<number>();
  /** The parents of processes that exited recently. */
  readonly #parents = new Map<number, number>();
  readonly #learned = new EventEmitter();

  add(pid: number): void {
    this.#hooks.add(pid);
    trim(this.#hooks, MOST_HOOKS);
  }

  /** Call this for every exit, as soon as it is reported. */
  learn({ pid, parentPid }: ExitEvent): void {
    if (this.#hooks.size === 0 || parentPid === null) return;
    this.#parents.delete(pid);
    this.#parents.set(pid, parentPid);
    trim(this.#parents, MOST_PARENTS);
    this.#learned.emit('learned');
  }

  /**
   * Whether the process descended from a hook. Its parent was alive when it exited: if the parent
   * is gone by now, its exit is about to be reported, so this waits for it.
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

  /** `null`: an ancestor is gone, but its exit has not been reported yet. */
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

  /** 0: it cannot be read, so we did not start it. */
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
