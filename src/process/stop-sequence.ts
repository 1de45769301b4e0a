// One idea: the steps that stop one process, one after the other.
import { LATE, withDeadline } from '../common/deadline.js';
import { ExitwatchError } from '../common/errors.js';
import { newPromise } from '../common/promise-with-resolvers.js';
import type { ExitEvent } from '../events/exit-event.js';
import type { SignalName } from '../events/wait-status.js';
import { type ProcessIdentity, isSameProcess, lookUp } from '../identity/process-identity.js';
import { waitForExit } from '../monitor/wait-for-exit.js';
import { goneBeforeWatch } from '../monitor/watch-target.js';

import type { ControlName, IntentOutcome } from './intent-log.js';
import { signalProcess } from './process-signal.js';
import { notVerified } from './send.js';
import type { CheckedStopOptions, ControlStep } from './stop-options.js';
import { nameOf, nextStep, tell } from './stop-wait.js';

/**
 * The step after which a process exited; `null`: none was needed.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export type StopVia = 'control' | 'signal' | 'kill' | null;

/**
 * The outcome of stopping a process.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export type StopEnd =
  | {
      /** `'graceful'`: after the control call or the signal; `'forced'`: after SIGKILL. */
      outcome: 'graceful' | 'forced';
      /** The last step before the exit. `exit` may show whether that step caused it. */
      via: StopVia;
      exit: ExitEvent;
    }
  | {
      outcome: 'already-gone';
      via: null;
      /** `null` if the identity of the process is unknown. */
      exit: ExitEvent | null;
    }
  | { outcome: 'timed-out'; via: StopVia; exit: null };

/**
 * Something that went wrong, but did not keep the process from exiting.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export type StopWarning = {
  /**
   * - `'control-failed'`, `'signal-failed'`: the next step followed at once
   * - `'intent-not-settled'`: the outcome of an intent could not be recorded
   * - `'pidfile-not-removed'`: the pidfile stays
   * - `'not-atomic'`: pidfds are not available, so the pid may have been reused between the check
   *   and the signal
   * - `'tree-incomplete'`: some processes could not be read and may belong to the tree
   */
  code:
    | 'control-failed'
    | 'signal-failed'
    | 'intent-not-settled'
    | 'pidfile-not-removed'
    | 'not-atomic'
    | 'tree-incomplete';
  detail: string;
};

/** Takes a step; resolves with whether it may have reached the process. */
type Act = (signal: AbortSignal, mostMs: number) => Promise<IntentOutcome>;

/** How long a step may take. */
class StepTime {
  #endMs: number;

  constructor(ms: number) {
    this.#endMs = performance.now() + ms;
  }

  get leftMs(): number {
    return Math.max(0, this.#endMs - performance.now());
  }

  extend(ms: number): void {
    this.#endMs += ms;
  }
}

/** The steps that stop one process; several callers can share them. */
export class StopSequence {
  readonly warnings: StopWarning[] = [];
  readonly #identity: ProcessIdentity;
  readonly #options: CheckedStopOptions;
  /** Aborted when no caller waits any more, or after the end. */
  readonly #over = new AbortController();
  readonly #end: Promise<StopEnd>;
  #waiting = 0;
  #exit: ExitEvent | undefined;
  #via: StopVia = null;
  #hasActed = false;
  #isDelivered = false;
  /** Another stop of the process has sent SIGKILL. */
  #isKilled = false;
  #failure: unknown;
  #controlsLeft: number;
  /** What it asks for, and whether that arrives; without what did not. */
  readonly #asked = new Map<SignalName | ControlName, Promise<boolean>>();
  readonly #beside: () => readonly StopSequence[];

  /** `beside`: the stops of the process that are under way. What one of them asks for is not asked for again. */
  constructor(
    identity: ProcessIdentity,
    options: CheckedStopOptions,
    beside: () => readonly StopSequence[] = () => [],
  ) {
    this.#identity = identity;
    this.#options = options;
    this.#beside = beside;
    this.#controlsLeft = options.controls.length;
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

  /** Resolves when the process has exited, or all steps have failed. */
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
    if (!isThere(this.#identity)) {
      const exit = goneBeforeWatch(this.#identity);
      return { outcome: 'already-gone', via: null, exit };
    }
    // Watch before anything is sent, so that the exit cannot be missed.
    const exited = waitForExit(this.#identity, { signal: this.#over.signal });
    const seen = exited.then((exit) => (this.#exit = exit));
    seen.catch(() => undefined); // awaited below
    if (signalProcess(this.#identity).liveness === 'dead') {
      return { outcome: 'already-gone', via: null, exit: await seen };
    }
    const { controls, killSignal, forceKillAfterDelayMs, confirmTimeoutMs } = this.#options;
    const graceMs = forceKillAfterDelayMs === false ? confirmTimeoutMs : forceKillAfterDelayMs;
    for (const step of controls) {
      const act: Act = (signal, timeoutMs) => call({ ...step, timeoutMs }, signal);
      await this.#step('control', step.what, act, step.timeoutMs, seen);
    }
    if (killSignal !== 'SIGKILL' && killSignal !== false) {
      await this.#step('signal', killSignal, () => this.#send(killSignal), graceMs, seen);
    }
    const isKilled = killSignal !== false && forceKillAfterDelayMs !== false;
    if (isKilled || killSignal === 'SIGKILL') {
      await this.#step('kill', 'SIGKILL', () => this.#send('SIGKILL'), confirmTimeoutMs, seen);
    }
    const isInVain = !this.#hasActed || (killSignal === false && !this.#isDelivered);
    if (this.#exit === undefined && isInVain && this.#failure !== undefined) {
      throw this.#failure as Error;
    }
    return this.#result();
  }

  #result(): StopEnd {
    const exit = this.#exit;
    if (exit === undefined) return { outcome: 'timed-out', via: this.#via, exit: null };
    const mayBeKilled = exit.signal === 'SIGKILL' || exit.how === 'unknown';
    if (this.#isKilled && mayBeKilled) return { outcome: 'forced', via: 'kill', exit };
    if (this.#via === null) return { outcome: 'already-gone', via: null, exit };
    return { outcome: this.#via === 'kill' ? 'forced' : 'graceful', via: this.#via, exit };
  }

  /** Takes a step, unless another stop has taken it, and waits for the exit. */
  async #step(
    via: NonNullable<StopVia>,
    what: SignalName | ControlName,
    act: Act,
    graceMs: number,
    seen: Promise<ExitEvent>,
  ): Promise<void> {
    if (this.#needsNothing()) return;
    if (via === 'control') this.#controlsLeft--;
    const time = new StepTime(graceMs);
    if (await this.#isAskedBeside(via, what, time, seen)) {
      await this.#wait(seen, time.leftMs);
      return;
    }
    const outcome = await this.#take(via, what, act, time, seen);
    if (outcome === null) return;
    // After a failure the next step follows at once; if the process was already dead, its exit
    // event is about to arrive.
    if (outcome === 'not-delivered') return;
    const isUncertain = outcome === 'uncertain' && via === 'control';
    const isLast = this.#controlsLeft === 0 && this.#options.killSignal === false;
    if (isUncertain && !isLast) return;
    // Its answer may have been lost because it exits.
    const mostMs = isUncertain ? Math.min(time.leftMs, LOST_ANSWER_MS) : time.leftMs;
    if (!this.#needsNothing()) this.#tell(via, mostMs);
    await this.#wait(seen, mostMs);
  }

  /** Whether another stop of the process asks for this: then to ask again would not be better. */
  async #isAskedBeside(
    via: NonNullable<StopVia>,
    what: SignalName | ControlName,
    time: StepTime,
    seen: Promise<ExitEvent>,
  ): Promise<boolean> {
    if (via === 'kill') return false;
    for (let asked = this.#askedBeside(what); asked !== undefined;) {
      const isDone = await withDeadline(Promise.race([asked, seen.then(() => true)]), time.leftMs);
      if (isDone !== false) {
        this.#via = via;
        this.#hasActed = true;
        this.#isDelivered ||= isDone === true;
        return true;
      }
      asked = this.#askedBeside(what);
    }
    return false;
  }

  #askedBeside(what: SignalName | ControlName): Promise<boolean> | undefined {
    for (const each of this.#beside()) {
      const asked = each === this ? undefined : each.#asked.get(what);
      if (asked !== undefined) return asked;
    }
    return undefined;
  }

  /** Records a step, and takes it; `null`: there was no need any more. */
  async #take(
    via: NonNullable<StopVia>,
    what: SignalName | ControlName,
    act: Act,
    time: StepTime,
    seen: Promise<ExitEvent>,
  ): Promise<IntentOutcome | null> {
    const { intentLog, reason } = this.#options;
    const deadline = new Date(Date.now() + time.leftMs);
    const intent = { identity: this.#identity, what, why: reason, deadline };
    const begin = performance.now();
    const appended = intentLog?.append(intent);
    const id = await Promise.race([appended, seen.then(() => undefined)]);
    time.extend(performance.now() - begin); // a slow disk takes no time from the process
    // It may have exited while this was written, or another stop may have been sooner.
    let isAsked = false;
    while (via !== 'kill' && !isAsked && this.#askedBeside(what) !== undefined) {
      isAsked = await this.#isAskedBeside(via, what, time, seen);
    }
    if (isAsked || this.#needsNothing()) {
      await this.#supersede(appended);
      return isAsked ? 'delivered' : null;
    }
    const { promise, resolve } = newPromise<boolean>();
    this.#asked.set(what, promise);
    let outcome: IntentOutcome | null = null;
    try {
      outcome = await Promise.race([
        this.#try(via, act, Math.ceil(time.leftMs)),
        seen.then(() => 'uncertain' as const),
      ]);
    } finally {
      // Also if nobody waits for this stop any more.
      if (outcome !== 'delivered') this.#asked.delete(what);
      resolve(outcome === 'delivered');
    }
    if (outcome !== 'not-delivered' && outcome !== 'superseded') {
      this.#via = via;
      this.#hasActed = true;
      this.#isDelivered ||= outcome === 'delivered';
      if (via === 'kill') for (const each of this.#beside()) each.#isKilled = true;
    }
    await this.#settle(id, outcome);
    return outcome;
  }

  #tell(via: NonNullable<StopVia>, inMs: number): void {
    const identity = this.#identity;
    const waitingFor = [{ identity, name: nameOf(identity) }];
    const next = nextStep(via, this.#controlsLeft, this.#options);
    tell(this.#options.onWait, { via, waitingFor, next, inMs });
  }

  #needsNothing(): boolean {
    return this.#exit !== undefined || this.#over.signal.aborted;
  }

  async #try(via: NonNullable<StopVia>, act: Act, mostMs: number): Promise<IntentOutcome> {
    try {
      return await act(this.#over.signal, mostMs);
    } catch (error) {
      this.#failure = error;
      const code = via === 'control' ? 'control-failed' : 'signal-failed';
      this.warnings.push({ code, detail: (error as Error).message });
      return via === 'control' && wasAsked(error) ? 'uncertain' : 'not-delivered';
    }
  }

  #send(signal: SignalName): Promise<IntentOutcome> {
    const { liveness, isAtomic } = signalProcess(this.#identity, signal);
    if (!isAtomic && !this.warnings.some(({ code }) => code === 'not-atomic')) {
      this.warnings.push({ code: 'not-atomic', detail: NOT_ATOMIC });
    }
    if (liveness === 'unknown') throw notVerified(this.#identity);
    return Promise.resolve(liveness === 'alive' ? 'delivered' : 'superseded');
  }

  /** The step is not taken although its intent was recorded, or is about to be. */
  async #supersede(appended: Promise<string> | undefined): Promise<void> {
    let id: string | undefined;
    const written = appended?.then((written) => {
      id = written;
    });
    await isWithin(written, SETTLE_MS).catch(() => undefined); // then there is nothing to settle
    await this.#settle(id, 'superseded');
  }

  async #settle(id: string | undefined, outcome: IntentOutcome): Promise<void> {
    if (id === undefined) return;
    try {
      const settled = this.#options.intentLog?.settle(id, outcome);
      if (!(await isWithin(settled, SETTLE_MS)))
        throw new Error(`the intent log did not respond within ${SETTLE_MS} ms`);
    } catch (error) {
      this.warnings.push({ code: 'intent-not-settled', detail: (error as Error).message });
    }
  }

  /** Rejects if the exit cannot be observed any more. */
  async #wait(seen: Promise<ExitEvent>, forMs: number): Promise<void> {
    await withDeadline(seen, forMs);
  }
}

/** Whether it is alive, or not reaped yet. */
export function isThere(identity: ProcessIdentity): boolean {
  const found = lookUp(identity.pid);
  return typeof found === 'object' && isSameProcess(found, identity);
}

/** Within this time after an answer was lost, a process that has obeyed is gone. */
const LOST_ANSWER_MS = 5000;

/** A hanging disk must not delay the exit of a process by more than this, in ms. */
export const SETTLE_MS = 2000;

export async function isWithin(work: Promise<void> | undefined, limitMs: number): Promise<boolean> {
  return (await withDeadline(work, limitMs)) !== LATE;
}

export const NOT_ATOMIC =
  'without pidfds, checking the process and signalling its pid are two steps: another process may ' +
  'have received the pid in between';

/** Errors which prove that a control call reached nothing. */
const NOT_ASKED: readonly unknown[] = [
  ...['ENOENT', 'ECONNREFUSED', 'ERR_EXITWATCH_NO_AGENT', 'ERR_EXITWATCH_NO_QMP'],
];

/** Whether a control call that failed may still have been carried out. */
export function wasAsked(error: unknown): boolean {
  return !NOT_ASKED.includes((error as { code?: unknown } | null)?.code);
}

/** Rejects if the call does, or if it does not answer in time. */
export async function call(
  { what, call: control, timeoutMs }: ControlStep,
  signal: AbortSignal,
): Promise<IntentOutcome> {
  const name = what === 'control' ? 'the control call' : what;
  if ((await withDeadline(control(signal), timeoutMs, signal)) !== LATE) return 'delivered';
  const detail = `${name} was not answered within ${timeoutMs} ms`;
  throw new ExitwatchError('ERR_EXITWATCH_TIMEOUT', detail);
}
