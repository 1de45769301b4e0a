// One idea: what one service shall be and what it is, and the one loop that brings them together.
import { asExitwatchError, ExitwatchError } from '../../common/errors.js';
import { LONGEST_MS } from '../../common/options.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { unknownExit } from '../../events/unknown-exit.js';
import { bootId } from '../../identity/boot-id.js';
import { isSameProcess, startOf } from '../../identity/process-identity.js';
import { isAlive } from '../../process/liveness.js';
import {
  readPidfile,
  removePidfile,
  removeStalePidfile,
  writePidfile,
} from '../../process/pidfile.js';
import { stop as stopProcess } from '../../process/stop.js';
import type { KeeperRun } from '../keeper/keeper-run.js';
import { exitOf } from '../keeper/run-exit.js';
import { isOver } from '../keeper/stop-run.js';

import { Backoff } from './backoff.js';
import { runOptions } from './check-spec.js';
import { type Clock, realClock } from './clock.js';
import { Health } from './health.js';
import {
  afterReboot,
  decideRestart,
  type RestartDecision,
  type StopPurpose,
} from './restart-policy.js';
import { runCommand } from './run-command.js';
import type { RunHost } from './run-host.js';
import type {
  ServiceEnd,
  ServicePhase,
  ServiceRunEvent,
  ServiceStatus,
  SupervisorEvents,
  Termination,
} from './service-events.js';
import {
  newRecord,
  restsAlike,
  runId,
  type ServiceRecord,
  type StoredRun,
  type StoredSpec,
} from './service-record.js';
import type { ServiceSpec } from './service-spec.js';
import type { ServiceStore } from './service-store.js';
import { Waiters } from './waiters.js';

/** What a worker needs of its supervisor. */
export interface WorkerHost {
  readonly runs: RunHost;
  readonly store: ServiceStore;
  readonly clock: Clock;
  emit<Name extends keyof SupervisorEvents>(name: Name, ...args: SupervisorEvents[Name]): void;
  /** A new run takes the place of one that ended for this reason. */
  countRestart(reason: string): void;
  /** A request was served after so long. */
  countLatency(ms: number): void;
  /** Nothing of a removed service is left. */
  onFinished(worker: ServiceWorker): void;
}

/** The present run. */
interface LiveRun {
  stored: StoredRun;
  /** The restarts that were requested when its id was reserved. */
  generation: number;
  /** Its command was executed. */
  isStarted: boolean;
  /** By the clock of the supervisor. */
  startedAtMs: number;
  /** `null`: it has not ended, as far as we were told. */
  exit: ExitEvent | null;
  livedMs: number | null;
  /** Its end was told. */
  decision: RestartDecision | null;
  health: Health | null;
  /** Why its health requires a restart. */
  unhealthy: string | null;
  isStopping: boolean;
  /** It was asked for, and its keeper has not answered. */
  isLaunching: boolean;
  /** Its stop ended with nothing left. */
  isGone: boolean;
  isPaused: boolean;
  /** Why it could not be paused or resumed. */
  moveError: ExitwatchError | null;
  /** The demands at that time. */
  decidedAt: number;
  /** Since when its host knows that it has ended, but has not told; by the clock. */
  overdueSinceMs: number | null;
  /** Cuts its control command short. */
  control: AbortController;
}

const GRACE_MS = 5000;
const ERROR_RETRY_MS = 10_000;
const TRANSIENT_RETRY_MS = 1000;
const RESYNC_MS = 60_000;
/** Longer than a keeper waits for what the monitor saw. */
const OVERDUE_MS = 5000;
const LEAST_STOP_TIMEOUT_MS = 10_000;

const NEVER: Termination = {
  requested: false,
  started: false,
  terminated: false,
  finished: false,
};

/** Drives one service: one step at a time, towards what was asked last. */
export class ServiceWorker {
  readonly #host: WorkerHost;
  readonly #waiters = new Waiters();
  #record: ServiceRecord;
  /** `null`: only what is left of it after redaction is known. */
  #spec: ServiceSpec | null;
  /** What follows after a removal. */
  #nextSpec: ServiceSpec | null = null;
  #live: LiveRun | null = null;
  #termination: Termination = NEVER;
  /** Stopped for as long as this supervisor lives. */
  #isHeld = false;
  /** Grows with each request to run: what was decided before one of them does not count any more. */
  #demands = 0;
  #wantsPaused = false;
  #generation = 0;
  #graceMs: number | null = null;
  #cancelTimer: (() => void) | undefined;
  #isLooping = false;
  #isDirty = false;
  #isAbandoned = false;
  #requestedAtMs: number | null = null;
  #startFailures = 0;
  #lastError: ExitwatchError | null = null;

  /** @param spec `null`: it is that of the record */
  constructor(host: WorkerHost, record: ServiceRecord, spec: ServiceSpec | null) {
    this.#host = host;
    this.#record = record;
    this.#spec = spec ?? (record.stored.isRedacted ? null : record.stored.spec);
    if (record.next !== null && !record.next.isRedacted) this.#nextSpec = record.next.spec;
    if (record.run !== null) {
      this.#live = newLive(record.run, 0);
      this.#wantsPaused = record.run.isPaused;
    }
  }

  get name(): string {
    return this.#record.name;
  }

  get uid(): string {
    return this.#record.uid;
  }

  get stored(): StoredSpec {
    return this.#record.isRemoved
      ? (this.#record.next ?? this.#record.stored)
      : this.#record.stored;
  }

  get isRemoved(): boolean {
    return this.#record.isRemoved;
  }

  /** It is removed, and nothing takes its place. */
  get isLeaving(): boolean {
    return this.#record.isRemoved && this.#record.next === null;
  }

  /** The run that is its own; others of its name are left from before. */
  get runId(): string | null {
    return this.#live?.stored.id ?? null;
  }

  /** Since when a request waits to be served, by the clock; `null`: none does. */
  get requestedAtMs(): number | null {
    return this.#requestedAtMs;
  }

  // ---- what others ask

  /** What was applied. Writes before it returns. */
  update(spec: ServiceSpec | null, stored: StoredSpec): void {
    if (this.#record.isRemoved) {
      this.#record.next = stored;
      this.#nextSpec = spec;
    } else {
      const keepsRest = restsAlike(this.#record, stored);
      this.#record.stored = stored;
      this.#spec = spec;
      if (!keepsRest) {
        this.#record.rest = null;
        this.#record.attempts = 0;
        this.#record.dueAtMs = 0;
        this.#demands++;
      }
    }
    this.#isHeld = false;
    this.#save();
    this.#request();
  }

  /** The same was applied again. */
  confirm(spec: ServiceSpec): void {
    if (this.#record.isRemoved) this.#nextSpec ??= spec;
    else this.#spec ??= spec;
    this.#isHeld = false;
    this.#save(); // it may not have been on disk, if the disk was full
    this.#wake();
  }

  remove(): void {
    this.#record.isRemoved = true;
    this.#record.next = null;
    this.#nextSpec = null;
    // From now on they are those of what is created again under this name.
    this.#record.stopped = null;
    this.#isHeld = false;
    this.#save();
    this.#termination = { ...this.#termination, requested: true };
    this.#request();
  }

  async start(): Promise<ServiceStatus> {
    this.#checkOpen();
    const before = this.#live;
    this.#record.stopped = null;
    this.#record.rest = null;
    if (before === null || this.#termination.requested) {
      this.#record.attempts = 0;
      this.#record.dueAtMs = 0;
      this.#record.planned = null;
    }
    this.#save();
    this.#isHeld = false;
    this.#graceMs = null;
    this.#demands++;
    if (before !== null && this.#goal === 'up' && this.#isKept(before, false)) {
      this.#termination = NEVER;
    }
    this.#request();
    return this.#untilStarted(before);
  }

  /** Waits until nothing of its run is left. */
  async stop(graceMs: number | undefined, until: 'start' | 'reboot' | 'close'): Promise<void> {
    this.#checkOpen();
    if (until === 'close') this.#isHeld = true;
    else this.#record.stopped = { until, bootId: bootId() };
    this.#save();
    await this.end(graceMs);
  }

  /** Waits until nothing of its run is left, which somebody has asked for. */
  async end(graceMs: number | undefined): Promise<void> {
    this.#termination = { ...this.#termination, requested: true };
    this.#shorten(graceMs);
    const live = this.#live;
    const cancels: (() => void)[] = [];
    let isLate = false;
    const limitMs = Math.max(LEAST_STOP_TIMEOUT_MS, 1.5 * (this.#graceMs ?? this.#specGraceMs));
    const done = this.#waiters.until(() => {
      if (this.#live === null || this.#live !== live) return true;
      if (isLate) throw stopTimeout(this.name, limitMs);
      if (this.#isKept(live, false)) throw startedError(this.name);
      return undefined;
    });
    cancels.push(
      this.#host.clock.after(Math.min(LONGEST_MS, limitMs), () => {
        isLate = true;
        this.#waiters.notify();
      }),
    );
    this.#request();
    try {
      await done;
    } finally {
      for (const cancel of cancels) cancel();
    }
  }

  async restart(): Promise<ServiceStatus> {
    this.#checkOpen();
    const before = this.#live;
    if (this.#goal !== 'up' || before === null) return this.start();
    if (this.#spec === null) throw waitingError(this.name, 'restart'); // nobody could start it again
    this.#demands++;
    if (before.generation === this.#generation) this.#generation++;
    this.#request();
    return this.#untilStarted(before, true);
  }

  /** @param isPaused `true`: from running to paused; `false`: back */
  async setPaused(isPaused: boolean): Promise<void> {
    this.#checkOpen();
    const [from, verb] = isPaused
      ? (['running', 'pause'] as const)
      : (['paused', 'resume'] as const);
    const live = this.#live;
    if (this.#phase !== from || live === null) {
      throw new ExitwatchError(
        'ERR_EXITWATCH_WRONG_PHASE',
        `cannot ${verb} ${JSON.stringify(this.name)}: it is ${this.#phase}, and must be ${from}`,
      );
    }
    this.#wantsPaused = isPaused;
    live.moveError = null;
    this.#request();
    await this.#waiters.until(() => {
      if (live.moveError !== null) throw live.moveError;
      if (this.#live !== live || live.exit !== null || live.isStopping) {
        throw new ExitwatchError(
          'ERR_EXITWATCH_WRONG_PHASE',
          `cannot ${verb} ${JSON.stringify(this.name)}: it is ${this.#phase}, and must be ${from}`,
        );
      }
      return live.isPaused === isPaused || undefined;
    });
  }

  status(): ServiceStatus {
    const { restarts, attempts, lastEnd } = this.#record;
    const live = this.#live;
    const isRunning = live?.isStarted === true && live.exit === null;
    const phase = this.#phase;
    const waitMs = this.#waitMs;
    return {
      name: this.name,
      phase,
      run: live?.stored.id ?? null,
      pid: isRunning ? (live.stored.identity?.pid ?? null) : null,
      identity: isRunning ? live.stored.identity : null,
      isReady: isRunning && live.health?.isReady === true,
      isCurrent:
        live === null ||
        (!this.#record.isRemoved && live.stored.runDigest === this.#record.stored.runDigest),
      isRemoved: this.isLeaving,
      restarts,
      attempts,
      lastEnd: lastEnd === null ? null : ({ ...lastEnd, at: new Date(lastEnd.at) } as ServiceEnd),
      lastError: this.#lastError?.message ?? null,
      nextStartAt: phase === 'backoff' ? new Date(Date.now() + waitMs) : null,
      termination: { ...this.#termination },
    };
  }

  // ---- what its keeper tells

  onEnded(exit: ExitEvent, run: KeeperRun): void {
    const live = this.#live;
    if (live?.stored.id !== run.id || live.exit !== null) return;
    live.exit = exit;
    live.livedMs = run.livedMs;
    this.#wake();
  }

  onNotify(run: KeeperRun, text: string): void {
    if (this.#live?.stored.id === run.id) this.#live.health?.onNotify(text);
  }

  /** Something has changed. */
  resync(): void {
    this.#wake();
  }

  // ---- its life

  /** Its keeper is open: takes over what runs. */
  adopt(): void {
    const record = this.#record;
    // Not by that of the record, which is of its last start.
    const { stopped } = record;
    if (stopped?.until === 'reboot' && stopped.bootId !== bootId()) record.stopped = null;
    if (record.bootId !== bootId()) {
      record.rest = null;
      record.attempts = 0;
      record.dueAtMs = 0; // by a clock that began anew
    }
    const live = this.#live;
    const run = live === null ? null : this.#host.runs.run(live.stored.id);
    if (live !== null && run?.identity != null && isBegun(run)) {
      live.isStarted = true;
      live.startedAtMs = this.#host.clock.now() - (run.livedMs ?? 0);
      live.stored.identity = run.identity;
      if (run.state === 'running') {
        this.#beginHealth(live, run);
        this.#host.emit('adopted', this.#eventOf(live));
      }
    }
    const requested = this.#goal === 'gone' || this.#goal === 'down';
    const isDone = live === null && this.#goal !== 'up' && this.#goal !== 'gone';
    this.#termination = { requested, started: isDone, terminated: isDone, finished: isDone };
    this.#wake();
  }

  begin(): void {
    this.#request();
  }

  /** Leaves everything as it is. What is under way does nothing more. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#cancelTimer?.();
    this.#live?.health?.end();
    this.#live?.control.abort();
    this.#waiters.rejectAll(closedError());
  }

  // ---- the loop

  #wake(): void {
    this.#isDirty = true;
    if (this.#isAbandoned) return;
    if (this.#isLooping) {
      this.#cancelLaunch();
      return;
    }
    this.#isLooping = true;
    void this.#run();
  }

  #request(): void {
    this.#requestedAtMs ??= this.#host.clock.now();
    this.#wake();
    this.#waiters.notify();
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // what is asked in one go is served as one
    while (this.#isDirty && !this.#isAbandoned) {
      this.#isDirty = false;
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
      if (this.#requestedAtMs !== null) {
        this.#host.countLatency(this.#host.clock.now() - this.#requestedAtMs);
        this.#requestedAtMs = null;
      }
      try {
        await this.#step();
      } catch (error) {
        if (this.#isAbandoned as boolean) break;
        this.#warn(error);
        const { code } = error as ExitwatchError;
        const retryMs = code === 'ERR_EXITWATCH_KEEPER' ? TRANSIENT_RETRY_MS : ERROR_RETRY_MS;
        this.#wakeIn(retryMs * (1 + Math.random() / 10));
      }
      this.#waiters.notify();
    }
    this.#isLooping = false;
    // Looks again now and then, in case that something was missed.
    if (!this.#isAbandoned && this.#cancelTimer === undefined) {
      this.#wakeIn(RESYNC_MS * (1 + Math.random() / 10));
    }
  }

  #wakeIn(ms: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#host.clock.after(ms, () => {
      this.#wake();
    });
  }

  /** What was asked last. `'rest'`: nobody stopped it, but it has ended for good. */
  get #goal(): 'up' | 'down' | 'gone' | 'rest' {
    const { isRemoved, stopped, rest } = this.#record;
    if (isRemoved) return 'gone';
    if (stopped !== null || this.#isHeld) return 'down';
    return rest === null ? 'up' : 'rest';
  }

  get #phase(): ServicePhase {
    const live = this.#live;
    if (live !== null) {
      if (live.isStopping || live.exit !== null) return 'stopping';
      if (!live.isStarted) return 'starting';
      return live.isPaused ? 'paused' : 'running';
    }
    const { rest } = this.#record;
    if (this.#goal === 'gone') return 'stopping';
    if (this.#goal === 'down') return 'stopped';
    if (rest !== null) return rest;
    if (this.#spec === null) return 'waiting';
    return this.#waitMs > 0 ? 'backoff' : 'starting';
  }

  /** Until the next start, but never longer than its backoff says: a clock may have gone back. */
  get #waitMs(): number {
    const record = this.#record;
    const now = this.#host.clock.now();
    if (record.dueAtMs <= now) return 0;
    const most = new Backoff(this.#policy.backoff).delayMs(record.attempts + 1, () => 1);
    record.dueAtMs = Math.min(record.dueAtMs, now + most);
    return record.dueAtMs - now;
  }

  async #step(): Promise<void> {
    const live = this.#live;
    if (live === null) {
      await this.#stepIdle();
      return;
    }
    if (!live.isStarted) {
      await this.#stepReserved(live);
      return;
    }
    const run = this.#host.runs.run(live.stored.id);
    // Only an earlier boot, or somebody who has removed files of the keeper, makes it unknown.
    const isLost = run === null || run.state === 'failed' || run.identity === null;
    if (live.exit === null && isLost && run?.state !== 'running') {
      await this.#lose(live);
    }
    if (live.exit !== null) {
      await this.#settle(live);
      return;
    }
    const purpose = this.#purposeOfEnd(live);
    if (purpose !== null) {
      if (!live.isGone) await this.#terminate(live, purpose);
    } else if (run?.state === 'ended') {
      this.#expectEnd(live, run);
    } else if (this.#wantsPaused !== live.isPaused) {
      await this.#pause(live, this.#wantsPaused);
    }
  }

  async #stepIdle(): Promise<void> {
    const goal = this.#goal;
    if (goal === 'gone') {
      this.#finish();
      return;
    }
    if (goal !== 'up') {
      this.#rest();
      return;
    }
    if (this.#spec === null) return;
    const waitMs = this.#waitMs;
    if (waitMs > 0) {
      this.#wakeIn(waitMs);
      return;
    }
    const record = this.#record;
    record.lastRun++;
    record.attempts++;
    record.dueAtMs = 0;
    record.bootId = bootId();
    const reason = record.planned ?? null;
    record.planned = null;
    if (reason !== null) {
      record.restarts++;
      this.#host.countRestart(reason);
    }
    const id = runId(record, record.lastRun);
    const { runDigest } = record.stored;
    const { pidfile = null } = this.#spec;
    record.run = { id, runDigest, identity: null, isPaused: false, intent: null, pidfile };
    this.#live = newLive(record.run, this.#generation);
    this.#wantsPaused = false;
    this.#graceMs = null; // it was for a stop of before
    this.#termination = NEVER;
    await this.#launch(this.#live, this.#spec);
  }

  /** Nothing runs, and nothing is started. */
  #rest(): void {
    if (this.#termination.finished) return;
    const { requested } = this.#termination;
    this.#termination = { requested, started: true, terminated: true, finished: true };
    const { lastEnd, rest } = this.#record;
    const failure = rest === 'failed' ? (this.#lastError?.message ?? null) : null;
    const because = failure ?? lastEnd?.because ?? 'we were asked to stop it';
    this.#host.emit('stopped', { service: this.name, phase: this.#phase, because });
  }

  /** Its id was reserved, and it is not known whether it was started: an id starts only once. */
  async #stepReserved(live: LiveRun): Promise<void> {
    const run = this.#host.runs.run(live.stored.id);
    const isWanted = this.#goal === 'up' && live.stored.runDigest === this.#record.stored.runDigest;
    if (isWanted && this.#spec !== null && live.stored.identity === null) {
      await this.#launch(live, this.#spec);
    } else if (run !== null && run.state !== 'failed') {
      live.isStarted = true;
      live.stored.identity = run.identity ?? live.stored.identity; // after a boot the keeper has none
      this.#wake();
    } else if (live.stored.identity !== null) {
      await this.#lose(live);
      live.isStarted = true;
      this.#wake();
    } else {
      if (run !== null) await this.#host.runs.forget(run.id);
      const { pidfile } = live.stored;
      if (pidfile !== null) await removeStalePidfile(pidfile).catch(() => undefined);
      this.#drop();
      this.#wake();
    }
  }

  async #launch(live: LiveRun, spec: ServiceSpec): Promise<void> {
    const { runs, clock } = this.#host;
    this.#save(); // otherwise the next supervisor would take it for an orphan
    let run: KeeperRun;
    live.isLaunching = true;
    try {
      run = await runs.start(runOptions(spec, live.stored.id));
    } catch (error) {
      const { code } = error as ExitwatchError;
      // It may have been started: the next step asks again, under the same id.
      if (code === 'ERR_EXITWATCH_KEEPER' || code === 'ERR_EXITWATCH_CLOSED') throw error;
      this.#onStartFailed(live, error as ExitwatchError);
      return;
    } finally {
      live.isLaunching = false;
    }
    live.isStarted = true;
    live.startedAtMs = clock.now();
    live.stored.identity = run.identity;
    this.#lastError = null;
    this.#save();
    this.#host.emit('started', this.#eventOf(live));
    this.#waiters.notify();
    if (this.#isAbandoned) return;
    if (run.state === 'running') {
      this.#beginHealth(live, run);
      await this.#writePidfile(live, spec);
    }
    this.#wake();
  }

  /** What waits before its exec, for a disk for example, must not keep what was asked since waiting. */
  #cancelLaunch(): void {
    const live = this.#live;
    if (live?.isLaunching !== true || live.isStopping) return;
    const purpose = this.#purposeOfEnd(live);
    if (purpose === null) return;
    try {
      this.#intend(live, purpose);
    } catch (error) {
      this.#warn(error);
      return;
    }
    const { signal = 'SIGTERM' } = this.#policy.stop ?? {};
    const graceMs = Math.max(1, this.#graceMs ?? this.#specGraceMs);
    this.#host.runs.stop(live.stored.id, { signal, graceMs }).catch(() => undefined);
  }

  #onStartFailed(live: LiveRun, error: ExitwatchError): void {
    if (live.isStopping) {
      this.#drop();
      this.#wake();
      return;
    }
    this.#lastError = error;
    this.#startFailures++;
    this.#warn(error);
    this.#drop(() => {
      if (this.#goal === 'up') this.#delayNext(error.message, 'start-failed');
    });
    this.#wake();
  }

  /** The run is over, or never was. */
  #drop(change?: () => void): void {
    this.#live = null;
    this.#record.run = null;
    change?.();
    this.#save();
  }

  /** When the next start is due; or that there is none. */
  #delayNext(because: string, reason: string): void {
    const backoff = new Backoff(this.#policy.backoff);
    const { attempts } = this.#record;
    if (backoff.isLast(attempts)) {
      this.#record.rest = 'failed';
      return;
    }
    const delayMs = backoff.delayMs(attempts + 1);
    this.#record.dueAtMs = this.#host.clock.now() + delayMs;
    this.#record.planned = reason;
    if (delayMs === 0) return;
    this.#host.emit('backoff', {
      service: this.name,
      attempt: attempts + 1,
      delayMs,
      nextStartAt: new Date(Date.now() + delayMs),
      because,
    });
  }

  // ---- how a run ends

  /** Why the run must end; `null`: it must not. */
  #purposeOfEnd(live: LiveRun): StopPurpose | null {
    if (this.#goal === 'gone' || this.#goal === 'down') return 'stop';
    if (this.#isReplaced(live)) return 'restart';
    if (live.unhealthy !== null) return 'health';
    return live.stored.intent?.purpose ?? null;
  }

  /** Another run is to take its place. */
  #isReplaced(live: LiveRun): boolean {
    if (live.generation < this.#generation) return true;
    return this.#spec !== null && live.stored.runDigest !== this.#record.stored.runDigest;
  }

  async #terminate(live: LiveRun, purpose: StopPurpose): Promise<void> {
    const { runs } = this.#host;
    const { id } = live.stored;
    this.#intend(live, purpose);
    live.health?.end();
    this.#waiters.notify();
    await this.#control(live);
    if (this.#isAbandoned) return;
    const graceMs = Math.max(1, this.#graceMs ?? this.#specGraceMs);
    const { signal = 'SIGTERM' } = this.#policy.stop ?? {};
    const { isGone, left } = await runs.stop(id, { signal, graceMs }).catch((error: unknown) => {
      if ((error as ExitwatchError).code !== 'ERR_EXITWATCH_NO_RUN') throw error;
      return { isGone: true, left: [] };
    });
    live.isGone = isGone;
    if (isGone) {
      this.#wake();
      return;
    }
    const pids = left.map(({ pid }) => pid).join(', ');
    throw new ExitwatchError(
      'ERR_EXITWATCH_TIMEOUT',
      `something of ${JSON.stringify(this.name)} has survived SIGKILL: ${pids}`,
    );
  }

  /** On record before the first signal. */
  #intend(live: LiveRun, purpose: StopPurpose): void {
    live.isStopping = true;
    if (live.stored.intent?.purpose !== purpose) {
      const why = purpose === 'health' ? live.unhealthy : null;
      live.stored.intent = { purpose, at: new Date().toISOString(), why };
    }
    this.#termination = { ...this.#termination, started: true };
    this.#save();
  }

  async #control(live: LiveRun): Promise<void> {
    const { control } = this.#policy.stop ?? {};
    if (control === undefined || live.control.signal.aborted || live.exit !== null) return;
    const env = { MAINPID: String(live.stored.identity?.pid ?? '') };
    const code = await runCommand(control, env, this.#host.clock, live.control.signal);
    if (code !== 0) {
      const detail = `the control command ended with ${code ?? 'a signal, or took too long'}`;
      this.#warn(new ExitwatchError('ERR_EXITWATCH_CONTROL', detail));
    }
    live.control.abort(); // once only
  }

  /** A shorter grace counts, also for a stop that is under way; a longer one does not. */
  #shorten(graceMs: number | undefined): void {
    if (graceMs === undefined) return;
    const shorter = Math.max(1, graceMs);
    const live = this.#live;
    if (live?.isStopping !== true && this.#graceMs === null) {
      this.#graceMs = shorter;
      return;
    }
    if (shorter >= (this.#graceMs ?? this.#specGraceMs)) return;
    this.#graceMs = shorter;
    if (live?.isStopping !== true) return;
    live.control.abort();
    const { signal = 'SIGTERM' } = this.#policy.stop ?? {};
    // It may be the first one, if the control command was still running.
    this.#host.runs.stop(live.stored.id, { signal, graceMs: shorter }).catch(() => undefined);
  }

  get #specGraceMs(): number {
    return this.#policy.stop?.graceMs ?? GRACE_MS;
  }

  /** What is stored lacks what the redaction hook took. */
  get #policy(): ServiceSpec {
    return this.#spec ?? this.#record.stored.spec;
  }

  /** Its process has ended: decides, tells, and clears away what it has left. */
  async #settle(live: LiveRun): Promise<void> {
    const { runs } = this.#host;
    const exit = live.exit;
    if (exit === null) return;
    const { id } = live.stored;
    if (live.decision === null) {
      live.decision = this.#decide(live, exit);
      live.decidedAt = this.#demands;
      live.health?.end();
      this.#host.emit('exit', { ...exit, service: this.name, run: id, decision: live.decision });
    }
    const run = runs.run(id);
    if (run !== null && !isOver(run)) await this.#clear(live);
    if (this.#isAbandoned) return;
    const { decision } = live;
    await this.#removePidfile(live);
    this.#record.lastEnd = {
      run: id,
      how: exit.how,
      exitCode: exit.exitCode,
      signal: exit.signal,
      at: exit.exitedAt.toISOString(),
      reason: decision.reason,
      because: decision.because,
    };
    this.#graceMs = null;
    this.#termination = { ...this.#termination, terminated: this.#termination.requested };
    // On disk before the keeper forgets it: otherwise nobody would know the end.
    this.#drop(() => {
      this.#account(live, exit, decision);
    });
    if (run !== null) {
      await runs.forget(id).catch((error: unknown) => {
        if ((error as ExitwatchError).code !== 'ERR_EXITWATCH_NO_RUN') this.#warn(error);
      });
    }
    this.#wake();
  }

  #decide(live: LiveRun, exit: ExitEvent): RestartDecision {
    const spec = this.#policy;
    const { restart = 'unless-asked', successExitCodes = [0], askedBy = [] } = spec;
    const rules = { restart, successExitCodes, askedBy, onUnknown: spec.onUnknown ?? 'restart' };
    const { intent } = live.stored;
    const at = new Date().toISOString();
    const why = intent?.why ?? null;
    // What was asked last counts, also if it ended by itself before it was signalled.
    if (this.#goal !== 'up') {
      return decideRestart(rules, exit, { purpose: 'stop', at: intent?.at ?? at, why });
    }
    if (this.#record.bootId !== bootId()) return afterReboot(exit, intent);
    if (intent?.purpose === 'stop' || this.#isReplaced(live)) {
      return decideRestart(rules, exit, { purpose: 'restart', at: intent?.at ?? at, why });
    }
    const decision = decideRestart(rules, exit, intent);
    const attempts = this.#attemptsAfter(live, exit);
    const isLast = new Backoff(spec.backoff).isLast(attempts);
    if (!decision.restart || !isLast || decision.reason === 'restart') return decision;
    const because = `${decision.because}; it was started ${attempts} times in a row`;
    return { ...decision, restart: false, reason: 'gave-up', because };
  }

  /** What the end means for the next start. */
  #account(live: LiveRun, exit: ExitEvent, decision: RestartDecision): void {
    const record = this.#record;
    // Somebody has asked for another one while what this one has left behind ended.
    const isOutdated = live.decidedAt !== this.#demands;
    const { reason: why } = decision;
    const isAsked = why === 'restart' || why === 'stop' || why === 'reboot' || isOutdated;
    record.attempts = isAsked ? 0 : this.#attemptsAfter(live, exit);
    this.#record.dueAtMs = 0;
    if (this.#goal !== 'up') return;
    // Somebody has started it again while it ended.
    if (decision.reason === 'stop') return;
    if (isOutdated) this.#delayNext('it was asked to run', 'restart');
    else if (decision.restart) this.#delayNext(decision.because, decision.reason);
    else record.rest = decision.reason === 'gave-up' ? 'failed' : 'ended';
  }

  #attemptsAfter(live: LiveRun, exit: ExitEvent): number {
    const { clock } = this.#host;
    const byClock = clock.now() - live.startedAtMs;
    const isOurs = clock !== realClock && !exit.isRepeated;
    const livedMs = isOurs ? byClock : (live.livedMs ?? byClock);
    const backoff = new Backoff(this.#policy.backoff);
    return backoff.attemptsAfter(this.#record.attempts, livedMs);
  }

  /** Ends what the process has left behind. */
  async #clear(live: LiveRun): Promise<void> {
    const { signal = 'SIGTERM' } = this.#policy.stop ?? {};
    const graceMs = Math.max(1, this.#graceMs ?? this.#specGraceMs);
    live.isStopping = true;
    this.#waiters.notify();
    const { id } = live.stored;
    const { isGone, left } = await this.#host.runs.stop(id, { signal, graceMs });
    if (isGone) return;
    const pids = left.map(({ pid }) => pid).join(', ');
    throw new ExitwatchError(
      'ERR_EXITWATCH_TIMEOUT',
      `something of ${JSON.stringify(this.name)} has survived SIGKILL: ${pids}`,
    );
  }

  /** Its end is told once it is joined with what the monitor saw; if not, the status is enough. */
  #expectEnd(live: LiveRun, run: KeeperRun): void {
    const now = this.#host.clock.now();
    live.overdueSinceMs ??= now;
    const leftMs = live.overdueSinceMs + OVERDUE_MS - now;
    if (leftMs > 0) {
      this.#wakeIn(leftMs);
      return;
    }
    live.exit = exitOf(run, false);
    live.livedMs = run.livedMs;
    this.#wake();
  }

  /** Nobody knows the run any more: how it ended is unknown, and what is left of it is stopped. */
  async #lose(live: LiveRun): Promise<void> {
    const { identity } = live.stored;
    if (identity !== null && isAlive(identity) === 'alive') {
      const { signal = 'SIGTERM' } = this.#policy.stop ?? {};
      await stopProcess(identity, {
        killSignal: signal,
        forceKillAfterDelayMs: Math.max(1, this.#specGraceMs),
        tree: true,
      });
    }
    const startedAt = identity === null ? null : startOf(identity);
    live.exit ??= unknownExit(
      {
        id: identity?.id ?? live.stored.id,
        pid: identity?.pid ?? 0,
        startedAt,
        exitedAt: new Date(),
        uncertaintyMs: Math.max(1, Date.now() - (startedAt?.getTime() ?? 0)),
        source: this.#host.runs.source ?? 'keeper',
      },
      'gone-while-unobserved',
    );
  }

  #finish(): void {
    const record = this.#record;
    this.#termination = { requested: true, started: true, terminated: true, finished: true };
    if (record.next === null) {
      this.#host.store.remove(record);
      this.#isAbandoned = true;
      this.#cancelTimer?.();
      const because = 'it was removed';
      this.#host.emit('stopped', { service: this.name, phase: 'removed', because });
      this.#host.onFinished(this);
      this.#waiters.notify();
      this.#waiters.rejectAll(noService(this.name));
      return;
    }
    // Another service of the same name: it knows nothing of this one, but who stopped it meant it.
    this.#record = { ...newRecord(record.next), stopped: record.stopped };
    this.#spec = this.#nextSpec;
    this.#nextSpec = null;
    this.#record.dueAtMs = 0;
    this.#lastError = null;
    this.#host.countRestart('created-again');
    this.#save();
    this.#termination = NEVER;
    this.#wake();
  }

  // ---- what belongs to a run

  async #pause(live: LiveRun, isPaused: boolean): Promise<void> {
    const { runs } = this.#host;
    const { id } = live.stored;
    // What is on disk is what must be undone: paused before it is, running after it is.
    if (isPaused) {
      live.stored.isPaused = true;
      this.#save();
    }
    try {
      await (isPaused ? runs.pause(id) : runs.resume(id));
    } catch (error) {
      if ((error as ExitwatchError).code === 'ERR_EXITWATCH_KEEPER') throw error; // tried again
      live.moveError = error as ExitwatchError;
      this.#wantsPaused = !isPaused;
      return;
    }
    live.isPaused = isPaused;
    live.stored.isPaused = isPaused;
    this.#save();
    live.health?.setPaused(isPaused);
    this.#wake();
  }

  #beginHealth(live: LiveRun, run: KeeperRun): void {
    live.health = new Health(this.#policy, run.pid ?? 0, this.#host.clock, {
      onReady: () => {
        this.#host.emit('ready', this.#eventOf(live));
        this.#waiters.notify();
      },
      onUnhealthy: (why) => {
        live.unhealthy ??= why;
        this.#wake();
      },
    });
    live.health.begin(run.isReady, run.aliveAgoMs, this.#host.clock.now() - live.startedAtMs);
    if (live.isPaused) live.health.setPaused(true);
  }

  /** Its keeper has done so before its exec, if it could. */
  async #writePidfile(live: LiveRun, { pidfile }: ServiceSpec): Promise<void> {
    const { identity } = live.stored;
    if (pidfile === undefined || identity === null || live.exit !== null) return;
    const found = await readPidfile(pidfile).catch(() => null);
    if (found?.identity != null && isSameProcess(found.identity, identity)) return;
    await writePidfile(pidfile, identity).catch((error: unknown) => {
      this.#warn(error);
    });
  }

  async #removePidfile(live: LiveRun): Promise<void> {
    // Not that of the service, which may have another one by now.
    const { identity, pidfile } = live.stored;
    if (pidfile === null || identity === null) return;
    await removePidfile(pidfile, identity).catch((error: unknown) => {
      this.#warn(error);
    });
  }

  async #untilStarted(before: LiveRun | null, isOther = false): Promise<ServiceStatus> {
    const failures = this.#startFailures;
    return this.#waiters.until(() => {
      if (this.#goal === 'gone' && !this.isLeaving) return undefined; // the next one of this name
      if (this.#goal !== 'up') throw stoppedError(this.name);
      const live = this.#live;
      if (live === null && this.#spec === null) throw waitingError(this.name, 'start');
      if (live?.isStarted === true && (live !== before || this.#isKept(live, isOther))) {
        return this.status();
      }
      if (this.#startFailures > failures && this.#lastError !== null) throw this.#lastError;
      return undefined;
    });
  }

  /** The run of before serves as well. */
  #isKept(live: LiveRun, isOther: boolean): boolean {
    return !isOther && live.exit === null && !live.isStopping && this.#purposeOfEnd(live) === null;
  }

  #eventOf({ stored: { id, identity } }: LiveRun): ServiceRunEvent {
    return { service: this.name, run: id, pid: identity?.pid ?? 0, identity };
  }

  #save(): void {
    this.#host.store.save(this.#record);
  }

  #warn(error: unknown): void {
    this.#host.emit('warning', { service: this.name, error: asExitwatchError(error) });
  }

  #checkOpen(): void {
    if (this.isLeaving) throw noService(this.name);
    if (this.#isAbandoned) throw closedError();
  }
}

function newLive(stored: StoredRun, generation: number): LiveRun {
  return {
    stored,
    generation,
    isStarted: false,
    startedAtMs: 0,
    exit: null,
    livedMs: null,
    decision: null,
    health: null,
    unhealthy: null,
    isStopping: false,
    isLaunching: false,
    isGone: false,
    isPaused: stored.isPaused,
    moveError: null,
    decidedAt: 0,
    overdueSinceMs: null,
    control: new AbortController(),
  };
}

const isBegun = ({ state }: KeeperRun) => state === 'running' || state === 'ended';

function stopTimeout(name: string, ms: number): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_TIMEOUT',
    `${JSON.stringify(name)} is still stopping after ${ms} ms; it goes on`,
  );
}

function waitingError(name: string, verb: string): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_WRONG_PHASE',
    `cannot ${verb} ${JSON.stringify(name)}: it is waiting for what was redacted; apply() it first`,
  );
}

function stoppedError(name: string): ExitwatchError {
  const detail = `${JSON.stringify(name)} was stopped before it was started`;
  return new ExitwatchError('ERR_EXITWATCH_ABORTED', detail);
}

function startedError(name: string): ExitwatchError {
  const detail = `${JSON.stringify(name)} was started again before it was stopped`;
  return new ExitwatchError('ERR_EXITWATCH_ABORTED', detail);
}

function closedError(): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the supervisor was closed');
}

/** There is no service of this name. */
export function noService(name: string): ExitwatchError {
  const detail = `there is no service ${JSON.stringify(name)}`;
  return new ExitwatchError('ERR_EXITWATCH_NO_SERVICE', detail);
}
