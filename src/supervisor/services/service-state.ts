import { asExitwatchError, type ExitwatchError } from '../../common/errors.js';

import { Backoff } from './backoff.js';
import { boot } from './boot.js';
import type { Clock } from './clock.js';
import type { LiveRun } from './live-run.js';
import { newLive } from './live-run.js';
import type { Judge, StopPurpose } from './restart-policy.js';
import type { RunHost } from './run-host.js';
import type {
  ServicePhase,
  ServiceRunEvent,
  ServiceStatus,
  SupervisorEvents,
  Termination,
} from './service-events.js';
import type { ServiceRecord } from './service-record.js';
import type { ServiceSpec, ServiceStop } from './service-spec.js';
import type { ServiceStore } from './service-store.js';
import type { Ordered, StartOrder } from './start-order.js';
import { DEFAULT_COMMAND_MS } from './run-command.js';
import { statusOf } from './service-status.js';
import { Waiters } from './waiters.js';
import { WorkLoop } from './work-loop.js';

/** What a worker needs of its supervisor. */
export interface WorkerHost {
  readonly runs: RunHost;
  readonly store: ServiceStore;
  readonly clock: Clock;
  readonly order: StartOrder;
  /** Who knows more of an end of this service than its exit; `null`: nobody does. */
  judgeOf(spec: ServiceSpec): Judge | null;
  emit<Name extends keyof SupervisorEvents>(name: Name, ...args: SupervisorEvents[Name]): void;
  /** A new run takes the place of one that ended for this reason. */
  countRestart(reason: string): void;
  /** A request was served after so long. */
  countLatency(ms: number): void;
  /** Nothing of a removed service is left. */
  onFinished(name: string): void;
}

const GRACE_MS = 5000;

/** Nobody has asked for a stop. */
export const NEVER: Termination = {
  requested: false,
  started: false,
  terminated: false,
  finished: false,
};

/** What one service shall be, and what it is. */
export class ServiceState implements Ordered {
  readonly host: WorkerHost;
  readonly loop: WorkLoop;
  readonly waiters = new Waiters();
  record: ServiceRecord;
  /** `null`: only what is left of it after redaction is known. */
  spec: ServiceSpec | null;
  /** What follows after a removal. */
  nextSpec: ServiceSpec | null = null;
  live: LiveRun | null = null;
  termination: Termination = NEVER;
  /** Stopped for as long as this supervisor lives. */
  isHeld = false;
  /** Grows with each request to run: what was decided before one of them does not count any more. */
  demands = 0;
  wantsPaused = false;
  generation = 0;
  graceMs: number | null = null;
  lastError: ExitwatchError | null = null;
  /** What could not be done last, and is tried again: a start, or to store something. */
  failure: ExitwatchError | null = null;
  /** What was said of the restart that was asked for last. */
  restartWhy: string | null = null;
  /** Something has survived its stop. */
  hasSurvivors = false;

  /** @param spec `null`: it is that of the record */
  constructor(
    host: WorkerHost,
    record: ServiceRecord,
    spec: ServiceSpec | null,
    work: { step: () => Promise<void>; onBusy: () => void },
  ) {
    this.host = host;
    this.record = record;
    this.spec = spec ?? (record.stored.isRedacted ? null : record.stored.spec);
    if (record.next !== null && !record.next.isRedacted) this.nextSpec = record.next.spec;
    if (record.run !== null) {
      this.live = newLive(record.run, 0);
      this.wantsPaused = record.run.isPaused;
    }
    this.loop = new WorkLoop({
      ...work,
      clock: host.clock,
      onStep: () => {
        this.moved();
      },
      onError: (error) => {
        const told = asExitwatchError(error);
        if (told.code === 'ERR_EXITWATCH_STATE_DIR') this.failure = told;
        this.warn(told);
      },
      countLatency: (ms) => {
        host.countLatency(ms);
      },
    });
  }

  /** What is under way does nothing more. */
  get isAbandoned(): boolean {
    return this.loop.isEnded;
  }

  get name(): string {
    return this.record.name;
  }

  get after(): readonly string[] {
    return this.policy.after ?? [];
  }

  get isComing(): boolean {
    if (this.record.isRemoved) return this.record.next !== null;
    if (this.goal !== 'up') return false;
    const live = this.live;
    const isUp = live?.isStarted === true && live.exit === null && !live.isStopping;
    return !isUp || live.health?.isReady !== true;
  }

  get isGoing(): boolean {
    return this.live !== null && !this.hasSurvivors && this.isToStop;
  }

  /** Nobody has stopped it, it has not ended for good, and it runs or can be started. */
  get isUp(): boolean {
    const canRun = this.live !== null || this.spec !== null;
    return this.goal === 'up' && canRun && this.live?.decision?.restart !== false;
  }

  /** Nobody wants it to run, or it was removed. */
  get isToStop(): boolean {
    return this.goal === 'down' || this.goal === 'gone';
  }

  /** Has it wait for others until it is woken. Returns whether there are any. */
  awaitTurn(others: readonly string[]): boolean {
    this.host.order.wait(this.name, others, () => {
      this.loop.wake();
    });
    return others.length > 0;
  }

  /** Something has changed that somebody may wait for. */
  moved(): void {
    this.waiters.notify();
    this.host.order.onMoved(this.name);
  }

  /** It is removed, and nothing takes its place. */
  get isLeaving(): boolean {
    return this.record.isRemoved && this.record.next === null;
  }

  /** What was asked last. `'rest'`: nobody stopped it, but it has ended for good. */
  get goal(): 'up' | 'down' | 'gone' | 'rest' {
    const { isRemoved, stopped, rest } = this.record;
    if (isRemoved) return 'gone';
    if (stopped !== null || this.isHeld) return 'down';
    return rest === null ? 'up' : 'rest';
  }

  get phase(): ServicePhase {
    const live = this.live;
    if (live !== null) {
      if (live.isStopping || live.exit !== null) return 'stopping';
      if (this.isToStop && this.host.order.waitsFor(this.name).length > 0) return 'stopping';
      if (!live.isStarted) return 'starting';
      return live.isPaused ? 'paused' : 'running';
    }
    const { rest } = this.record;
    if (this.goal === 'gone') return 'stopping';
    if (this.goal === 'down') return 'stopped';
    if (rest !== null) return rest;
    if (this.spec === null) return 'waiting';
    return this.waitMs > 0 ? 'backoff' : 'starting';
  }

  /** Until the next start, but never longer than its backoff says: a clock may have gone back. */
  get waitMs(): number {
    const record = this.record;
    const now = this.host.clock.now();
    if (record.dueAtMs <= now) return 0;
    const most = new Backoff(this.policy.backoff).delayMs(record.attempts + 1, () => 1);
    record.dueAtMs = Math.min(record.dueAtMs, now + most);
    return record.dueAtMs - now;
  }

  /** What its keeper knows of its health. */
  seeHealth(): void {
    const run = this.live === null ? null : this.host.runs.run(this.live.stored.id);
    if (run !== null) this.live?.health?.onSeen(run.isReady, run.aliveAgoMs, !run.isLost);
  }

  /** What is stored lacks what the redaction hook took. */
  get policy(): ServiceSpec {
    return this.spec ?? this.record.stored.spec;
  }

  /** How its run is asked to end. */
  get asking(): Required<Pick<ServiceStop, 'signal' | 'ask'>> {
    const { signal = 'SIGTERM', ask = 'tree' } = this.policy.stop ?? {};
    return { signal, ask };
  }

  get specGraceMs(): number {
    return this.policy.stop?.graceMs ?? GRACE_MS;
  }

  /** How long a stop may take: its control command, and its grace. */
  get stopMs(): number {
    const { control } = this.policy.stop ?? {};
    const controlMs = control === undefined ? 0 : (control.timeoutMs ?? DEFAULT_COMMAND_MS);
    return controlMs + (this.graceMs ?? this.specGraceMs);
  }

  status(): ServiceStatus {
    return statusOf(this);
  }

  /** Why the run must end; `null`: it must not. */
  purposeOfEnd(live: LiveRun): StopPurpose | null {
    if (this.isToStop) return 'stop';
    if (this.isReplaced(live)) return 'restart';
    if (live.unhealthy !== null) return 'health';
    return live.stored.intent?.purpose ?? null;
  }

  isAskedToRestart(live: LiveRun): boolean {
    return live.generation < this.generation;
  }

  /** Another run is to take its place: somebody has asked, or it is described otherwise now. */
  isReplaced(live: LiveRun): boolean {
    if (this.isAskedToRestart(live)) return true;
    return this.spec !== null && live.stored.runDigest !== this.record.stored.runDigest;
  }

  /** The run of before serves as well. */
  isKept(live: LiveRun, isOther: boolean): boolean {
    return !isOther && live.exit === null && !live.isStopping && this.purposeOfEnd(live) === null;
  }

  /** The run is over, or never was. */
  drop(change?: () => void): void {
    this.live = null;
    this.hasSurvivors = false;
    this.record.run = null;
    change?.();
    this.save();
  }

  /** Stays stopped: who did it first, and for longest, is on record. */
  stay(until: 'start' | 'reboot', why: string | null): void {
    const { stopped } = this.record;
    const isSo = stopped?.until === 'start' || stopped?.until === until;
    this.change((record) => {
      if (!isSo) record.stopped = { until, bootId: boot(), at: new Date().toISOString(), why };
    });
  }

  eventOf({ stored: { id, identity } }: LiveRun): ServiceRunEvent {
    return { service: this.name, run: id, pid: identity?.pid ?? 0, identity };
  }

  save(isSynced = true): void {
    this.host.store.save(this.record, isSynced);
  }

  /** All of it, or nothing if it cannot be stored: who asked for it is told so. */
  change(change: (record: ServiceRecord) => void): void {
    const before = { ...this.record };
    change(this.record);
    try {
      this.save();
    } catch (error) {
      Object.assign(this.record, before);
      throw error;
    }
  }

  warn(error: unknown): void {
    this.host.emit('warning', { service: this.name, error: asExitwatchError(error) });
  }
}
