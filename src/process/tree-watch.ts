import { setMaxListeners } from 'node:events';

import { withDeadline } from '../common/deadline.js';

import type { Cgroup } from './cgroup.js';
import { MemberStop } from './member-stop.js';
import type { ProcessTree, TreeMember } from './process-tree.js';
import { isWithin } from './stop-sequence.js';

/** How often members are looked for while they end: in ms, and at most a quarter of all time. */
const SCAN_MS = 20;
const LONGEST_SCAN_MS = 200;

/** Two looks that find nobody new: then there is nobody. */
const CALM_SCANS = 2;

/** How long how they ended may take, when they have: in ms. */
const STATUS_MS = 2000;

/** The members of a tree while they end: who is there, and who is new. */
export class TreeWatch {
  readonly #tree: ProcessTree;
  readonly #over: AbortSignal;
  /** By id, in the order in which they were found. */
  readonly #members = new Map<string, MemberStop>();
  readonly root: MemberStop;
  /** Ends the present pause. */
  #wake: () => void = () => undefined;

  /** @param over aborted when nobody waits any more */
  constructor(tree: ProcessTree, over: AbortSignal) {
    this.#tree = tree;
    this.#over = over;
    setMaxListeners(0, over); // one for each member
    over.addEventListener('abort', () => {
      this.wake();
    });
    this.root = this.#follow(tree.root);
  }

  /** The cgroup that is theirs alone; with each look it may turn out to be somebody else's, too. */
  get cgroup(): Cgroup | null {
    return this.#tree.cgroup;
  }

  get isIncomplete(): boolean {
    return this.#tree.isIncomplete;
  }

  get members(): readonly MemberStop[] {
    return [...this.#members.values()];
  }

  get living(): readonly MemberStop[] {
    return this.members.filter((member) => member.isLiving());
  }

  /** Looks once; resolves with those that are new. */
  async scan(): Promise<readonly MemberStop[]> {
    return (await this.#tree.scan()).map((member) => this.#follow(member));
  }

  /** Looks until nobody new is found. */
  async findAll(): Promise<void> {
    for (let calm = 0; calm < CALM_SCANS;) {
      const found = await this.scan();
      calm = found.length === 0 ? calm + 1 : 0;
    }
  }

  /** Whether nobody lives, and nobody new has come. */
  async isGone(): Promise<boolean> {
    for (let calm = 0; calm < CALM_SCANS; calm++) {
      if (!this.#isEmpty()) return false;
      const found = await this.scan();
      if (found.length > 0) calm = -1;
    }
    return this.#isEmpty();
  }

  #isEmpty(): boolean {
    return this.living.length === 0 && this.cgroup?.isEmpty() !== false;
  }

  /**
   * Looks until all are gone, time is over, or waiting is in vain. `onScan` is given those that are new,
   * if there are any.
   */
  async until(
    deadlineMs: number,
    onScan: (found: readonly MemberStop[]) => Promise<void>,
    isVain: () => boolean,
  ): Promise<void> {
    for (let calm = 0; !this.#over.aborted;) {
      const begin = performance.now();
      const found = await this.scan();
      await onScan(found);
      calm = found.length === 0 && this.#isEmpty() ? calm + 1 : 0;
      const now = performance.now();
      const hasLiving = this.living.length > 0;
      if (calm >= CALM_SCANS || now >= deadlineMs || (hasLiving && isVain())) return;
      const pauseMs = Math.max(SCAN_MS, Math.min(LONGEST_SCAN_MS, 3 * (now - begin)));
      if (calm === 0) await this.#pause(Math.min(pauseMs, deadlineMs - now));
    }
  }

  /** Resolves when it is known how they have ended, or that nobody will know. */
  async exits(): Promise<void> {
    const seen = Promise.all(this.members.map((member) => member.seen));
    await isWithin(
      seen.then(() => undefined),
      STATUS_MS,
    );
  }

  /** Has the next look taken at once. */
  wake(): void {
    this.#wake();
  }

  #follow(found: TreeMember): MemberStop {
    const member = new MemberStop(found, this.#over, () => {
      this.wake();
    });
    this.#members.set(found.identity.id, member);
    return member;
  }

  async #pause(forMs: number): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await withDeadline(woken, forMs);
  }
}
