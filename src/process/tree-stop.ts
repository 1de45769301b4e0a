import type { ProcessIdentity } from '../identity/process-identity.js';
import { goneBeforeWatch } from '../monitor/watch-target.js';

import type { StoppedMember } from './member-stop.js';
import { signalProcess } from './process-signal.js';
import { ProcessTree } from './process-tree.js';
import { notVerified } from './send.js';
import type { CheckedStopOptions } from './stop-options.js';
import { type StopEnd, type StopWarning, isThere } from './stop-sequence.js';
import { TreeSignals } from './tree-signals.js';
import { TreeSteps } from './tree-steps.js';
import { TreeWatch } from './tree-watch.js';

/**
 * The processes that were stopped together with a process.
 *
 * @see [A process and all that belong to it](../../docs/stop-safely.md#a-process-and-all-that-belong-to-it)
 */
export type StoppedTree = {
  /**
   * The path of the cgroup that contained these processes and nothing else; `null` if there was
   * none.
   */
  cgroup: string | null;
  /** The process itself, then the others in the order in which they were found. */
  members: StoppedMember[];
};

const HIDDEN = '/proc hides some processes (hidepid); some of them may belong to the tree';

/** Stops a process and its tree; several callers can share it. */
export class TreeStop {
  readonly #identity: ProcessIdentity;
  readonly #options: CheckedStopOptions;
  /** Aborted when no caller waits any more, or after the end. */
  readonly #over = new AbortController();
  readonly #end: Promise<StopEnd>;
  readonly #signals: TreeSignals;
  #watch: TreeWatch | null = null;
  #waiting = 0;

  constructor(identity: ProcessIdentity, options: CheckedStopOptions) {
    this.#identity = identity;
    this.#options = options;
    this.#signals = new TreeSignals(options);
    this.#end = this.#run().finally(async () => {
      this.#over.abort();
      await options.release();
    });
    this.#end.catch(() => undefined); // callers get it from join()
  }

  /** No further step follows: none is left, or no caller waits any more. */
  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  get warnings(): readonly StopWarning[] {
    return this.#signals.warnings;
  }

  get tree(): StoppedTree {
    return {
      cgroup: this.#watch?.cgroup?.path ?? null,
      members: this.#watch?.members.map((member) => member.report()) ?? [],
    };
  }

  /** Resolves when all members have exited, or all steps have failed. */
  join(): Promise<StopEnd> {
    this.#waiting++;
    return this.#end;
  }

  /** A caller stops waiting. After the last one has left, no further step follows. */
  leave(): void {
    if (--this.#waiting === 0) this.#over.abort();
  }

  async #run(): Promise<StopEnd> {
    // In another pid namespace it may be alive without being visible here.
    if (signalProcess(this.#identity).liveness === 'unknown') throw notVerified(this.#identity);
    const tree = isThere(this.#identity) ? ProcessTree.of(this.#identity) : null;
    if (tree === null) return { outcome: 'already-gone', via: null, exit: this.#unseen() };
    const watch = new TreeWatch(tree, this.#over.signal);
    this.#watch = watch;
    // Find as many members as possible before the first one exits.
    await watch.findAll();
    const steps = new TreeSteps(watch, this.#signals, this.#options, this.#over.signal);
    await steps.takeAll();
    const isGone = await watch.isGone();
    await this.#signals.settled();
    if (watch.isIncomplete) this.#signals.warn('tree-incomplete', HIDDEN);
    const { via, failure } = this.#signals;
    if (!isGone) {
      if (via === null && failure !== undefined) throw failure as Error;
      return { outcome: 'timed-out', via, exit: null };
    }
    await watch.exits();
    const exit = watch.root.exit ?? this.#unseen();
    if (via === null) return { outcome: 'already-gone', via: null, exit };
    return { outcome: via === 'kill' ? 'forced' : 'graceful', via, exit };
  }

  #unseen() {
    return goneBeforeWatch(this.#identity);
  }
}
