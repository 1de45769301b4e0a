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

/** Ids of intents; `undefined` without an intent log. */
type Recorded = ReadonlyMap<MemberStop, string | undefined>;

/**
 * Signals to members of a tree. Each one is recorded before it is sent, and its outcome afterwards.
 */
export class TreeSignals {
  readonly warnings: StopWarning[] = [];
  readonly #options: CheckedStopOptions;
  readonly #settling: Promise<void>[] = [];
  /** The last step that may have reached a member. */
  via: StopVia = null;
  /** The most recent failure. */
  failure: unknown;

  constructor(options: CheckedStopOptions) {
    this.#options = options;
  }

  /** Records a signal for each living member, then sends it. */
  async send(
    members: readonly MemberStop[],
    signal: SignalName,
    deadlineMs: number,
  ): Promise<void> {
    const living = members.filter((member) => member.isLiving());
    this.sendRecorded(living, signal, await this.record(living, signal, deadlineMs));
  }

  /** Rejects if one of them cannot be recorded; then do not signal any. */
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

  /** Signals parents before children, so that they do not restart a child that was stopped. */
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

  /** Each warning is reported once. */
  warn(code: StopWarning['code'], detail: string): void {
    const isKnown = this.warnings.some((known) => known.code === code && known.detail === detail);
    if (!isKnown) this.warnings.push({ code, detail });
  }

  /** Records the outcome of an intent; only the end waits for it. */
  settle(id: string | undefined, outcome: IntentOutcome): void {
    if (id !== undefined) this.#settling.push(this.#settle(id, outcome));
  }

  /** Resolves when all outcomes are recorded. */
  async settled(): Promise<void> {
    await Promise.all(this.#settling);
  }

  async #settle(id: string, outcome: IntentOutcome): Promise<void> {
    try {
      const settled = this.#options.intentLog?.settle(id, outcome);
      if (!(await isWithin(settled, SETTLE_MS)))
        throw new Error(`the intent log did not respond within ${SETTLE_MS} ms`);
    } catch (error) {
      this.warn('intent-not-settled', (error as Error).message);
    }
  }
}
