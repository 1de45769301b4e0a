import type { SignalName } from '../events/wait-status.js';

import type { ControlName, IntentOutcome } from './intent-log.js';
import type { MemberStop } from './member-stop.js';
import type { CheckedStopOptions } from './stop-options.js';
import {
  isWithin,
  NOT_ATOMIC,
  SETTLE_MS,
  type StopVia,
  type StopWarning,
} from './stop-sequence.js';

/** Ids of intents, which are missing without an intent log. */
type Recorded = ReadonlyMap<MemberStop, string | undefined>;

/** Signals to members of a tree, each on record before it is sent; and what came of them. */
export class TreeSignals {
  readonly warnings: StopWarning[] = [];
  readonly #options: CheckedStopOptions;
  readonly #settling: Promise<void>[] = [];
  /** The last step that may have reached somebody. */
  via: StopVia = null;
  /** Why the last of those failed that did. */
  failure: unknown;

  constructor(options: CheckedStopOptions) {
    this.#options = options;
  }

  /** Sends a signal to those that live, when all of them are on record. */
  async send(
    members: readonly MemberStop[],
    signal: SignalName,
    deadlineMs: number,
  ): Promise<void> {
    const living = members.filter((member) => member.isLiving());
    this.sendRecorded(living, signal, await this.record(living, signal, deadlineMs));
  }

  /** Rejects if one of them cannot be written down: then none may be signalled. */
  async record(
    members: readonly MemberStop[],
    what: SignalName | ControlName,
    deadlineMs: number,
  ): Promise<Recorded> {
    const { intentLog, reason } = this.#options;
    const ids = new Map<MemberStop, string | undefined>();
    for (const member of members) {
      const leftMs = Math.max(0, deadlineMs - performance.now());
      const deadline = new Date(Date.now() + leftMs);
      const { identity } = member;
      ids.set(member, await intentLog?.append({ identity, what, why: reason, deadline }));
    }
    return ids;
  }

  /** To one after the other, parents first, so that none starts anew what was ended. */
  sendRecorded(members: readonly MemberStop[], signal: SignalName, ids: Recorded): void {
    for (const member of members) {
      const { outcome, isAtomic, failure } = member.send(signal);
      if (failure !== undefined) {
        this.failure = failure;
        this.warn('signal-failed', failure.message);
      } else if (outcome === 'delivered' && signal !== 'SIGSTOP') {
        this.via = signal === 'SIGKILL' ? 'kill' : 'signal';
      }
      if (!isAtomic) this.warn('not-atomic', NOT_ATOMIC);
      this.settle(ids.get(member), outcome);
    }
  }

  /** Each is reported once. */
  warn(code: StopWarning['code'], detail: string): void {
    const isKnown = this.warnings.some((known) => known.code === code && known.detail === detail);
    if (!isKnown) this.warnings.push({ code, detail });
  }

  /** Writes down what came of an intent; nothing waits for it before the end. */
  settle(id: string | undefined, outcome: IntentOutcome): void {
    if (id !== undefined) this.#settling.push(this.#settle(id, outcome));
  }

  /** Resolves when all is written down. */
  async settled(): Promise<void> {
    await Promise.all(this.#settling);
  }

  async #settle(id: string, outcome: IntentOutcome): Promise<void> {
    try {
      const settled = this.#options.intentLog?.settle(id, outcome);
      if (!(await isWithin(settled, SETTLE_MS))) throw new Error('the intent log does not answer');
    } catch (error) {
      this.warn('intent-not-settled', (error as Error).message);
    }
  }
}
