import type { SignalName } from '../events/wait-status.js';

import type { IntentOutcome } from './intent-log.js';
import { untilStopped, type MemberStop } from './member-stop.js';
import { PidCursor } from './pid-cursor.js';
import type { CheckedStopOptions, ControlStep } from './stop-options.js';
import { call, wasAsked, type StopVia } from './stop-sequence.js';
import { nextStep, tell } from './stop-wait.js';
import type { TreeSignals } from './tree-signals.js';
import type { TreeWatch } from './tree-watch.js';

/** How many scans may find processes forked before their parents stopped, until all are killed. */
const MOST_FREEZE_ROUNDS = 20;

/** The steps that stop a tree; each one lasts until the whole tree is gone or the time is up. */
export class TreeSteps {
  readonly #watch: TreeWatch;
  readonly #signals: TreeSignals;
  readonly #options: CheckedStopOptions;
  readonly #over: AbortSignal;

  /** @param over aborted when no further step may follow */
  constructor(
    watch: TreeWatch,
    signals: TreeSignals,
    options: CheckedStopOptions,
    over: AbortSignal,
  ) {
    this.#watch = watch;
    this.#signals = signals;
    this.#options = options;
    this.#over = over;
  }

  async takeAll(): Promise<void> {
    const { controls, killSignal, forceKillAfterDelayMs, confirmTimeoutMs } = this.#options;
    const graceMs = forceKillAfterDelayMs === false ? confirmTimeoutMs : forceKillAfterDelayMs;
    for (const [index, control] of controls.entries()) {
      await this.#control(control, controls.length - index - 1);
    }
    if (killSignal === false) return;
    if (killSignal !== 'SIGKILL') await this.#ask(killSignal, graceMs);
    if (forceKillAfterDelayMs !== false || killSignal === 'SIGKILL') {
      await this.#kill(confirmTimeoutMs);
    }
  }

  /**
   * Makes a control call. It concerns the root only: once the root has exited, the next step
   * follows.
   */
  async #control(step: ControlStep, left: number): Promise<void> {
    const { what, timeoutMs } = step;
    const { root } = this.#watch;
    if (!root.isLiving() || this.#over.aborted) return;
    const deadlineMs = performance.now() + timeoutMs;
    const ids = await this.#signals.record([root], what, deadlineMs);
    this.#signals.via = 'control';
    const answer: { outcome: IntentOutcome | null } = { outcome: null };
    const onAnswer = (outcome: IntentOutcome) => {
      if (answer.outcome !== null) return;
      answer.outcome = outcome;
      this.#signals.settle(ids.get(root), outcome);
      this.#watch.wake();
    };
    call(step, this.#over).then(onAnswer, (error: unknown) => {
      this.#signals.failure = error;
      this.#signals.warn('control-failed', (error as Error).message);
      onAnswer(wasAsked(error) ? 'uncertain' : 'not-delivered');
    });
    this.#tell('control', left, timeoutMs);
    const isVain = () =>
      answer.outcome === 'uncertain' || answer.outcome === 'not-delivered' || !root.isLiving();
    await this.#watch.until(deadlineMs, () => Promise.resolve(), isVain);
    onAnswer('uncertain'); // unless the answer has come
  }

  /**
   * Sends a signal once to each member, including members found later that were forked before it. A
   * process forked after the signal may be part of a clean shutdown.
   */
  async #ask(signal: SignalName, graceMs: number): Promise<void> {
    if (this.#over.aborted || (await this.#watch.isGone())) return;
    const deadlineMs = performance.now() + graceMs;
    const members = this.#watch.living;
    const ids = await this.#signals.record(members, signal, deadlineMs);
    const cursor = new PidCursor();
    const asked = cursor.mark();
    this.#signals.sendRecorded(members, signal, ids);
    const hadBegun = ({ identity }: MemberStop) =>
      !cursor.mayHaveBeenGiven(identity.pid, asked, cursor.mark());
    this.#tell('signal', 0, graceMs);
    await this.#watch.until(
      deadlineMs,
      (found) => this.#signals.send(found.filter(hadBegun), signal, deadlineMs),
      () => this.#isRefused(),
    );
  }

  /** Kills all members with SIGKILL, including those found on the way. */
  async #kill(confirmMs: number): Promise<void> {
    if (this.#over.aborted || (await this.#watch.isGone())) return;
    const deadlineMs = performance.now() + confirmMs;
    await this.#killAll(deadlineMs);
    this.#tell('kill', 0, confirmMs);
    await this.#watch.until(
      deadlineMs,
      async () => {
        if (this.#unkilled.some(({ hasFailed }) => !hasFailed)) await this.#killAll(deadlineMs);
      },
      () => this.#isRefused(),
    );
  }

  get #unkilled(): readonly MemberStop[] {
    return this.#watch.living.filter(({ isKilled }) => !isKilled);
  }

  /** None of the remaining members may be signalled. */
  #isRefused(): boolean {
    return this.#watch.living.every(({ hasFailed }) => hasFailed);
  }

  async #killAll(deadlineMs: number): Promise<void> {
    if (this.#watch.cgroup === null) await this.#killStopped(deadlineMs);
    else await this.#killCgroup(deadlineMs);
  }

  /** The kernel kills everything in the cgroup, including processes being forked. */
  async #killCgroup(deadlineMs: number): Promise<void> {
    const ids = new Map<MemberStop, string | undefined>();
    for (let round = 0; round < MOST_FREEZE_ROUNDS; round++) {
      const next = this.#unkilled.filter((member) => !ids.has(member));
      if (next.length === 0 && round > 0) break;
      const recorded = await this.#signals.record(next, 'SIGKILL', deadlineMs);
      for (const [member, id] of recorded) ids.set(member, id);
      // Members may have forked meanwhile. Or a foreign process may have entered the cgroup; then
      // the cgroup is not the tree's own.
      await this.#watch.scan();
    }
    this.#signals.sendRecorded([...ids.keys()], 'SIGKILL', ids);
    const { cgroup } = this.#watch;
    const rest = this.#unkilled.filter(({ identity }) => cgroup?.has(identity.pid));
    if (cgroup?.kill() !== true || rest.length === 0) return;
    this.#signals.via = 'kill';
    for (const member of rest) member.wasKilled();
  }

  /**
   * Stops all members (SIGSTOP) before killing them: a process killed while it forks would leave a
   * child whose parent is unknown. Once begun, this is completed even if no caller waits any more.
   */
  async #killStopped(deadlineMs: number): Promise<void> {
    const stopped: MemberStop[] = [];
    try {
      for (let round = 0; round < MOST_FREEZE_ROUNDS; round++) {
        const next = this.#unkilled.filter((member) => !stopped.includes(member));
        if (next.length === 0) break;
        await this.#signals.send(next, 'SIGSTOP', deadlineMs);
        stopped.push(...next);
        await untilStopped(next);
        await this.#watch.scan();
      }
      await this.#signals.send(this.#unkilled, 'SIGKILL', deadlineMs);
    } catch (error) {
      // SIGKILL could not be recorded: resume the members. SIGCONT cannot be recorded either.
      for (const member of stopped) member.send('SIGCONT');
      throw error;
    }
  }

  #tell(via: NonNullable<StopVia>, controlsLeft: number, inMs: number): void {
    const waitingFor = this.#watch.living.map(({ identity, name }) => ({ identity, name }));
    if (waitingFor.length === 0) return;
    const next = nextStep(via, controlsLeft, this.#options);
    tell(this.#options.onWait, { via, waitingFor, next, inMs });
  }
}
