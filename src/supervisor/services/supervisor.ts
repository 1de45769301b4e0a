// One idea: the workers of all services, their common store and keeper, and what users call.
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

import { emitSafely } from '../../common/emit-safely.js';
import { asExitwatchError, ExitwatchError } from '../../common/errors.js';
import { checkOptionNames, checkPath, invalidOption } from '../../common/options.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { SignalName } from '../../events/wait-status.js';
import { newPromise, type PromiseWithResolvers } from '../../common/promise-with-resolvers.js';
import { Semaphore } from '../../common/semaphore.js';
import { isSameProcess, type ProcessIdentity } from '../../identity/process-identity.js';
import { Keeper } from '../keeper/keeper.js';
import type { KeeperRun } from '../keeper/keeper-run.js';
import { exitOf } from '../keeper/run-exit.js';

import { checkSpecs } from './check-spec.js';
import { type Clock, realClock } from './clock.js';
import { Contact, type SupervisorHealth } from './contact.js';
import { type Applied, DesiredSet } from './desired-set.js';
import { Gathering } from './gathering.js';
import { type OrphanHost, Orphans } from './orphans.js';
import { type KnownRun, PlainRuns } from './plain-runs.js';
import { listenToRuns } from './run-events.js';
import type { RunHost } from './run-host.js';
import { type RestartedService, Service } from './service.js';
import type { ServiceStatus, SupervisorEvents } from './service-events.js';
import { type Redact, type ServiceRecord, serviceOf } from './service-record.js';
import type { ServiceSpec } from './service-spec.js';
import { closedError, noService } from './service-errors.js';
import { type PendingApply, ServiceStore } from './service-store.js';
import type { WorkerHost } from './service-state.js';
import { ServiceWorker } from './service-worker.js';
import { StartOrder } from './start-order.js';
import { Counters, type SupervisorMetrics } from './supervisor-metrics.js';
import type { StoppedAll, SupervisorOptions, SupervisorReady } from './supervisor-types.js';

const REOPEN_MS = 1000;
const MOST_RESTARTS = 8;
const LOOK_MS = 50;
const MOST_LOOKS = 100;

type State = 'new' | 'starting' | 'started' | 'closed';

/**
 * Keeps services running by a keeper, which outlives this program: who opens the same directory later
 * goes on with the same processes.
 *
 * @see [Services](../../../docs/services.md)
 */
export class Supervisor extends EventEmitter<SupervisorEvents> {
  readonly #stateDir: string;
  #runs: RunHost;
  readonly #redact: Redact | undefined;
  readonly #withoutKeeper: boolean;
  readonly #judgeOf: NonNullable<SupervisorOptions['judgeOf']>;
  readonly #clock: Clock;
  readonly #workers = new Map<string, ServiceWorker>();
  readonly #order = new StartOrder(this.#workers);
  readonly #gathering: Gathering;
  readonly #contact: Contact;
  readonly #counters = new Counters();
  #store: ServiceStore | undefined;
  #desired: DesiredSet | undefined;
  #newest: readonly ServiceSpec[] = [];
  #applying: PromiseWithResolvers<Applied> | undefined;
  #state: State = 'new';
  readonly #orphans: Orphans;
  #cancelReopen: (() => void) | undefined;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(options: SupervisorOptions) {
    super();
    checkOptionNames(options, [
      'stateDir',
      'monitor',
      'redact',
      'judgeOf',
      'clock',
      'withoutKeeper',
    ]);
    const { stateDir, monitor, redact, clock = realClock } = options;
    const path = checkPath('stateDir', stateDir);
    if (path === undefined) throw invalidOption('stateDir is required');
    if (redact !== undefined && typeof redact !== 'function') {
      throw invalidOption('redact must be a function');
    }
    this.#stateDir = path;
    this.#redact = redact;
    this.#judgeOf = options.judgeOf ?? (() => null);
    this.#clock = clock;
    const keeperOptions = monitor === undefined ? { stateDir } : { stateDir, monitor };
    this.#runs = new Keeper(keeperOptions);
    this.#withoutKeeper = options.withoutKeeper === true;
    this.#contact = new Contact(() => this.#runs, clock);
    this.#orphans = new Orphans(this.#orphanHost());
    this.#gathering = new Gathering(clock, () => {
      this.#applyNow();
    });
  }

  /**
   * Goes on with what the directory has: adopts what runs, starts what should run, replays what was
   * accepted but not done, and stops what nobody desires.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_ALREADY_STARTED`; `…_IN_USE`; `…_STATE_DIR`
   * if a file there is of another version, and then changes nothing; `…_NO_KEEPER`, `…_KEEPER`,
   * `…_CLOSED`; `…_INVALID_OPTION` for services that are not valid.
   *
   * @param desired what shall run, as for {@link apply}, but before anything is started that was applied
   *   before: otherwise that runs first, after a boot for example. `null`: the same as before.
   * @param onBefore is called with what was applied before
   */
  async start(
    desired: readonly ServiceSpec[] | null = null,
    onBefore?: (services: readonly ServiceSpec[]) => void,
  ): Promise<SupervisorReady> {
    const specs = desired === null ? null : checkSpecs(desired);
    if (this.#state === 'closed') throw closedError();
    if (this.#state !== 'new') {
      throw new ExitwatchError('ERR_EXITWATCH_ALREADY_STARTED', 'the supervisor was started');
    }
    this.#state = 'starting';
    let store: ServiceStore | undefined;
    try {
      store = new ServiceStore(this.#stateDir);
      this.#store = store;
      const { records, pending } = store.load();
      onBefore?.(specsOf(records, pending));
      const host = this.#hostOf(store);
      for (const record of records) {
        this.#workers.set(record.name, new ServiceWorker(host, record, null));
      }
      const keeper = await this.#open(records);
      if (this.#isClosed) throw closedError();
      this.#desired = new DesiredSet(host, this.#workers, this.#redact);
      this.#state = 'started';
      this.#contact.begin();
      const adopted = this.#adopt();
      const applied = specs === null ? null : this.#desired.apply(specs);
      if (specs === null && pending !== null) this.#desired.replay(pending.services);
      const orphans = this.#orphans.begin();
      return { ...keeper, adopted, orphans, applied };
    } catch (error) {
      this.#contact.end();
      store?.close();
      for (const worker of this.#workers.values()) worker.abandon();
      this.#workers.clear();
      if (!this.#isClosed) this.#state = 'new';
      throw error;
    }
  }

  /**
   * What shall run from now on: all of it. Services that are equal are left alone, others are stopped,
   * started or replaced. The first call acts at once; later ones that come within 500 ms of each other
   * act as one, after 5 s at most. Resolves when what was applied last is on disk and has been begun.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_INVALID_OPTION`, and then changes nothing;
   * `…_STATE_DIR`; `…_CLOSED`.
   */
  async apply(services: readonly ServiceSpec[]): Promise<Applied> {
    this.#checkStarted();
    this.#newest = checkSpecs(services);
    this.#applying ??= newPromise<Applied>();
    const { promise } = this.#applying;
    this.#gathering.request();
    return promise;
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_NO_SERVICE` */
  service(name: string): Service {
    this.#worker(name);
    return new Service(name, () => this.#worker(name));
  }

  /** All services, also those that are being removed. */
  services(): ServiceStatus[] {
    return [...this.#workers.values()].map((worker) => worker.status());
  }

  /** Those that nobody has stopped and that have not ended for good. @internal */
  servicesUp(): ServiceStatus[] {
    return [...this.#workers.values()]
      .filter((worker) => worker.isUp)
      .map((worker) => worker.status());
  }

  /** Stops and starts every service that nobody has stopped and that has not ended for good. */
  async restartAll(): Promise<(RestartedService & { error: ExitwatchError | null })[]> {
    this.#checkStarted();
    const few = new Semaphore(MOST_RESTARTS);
    return Promise.all(
      this.servicesUp().map(({ name, pid }) =>
        few.run(async () => {
          try {
            return { ...(await this.service(name).restart()), error: null };
          } catch (error) {
            return { name, oldPid: pid, newPid: null, error: asExitwatchError(error) };
          }
        }),
      ),
    );
  }

  /**
   * Stops all services. They are started again by the next supervisor, by `apply()` or by their
   * `start()`.
   */
  async stopAll(options: { graceMs?: number } = {}): Promise<StoppedAll> {
    this.#checkStarted();
    const { graceMs } = checkOptionNames(options, ['graceMs']) as { graceMs?: number };
    this.#gathering.flush(); // what was asked before must not start anything after this
    const result: StoppedAll = { stopped: [], errors: [] };
    await Promise.all(
      [...this.#workers.values()].map(async (worker) => {
        const { name } = worker;
        try {
          await (worker.isLeaving ? worker.end(graceMs) : worker.stop(graceMs, 'close'));
          result.stopped.push(name);
        } catch (error) {
          result.errors.push({ name, error: asExitwatchError(error) });
        }
      }),
    );
    return result;
  }

  /**
   * Has the keeper become the one of the installed package; its processes go on.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_SYSTEM` if that cannot take over, and the old
   * one goes on; `…_NO_KEEPER`, `…_BUSY`, `…_KEEPER`, `…_CLOSED`.
   */
  async upgradeKeeper(): Promise<{ pid: number; version: string }> {
    this.#checkStarted();
    if (!(this.#runs instanceof Keeper)) throw noKeeper();
    const { pid, version } = await this.#runs.upgrade();
    return { pid, version };
  }

  /** Its keeper; `null`: there is none. @internal */
  get keeper(): { pid: number; version: string } | null {
    return this.#runs instanceof Keeper ? this.#runs.ready : null;
  }

  /**
   * Has `listener` called with each signal that the first process of a container gets, and was sent before
   * we came. @internal
   */
  async takeSignals(listener: (signal: SignalName) => void): Promise<void> {
    this.#checkStarted();
    if (!(this.#runs instanceof Keeper)) throw noKeeper();
    this.#runs.on('signal', listener);
    await this.#runs.takeSignals();
  }

  /** The container ends with this status when we have ended. @internal */
  async endWith(status: number): Promise<void> {
    this.#checkStarted();
    if (!(this.#runs instanceof Keeper)) throw noKeeper();
    await this.#runs.endWith(status);
  }

  /**
   * How a run ended that was not forgotten; `null`: it is none of ours, or that is not known.
   *
   * @internal
   */
  async exitOf(identity: ProcessIdentity): Promise<ExitEvent | null> {
    const isIt = ({ identity: own }: KeeperRun) => own !== null && isSameProcess(own, identity);
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      const run = this.#runs.runs().find(isIt);
      if (run?.state !== 'running') return run === undefined ? null : exitOf(run, true);
      await sleep(LOOK_MS); // its keeper has not told yet
    }
    return null;
  }

  /** Sends a signal to the process of a service. Resolves with `false` if it does not run. @internal */
  async signal(name: string, signal: SignalName): Promise<boolean> {
    const { run } = this.#worker(name).status();
    return run !== null && (await this.#runs.signal(run, signal));
  }

  /** See {@link Keeper.rotateLog}. Nothing is done if the service does not run. @internal */
  async rotateLog(name: string, file: string, keep: number | undefined): Promise<void> {
    const { run } = this.#worker(name).status();
    if (run !== null && this.#runs instanceof Keeper) await this.#runs.rotateLog(run, file, keep);
  }

  /** Plain numbers. */
  metrics(): SupervisorMetrics {
    const now = this.#clock.now();
    const writes = this.#store?.writes ?? 0;
    const counts = { ...this.#orphans.counts, writes };
    return this.#counters.metrics([...this.#workers.values()], now, counts);
  }

  /** Whether its keeper answers. Not healthy before `start()`. */
  health(): SupervisorHealth {
    return this.#contact.health();
  }

  /** Leaves everything running. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#state = 'closed';
    this.#gathering.cancel();
    this.#cancelReopen?.();
    this.#contact.end();
    this.#orphans.end();
    this.#applying?.reject(closedError());
    for (const worker of this.#workers.values()) worker.abandon();
    await this.#runs.close();
    this.#store?.close();
    process.nextTick(() => this.emit('close'));
  }

  get #isClosed(): boolean {
    return this.#state === 'closed';
  }

  #hostOf(store: ServiceStore): WorkerHost {
    const runs = () => this.#runs;
    return {
      get runs() {
        return runs();
      },
      store,
      clock: this.#clock,
      order: this.#order,
      judgeOf: this.#judgeOf,
      emit: (name, ...args) => {
        this.#tell(name, ...args);
      },
      countRestart: (reason) => {
        this.#counters.countRestart(reason);
      },
      countLatency: (ms) => {
        this.#counters.countLatency(ms);
      },
      onFinished: (name) => {
        this.#workers.delete(name);
        this.#order.onMoved(name);
      },
    };
  }

  #orphanHost(): OrphanHost {
    const runs = () => this.#runs;
    return {
      get runs() {
        return runs();
      },
      clock: this.#clock,
      isOwned: (id) => this.#ownerOf(id) !== null,
      onOrphan: (event) => {
        this.#tell('orphan', event);
      },
      onError: (error) => {
        this.#tell('warning', { service: null, error });
      },
    };
  }

  /** Opens the keeper, or does without if there is none for this system. */
  async #open(
    records: readonly ServiceRecord[],
  ): Promise<Omit<SupervisorReady, 'adopted' | 'orphans' | 'applied'>> {
    this.#listen();
    try {
      if (this.#withoutKeeper) throw noKeeper();
      const { pid, version, isGuard } = await this.#runs.open();
      return { keeperPid: pid, keeperVersion: version, isGuarded: isGuard, downgrade: null };
    } catch (error) {
      const { code, detail, remedy = null } = error as ExitwatchError;
      if (code !== 'ERR_EXITWATCH_NO_KEEPER') throw error;
      this.#runs = new PlainRuns(() => knownRuns(records));
      this.#listen();
      await this.#runs.open();
      const none = { keeperPid: null, keeperVersion: null, isGuarded: false };
      return { ...none, downgrade: { code, detail, remedy } };
    }
  }

  #listen(): void {
    listenToRuns(this.#runs, {
      ownerOf: (id) => this.#ownerOf(id),
      orphans: () => (this.#state === 'started' ? this.#orphans : null),
      onReopened: () => {
        this.#onReopened();
      },
      onLost: (error) => {
        this.#tell('warning', { service: null, error: asExitwatchError(error) });
        this.#reopenLater();
      },
    });
  }

  #onReopened(): void {
    for (const worker of this.#workers.values()) worker.resync();
    if (this.#state === 'started') this.#orphans.search();
  }

  /** There is no keeper for now, for example because no process can be started: tries for ever. */
  #reopenLater(): void {
    if (this.#isClosed) return;
    this.#cancelReopen = this.#clock.after(REOPEN_MS, () => {
      this.#runs.open().then(
        () => {
          this.#onReopened();
        },
        () => {
          this.#reopenLater();
        },
      );
    });
  }

  #adopt(): string[] {
    const adopted: string[] = [];
    for (const worker of this.#workers.values()) {
      worker.adopt();
      if (worker.status().pid !== null) adopted.push(worker.name);
    }
    return adopted;
  }

  /** `null`: it is no service's present run. */
  #ownerOf(id: string): ServiceWorker | null {
    const worker = this.#workers.get(serviceOf(id)?.name ?? '');
    return worker?.runId === id ? worker : null;
  }

  #worker(name: string): ServiceWorker {
    this.#checkStarted();
    const worker = this.#workers.get(name);
    if (worker === undefined) throw noService(name);
    return worker;
  }

  #applyNow(): void {
    const applying = this.#applying;
    this.#applying = undefined;
    if (this.#desired === undefined || applying === undefined) return;
    try {
      applying.resolve(this.#desired.apply(this.#newest));
    } catch (error) {
      applying.reject(error);
    }
  }

  #checkStarted(): void {
    if (this.#isClosed) throw closedError();
    if (this.#state !== 'started') throw invalidOption('call start() first');
  }

  #tell<Name extends keyof SupervisorEvents>(name: Name, ...args: SupervisorEvents[Name]): void {
    if (this.#isClosed) return;
    const emit = this.emit.bind(this) as (name: string, ...args: unknown[]) => boolean;
    emitSafely(() => emit(name, ...args));
  }
}

/** What was applied before, without what was removed. */
function specsOf(records: readonly ServiceRecord[], pending: PendingApply | null): ServiceSpec[] {
  const present =
    pending?.services ?? records.map(({ isRemoved, next, stored }) => (isRemoved ? next : stored));
  return present.flatMap((each) => (each === null ? [] : [each.spec]));
}

function knownRuns(records: readonly ServiceRecord[]): KnownRun[] {
  return records.flatMap(({ run }) =>
    run?.identity == null ? [] : [{ id: run.id, identity: run.identity }],
  );
}

function noKeeper(): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_NO_KEEPER', 'there is no keeper');
}
