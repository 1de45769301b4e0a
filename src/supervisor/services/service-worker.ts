import { LONGEST_MS } from '../../common/options.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { KeeperRun } from '../keeper/keeper-run.js';

import type { LiveRun } from './live-run.js';
import {
  closedError,
  noService,
  phaseError,
  startedError,
  stoppedError,
  stopTimeout,
  waitingError,
} from './service-errors.js';
import type { ServicePhase, ServiceStatus } from './service-events.js';
import { restsAlike, type ServiceRecord, type StoredSpec } from './service-record.js';
import type { ServiceSpec } from './service-spec.js';
import { NEVER, ServiceState, type WorkerHost } from './service-state.js';
import { ServiceSteps } from './service-steps.js';
import type { Ordered } from './start-order.js';

const LEAST_STOP_TIMEOUT_MS = 10_000;

/** What others ask of one service, which it then goes towards: one step at a time. */
export class ServiceWorker {
  readonly #state: ServiceState;
  readonly #steps: ServiceSteps;

  /** @param spec `null`: it is that of the record */
  constructor(host: WorkerHost, record: ServiceRecord, spec: ServiceSpec | null) {
    this.#state = new ServiceState(host, record, spec, {
      step: () => this.#steps.take(),
      onBusy: () => {
        this.#steps.cancelLaunch();
      },
    });
    this.#steps = new ServiceSteps(this.#state);
  }

  get name(): string {
    return this.#state.name;
  }

  get spec(): ServiceSpec {
    const { record, nextSpec, policy } = this.#state;
    return record.isRemoved ? (nextSpec ?? record.next?.spec ?? policy) : policy;
  }

  get stored(): StoredSpec {
    return this.#state.record.isRemoved
      ? (this.#state.record.next ?? this.#state.record.stored)
      : this.#state.record.stored;
  }

  get phase(): ServicePhase {
    return this.#state.phase;
  }

  get isUp(): boolean {
    return this.#state.isUp;
  }

  /** It is removed, and nothing takes its place. */
  get isLeaving(): boolean {
    return this.#state.isLeaving;
  }

  /** The run that is its own; others of its name are left from before. */
  get runId(): string | null {
    return this.#state.live?.stored.id ?? null;
  }

  /** What the order of others depends on. */
  get ordered(): Ordered {
    return this.#state;
  }

  /** Since when a request waits to be served, by the clock; `null`: none does. */
  get requestedAtMs(): number | null {
    return this.#state.loop.requestedAtMs;
  }

  /** What was applied. Writes before it returns. */
  update(spec: ServiceSpec | null, stored: StoredSpec): void {
    const { isRemoved } = this.#state.record;
    const isAlike = restsAlike(this.#state.record.stored, stored);
    this.#state.change((record) => {
      if (isRemoved) {
        record.next = stored;
        return;
      }
      record.stored = stored;
      if (isAlike) return;
      record.rest = null;
      record.attempts = 0;
      record.dueAtMs = 0;
    });
    if (isRemoved) this.#state.nextSpec = spec;
    else {
      this.#state.spec = spec;
      if (!isAlike) this.#state.demands++;
    }
    this.#release();
    this.#state.loop.request();
  }

  /** The same was applied again. */
  confirm(spec: ServiceSpec): void {
    if (this.#state.record.isRemoved) this.#state.nextSpec ??= spec;
    else this.#state.spec ??= spec;
    this.#release();
    this.#state.save(); // it may not have been on disk, if the disk was full
    this.#state.loop.wake();
  }

  /** What was stopped until now may run again. */
  #release(): void {
    this.#state.isHeld = false;
    // The grace of a stop that did not come about is not that of the next one.
    const isStopping = this.#state.live?.isStopping === true;
    if (this.#state.goal === 'up' && !isStopping) this.#state.graceMs = null;
  }

  remove(): void {
    this.#state.change((record) => {
      record.isRemoved = true;
      record.next = null;
      // From now on it is that of what is created again under this name.
      record.stopped = null;
    });
    this.#state.nextSpec = null;
    this.#state.isHeld = false;
    this.#state.termination = { ...this.#state.termination, requested: true };
    this.#state.loop.request();
  }

  async start(): Promise<ServiceStatus> {
    this.#checkOpen();
    const before = this.#state.live;
    this.#state.change((record) => {
      record.stopped = null;
      record.rest = null;
      if (before !== null && !this.#state.termination.requested) return;
      record.attempts = 0;
      record.dueAtMs = 0;
      record.planned = null;
    });
    this.#state.isHeld = false;
    this.#state.graceMs = null;
    this.#state.demands++;
    if (before !== null && this.#state.goal === 'up' && this.#state.isKept(before, false)) {
      this.#state.termination = NEVER;
    }
    this.#state.loop.request();
    return this.#untilStarted(before);
  }

  /** Waits until nothing of its run is left. */
  async stop(
    graceMs: number | undefined,
    until: 'start' | 'reboot' | 'close',
    why: string | null = null,
  ): Promise<void> {
    this.#checkOpen();
    if (until === 'close') this.#state.isHeld = true;
    else this.#state.stay(until, why);
    await this.end(graceMs);
  }

  /** Waits until nothing of its run is left, which somebody has asked for. */
  async end(graceMs: number | undefined): Promise<void> {
    this.#state.termination = { ...this.#state.termination, requested: true };
    this.#steps.shorten(graceMs);
    const live = this.#state.live;
    let isLate = false;
    const limitMs = Math.max(LEAST_STOP_TIMEOUT_MS, 1.5 * this.#state.stopMs);
    const done = this.#state.waiters.until(() => {
      if (this.#state.live === null || this.#state.live !== live) return true;
      if (isLate) throw stopTimeout(this.name, limitMs);
      if (this.#state.isKept(live, false)) throw startedError(this.name);
      return undefined;
    });
    let cancel: () => void = () => undefined;
    const limit = () => {
      cancel = this.#state.host.clock.after(Math.min(LONGEST_MS, limitMs), () => {
        isLate = this.#state.host.order.waitsFor(this.name).length === 0;
        if (isLate) this.#state.moved();
        else limit(); // its turn has not come
      });
    };
    limit();
    this.#state.loop.request();
    try {
      await done;
    } finally {
      cancel();
    }
  }

  async restart(why: string | null): Promise<ServiceStatus> {
    this.#checkOpen();
    const before = this.#state.live;
    if (this.#state.goal !== 'up' || before === null) return this.start();
    if (this.#state.spec === null) throw waitingError(this.name, 'restart'); // nobody could start it again
    this.#state.demands++;
    this.#state.restartWhy = why;
    this.#state.generation = Math.max(this.#state.generation, before.generation + 1);
    this.#state.loop.request();
    try {
      return await this.#untilStarted(before, true);
    } catch (error) {
      const isUndone = error === this.#state.failure && this.#state.live === before;
      if (isUndone && !before.isStopping) this.#state.generation = before.generation;
      throw error;
    }
  }

  /** @param isPaused `true`: from running to paused; `false`: back */
  async setPaused(isPaused: boolean): Promise<void> {
    this.#checkOpen();
    const [from, verb] = isPaused
      ? (['running', 'pause'] as const)
      : (['paused', 'resume'] as const);
    const live = this.#state.live;
    const wrong = () => phaseError(this.name, verb, this.#state.phase, from);
    if (this.#state.phase !== from || live === null) throw wrong();
    this.#state.wantsPaused = isPaused;
    live.moveError = null;
    this.#state.loop.request();
    await this.#state.waiters.until(() => {
      if (live.moveError !== null) throw live.moveError;
      if (this.#state.live !== live || live.exit !== null || live.isStopping) throw wrong();
      return live.isPaused === isPaused || undefined;
    });
  }

  status(): ServiceStatus {
    return this.#state.status();
  }

  onEnded(exit: ExitEvent, run: KeeperRun): void {
    const live = this.#state.live;
    if (live?.stored.id !== run.id || live.exit !== null) return;
    live.exit = exit;
    live.livedMs = run.livedMs;
    this.#state.loop.wake();
  }

  onNotify(run: KeeperRun, text: string): void {
    if (this.#state.live?.stored.id === run.id) this.#state.live.health?.onNotify(text);
  }

  /** Its keeper is another one, or was away. */
  resync(): void {
    this.#state.seeHealth();
    this.#state.loop.wake();
  }

  /** Its keeper is open. */
  adopt(): void {
    this.#steps.adopt();
  }

  begin(): void {
    this.#state.loop.request();
  }

  /** Leaves everything as it is. What is under way does nothing more. */
  abandon(): void {
    this.#state.loop.end();
    this.#state.live?.health?.end();
    this.#state.live?.control.abort();
    this.#state.waiters.rejectAll(closedError());
  }

  async #untilStarted(before: LiveRun | null, isOther = false): Promise<ServiceStatus> {
    const { failure } = this.#state;
    return this.#state.waiters.until(() => {
      if (this.#state.goal === 'gone' && !this.isLeaving) return undefined; // the next one of this name
      if (this.#state.goal !== 'up') throw stoppedError(this.name);
      const live = this.#state.live;
      if (live === null && this.#state.spec === null) throw waitingError(this.name, 'start');
      if (live?.isStarted === true && (live !== before || this.#state.isKept(live, isOther))) {
        return this.status();
      }
      if (this.#state.failure !== failure && this.#state.failure !== null)
        throw this.#state.failure;
      return undefined;
    });
  }

  #checkOpen(): void {
    if (this.isLeaving) throw noService(this.name);
    if (this.#state.isAbandoned) throw closedError();
  }
}
