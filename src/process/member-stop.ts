import { readdirSync, readFileSync } from 'node:fs';

import type { ExitEvent } from '../events/exit-event.js';
import type { SignalName } from '../events/wait-status.js';
import type { ProcessIdentity } from '../identity/process-identity.js';
import { waitForExit } from '../monitor/wait-for-exit.js';

import type { IntentOutcome } from './intent-log.js';
import { signalProcess } from './process-signal.js';
import type { TreeLink, TreeMember } from './process-tree.js';
import { notVerified } from './send.js';
import type { StopEnd } from './stop-sequence.js';

/**
 * A process of a tree that was stopped.
 *
 * @see [A process and all that belong to it](../../docs/stop-safely.md#a-process-and-all-that-belong-to-it)
 */
export type StoppedMember = {
  identity: ProcessIdentity;
  /** The kernel's name for it when it was found. */
  name: string | null;
  /** What linked it to the process or to another member when it was found. */
  foundBy: TreeLink;
  /**
   * - `'graceful'`: it exited before any SIGKILL
   * - `'forced'`: it exited after SIGKILL
   * - `'timed-out'`: it still exists
   * - `'already-gone'`: it had exited before the first step
   */
  outcome: StopEnd['outcome'];
  /** `null` if it still exists, or its outcome is unknown. */
  exit: ExitEvent | null;
};

/** The result of a signal to a member. */
interface MemberSent {
  outcome: IntentOutcome;
  isAtomic: boolean;
  failure?: Error;
}

/** A process of a tree that is being stopped. */
export class MemberStop {
  readonly identity: ProcessIdentity;
  readonly name: string | null;
  readonly foundBy: TreeLink;
  /** Resolves when its outcome is known, or cannot become known. */
  readonly seen: Promise<void>;
  exit: ExitEvent | null = null;
  /** The last signal failed: it may not be sent. */
  hasFailed = false;
  #isDead = false;
  #isKilled = false;
  readonly #wasGone: boolean;

  /** Watches it from now on, until `over` is aborted. */
  constructor({ identity, name, foundBy }: TreeMember, over: AbortSignal, onEnd: () => void) {
    this.identity = identity;
    this.name = name;
    this.foundBy = foundBy;
    this.#wasGone = !this.isLiving();
    const ended = waitForExit(identity, { signal: over });
    this.seen = ended.then(
      (exit) => {
        this.exit = exit;
        onEnd();
      },
      () => undefined, // a pidfd shows that it is gone, but not how
    );
  }

  isLiving(): boolean {
    this.#isDead ||= this.#look() === 'dead';
    return !this.#isDead;
  }

  /** SIGKILL was delivered to it, or to its cgroup. */
  get isKilled(): boolean {
    return this.#isKilled;
  }

  /** Its cgroup was killed while it was in it. */
  wasKilled(): void {
    this.#isKilled = true;
  }

  /** Sends it a signal, unless it is dead. */
  send(signal: SignalName): MemberSent {
    try {
      const { liveness, isAtomic } = signalProcess(this.identity, signal);
      if (liveness === 'unknown') throw notVerified(this.identity);
      this.hasFailed = false;
      if (liveness === 'dead') return { outcome: 'superseded', isAtomic };
      if (signal === 'SIGKILL') this.#isKilled = true;
      return { outcome: 'delivered', isAtomic };
    } catch (error) {
      this.hasFailed = true;
      return { outcome: 'not-delivered', isAtomic: true, failure: error as Error };
    }
  }

  report(): StoppedMember {
    const { identity, name, foundBy, exit } = this;
    if (this.isLiving()) return { identity, name, foundBy, outcome: 'timed-out', exit: null };
    const asked = this.#wasGone ? 'already-gone' : 'graceful';
    return { identity, name, foundBy, outcome: this.#isKilled ? 'forced' : asked, exit };
  }

  #look(): 'alive' | 'dead' | 'unknown' {
    try {
      return signalProcess(this.identity).liveness;
    } catch {
      return 'unknown';
    }
  }
}

/** How long members may take to stop (SIGSTOP) before they are killed, in ms. */
const FREEZE_MS = 250;

/** A process that waits for a disk stops later, but cannot fork until then. */
export async function untilStopped(members: readonly MemberStop[]): Promise<void> {
  const deadlineMs = performance.now() + FREEZE_MS;
  while (performance.now() < deadlineMs) {
    const isOver = (member: MemberStop) =>
      member.hasFailed || !member.isLiving() || isStopped(member.identity.pid);
    if (members.every(isOver)) return;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Whether every thread of a process has stopped or exited. */
function isStopped(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((thread) => {
      const text = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1');
      return /^[TtZX]/.test(text.slice(text.lastIndexOf(')') + 2));
    });
  } catch {
    return false; // a thread has just exited
  }
}
