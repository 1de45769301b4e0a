import { once, EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';

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
  readonly #look: typeof lookNow;

  /** `look`: tests give it the states of a process that last only for a moment. */
  constructor(look = lookNow) {
    this.#look = look;
  }

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

  /** 0: it is hidden from us, so we did not start it. */
  #parentOf(pid: number): number | null {
    const lookup = this.#look(pid);
    if (lookup === 'hidden') return 0;
    return lookup === null ? (this.#parents.get(pid) ?? null) : (lookup.parentPid ?? 0);
  }
}

/** `null`: it is gone, or the kernel is just releasing it: then its exit is about to be reported. */
function lookNow(pid: number): { parentPid: number | null } | 'hidden' | null {
  const lookup = processTable().lookNow(pid);
  if (lookup !== 'unknown') return lookup;
  try {
    readFileSync(`/proc/${pid}/stat`);
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isGone = process.platform === 'linux' && (code === 'ENOENT' || code === 'ESRCH');
    return isGone ? null : 'hidden';
  }
}

function trim(collection: Set<number> | Map<number, number>, most: number): void {
  for (const oldest of collection.keys()) {
    if (collection.size <= most) return;
    collection.delete(oldest);
  }
}
