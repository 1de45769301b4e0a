import { once, EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';

import type { ExitEvent } from '../../events/exit-event.js';
import type { SignalEvent, SignalSender } from '../../events/signal-event.js';
import { processTable } from '../../identity/platform-table.js';

/** How many hooks to remember: exits of their children may still be reported. */
const MOST_HOOKS = 1024;
const MOST_PARENTS = 4096;
const MOST_GENERATIONS = 32;

/** How long after an exit the exit of its parent may be reported. */
const LATE_MS = 2000;

/** How exactly the times of exits and those of hooks agree. */
const SLACK_MS = 100;

/** When a hook had its pid, in ms. */
interface Life {
  from: number;
  to: number;
}

/**
 * Recognizes the exits of processes that a hook started: running the hook for them would never end.
 */
export class OwnFamily {
  readonly #hooks = new Map<number, Life>();
  /** The parents of processes that exited recently. */
  readonly #parents = new Map<number, number>();
  readonly #learned = new EventEmitter();
  readonly #look: typeof lookNow;

  /** `look`: tests give it the states of a process that last only for a moment. */
  constructor(look = lookNow) {
    this.#look = look;
  }

  /** A hook begins. */
  add(pid: number, began: Date): void {
    this.#hooks.delete(pid);
    this.#hooks.set(pid, { from: began.getTime(), to: Infinity });
    trim(this.#hooks, MOST_HOOKS);
  }

  /** It has ended: another process may get its pid. */
  end(pid: number): void {
    const life = this.#hooks.get(pid);
    if (life !== undefined) life.to = Date.now();
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

  /**
   * Whether a process whose parent is unknown may have descended from a hook: one ran when it exited.
   */
  mayHave({ parentPid, startedAt, exitedAt }: ExitEvent): boolean {
    if (parentPid !== null) return false;
    const [startMs, endMs] = [startedAt?.getTime() ?? Infinity, exitedAt.getTime()];
    return [...this.#hooks.values()].some(
      (life) => isDuring(life, endMs) && startMs >= life.from - SLACK_MS,
    );
  }

  /** Whether a hook, or what it runs, has sent a signal. */
  hasSent({ pid, ancestors, sentAt }: SignalSender): boolean {
    if (pid === null) return false;
    const atMs = sentAt.getTime();
    return [pid, ...ancestors.map((ancestor) => ancestor.pid)].some((each) =>
      this.#isHook(each, atMs),
    );
  }

  /** Whether a hook, or what it runs, has got a signal. If nothing is known of it any more, its sender tells. */
  hasGot({ pid, sender }: SignalEvent): boolean {
    if (this.#hooks.size === 0) return false;
    return this.#descends(pid, sender.sentAt.getTime()) ?? this.hasSent(sender);
  }

  /** `null`: an ancestor is gone, but its exit has not been reported yet. */
  #judge({ pid, parentPid, exitedAt }: ExitEvent): boolean | null {
    if (this.#hooks.size === 0) return false;
    const atMs = exitedAt.getTime();
    return this.#isHook(pid, atMs) || this.#descends(parentPid, atMs);
  }

  #descends(pid: number | null, atMs: number): boolean | null {
    let ancestor = pid;
    for (let i = 0; i < MOST_GENERATIONS && ancestor !== null && ancestor > 1; i++) {
      if (this.#isHook(ancestor, atMs)) return true;
      ancestor = this.#parentOf(ancestor);
      if (ancestor === null) return null;
    }
    return false;
  }

  #isHook(pid: number, atMs: number): boolean {
    const life = this.#hooks.get(pid);
    return life !== undefined && isDuring(life, atMs);
  }

  /** 0: it is hidden from us, so we did not start it. */
  #parentOf(pid: number): number | null {
    const lookup = this.#look(pid);
    if (lookup === 'hidden') return 0;
    return lookup === null ? (this.#parents.get(pid) ?? null) : (lookup.parentPid ?? 0);
  }
}

function isDuring({ from, to }: Life, atMs: number): boolean {
  return atMs >= from - SLACK_MS && atMs <= to + SLACK_MS;
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

function trim(collection: Map<number, unknown>, most: number): void {
  for (const oldest of collection.keys()) {
    if (collection.size <= most) return;
    collection.delete(oldest);
  }
}
