import { setMaxListeners } from 'node:events';

import { withDeadline } from '../common/deadline.js';

import type { Cgroup } from './cgroup.js';
import { MemberStop } from './member-stop.js';
import type { ProcessTree, TreeMember } from './process-tree.js';
import { isWithin } from './stop-sequence.js';

/**
 * Shortest and longest pause between scans, in ms; within these limits, three times a scan's
 * duration.
 */
const SCAN_MS = 20;
const LONGEST_SCAN_MS = 200;

/** After two scans in a row without a new member, there are no more. */
const CALM_SCANS = 2;

/** How long to wait for the outcomes of members that are gone, in ms. */
const STATUS_MS = 2000;

/** The members of a tree while they exit: which ones still exist, and which ones are new. */
export class TreeWatch {
  readonly #tree: ProcessTree;
  readonly #over: AbortSignal;
  /** By id, in the order in which they were found. */
  readonly #members = new Map<string, MemberStop>();
  readonly root: MemberStop;
  /** Ends the current pause. */
  #wake: () => void = () => undefined;

  /** @param over aborted when no caller waits any more */
  constructor(tree: ProcessTree, over: AbortSignal) {
    this.#tree = tree;
    this.#over = over;
    setMaxListeners(0, over); // one for each member
    over.addEventListener('abort', () => {
      this.wake();
    });
    this.root = this.#follow(tree.root);
  }

  /** The cgroup that contains only the tree; any scan may find that it contains others too. */
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

  /** Scans once; resolves with the new members. */
  async scan(): Promise<readonly MemberStop[]> {
    return (await this.#tree.scan()).map((member) => this.#follow(member));
  }

  /** Scans until there are no new members. */
  async findAll(): Promise<void> {
    for (let calm = 0; calm < CALM_SCANS;) {
      const found = await this.scan();
      calm = found.length === 0 ? calm + 1 : 0;
    }
  }

  /** Whether no member is alive, and no new ones have appeared. */
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
   * Scans until all members are gone, time is up, or `isVain()`. `onScan` gets the new members, if
   * any.
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

  /** Resolves when the outcomes are known, or cannot become known. */
  async exits(): Promise<void> {
    const seen = Promise.all(this.members.map((member) => member.seen));
    await isWithin(
      seen.then(() => undefined),
      STATUS_MS,
    );
  }

  /** Starts the next scan at once. */
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
