import type { ExitEvent } from '../exit-event.js';
import { processTable } from '../process-table/process-table.js';

/** Hooks that ended, whose children may still be told. */
const MOST_HOOKS = 16;
const MOST_PARENTS = 4096;
const MOST_GENERATIONS = 32;

/** Tells the ends of what a hook has started: a hook for these would never come to an end. */
export class OwnFamily {
  readonly #hooks = new Set<number>();
  /** The parents of those that ended of late. */
  readonly #parents = new Map<number, number>();

  add(pid: number): void {
    this.#hooks.add(pid);
    trim(this.#hooks, MOST_HOOKS);
  }

  /** Of every end, before {@link has} is asked: a parent may be told in the same batch as its child. */
  learn({ pid, parentPid }: ExitEvent): void {
    if (this.#hooks.size === 0 || parentPid === null) return;
    this.#parents.delete(pid);
    this.#parents.set(pid, parentPid);
    trim(this.#parents, MOST_PARENTS);
  }

  /** Also of a descendant, as long as its line of parents can be seen. */
  has({ pid, parentPid }: ExitEvent): boolean {
    if (this.#hooks.size === 0) return false;
    if (this.#hooks.has(pid)) return true;
    let ancestor = parentPid;
    for (let i = 0; i < MOST_GENERATIONS && ancestor !== null && ancestor > 1; i++) {
      if (this.#hooks.has(ancestor)) return true;
      ancestor = this.#parentOf(ancestor);
    }
    return false;
  }

  #parentOf(pid: number): number | null {
    const sight = processTable().lookNow(pid);
    const parent = sight === null || sight === 'unknown' ? null : sight.parentPid;
    return parent ?? this.#parents.get(pid) ?? null;
  }
}

function trim(collection: Set<number> | Map<number, number>, most: number): void {
  for (const oldest of collection.keys()) {
    if (collection.size <= most) return;
    collection.delete(oldest);
  }
}
