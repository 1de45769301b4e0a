// One idea: a supervisor with its configuration, its stories and its socket, as one program.
import { existsSync, readdirSync } from 'node:fs';
import { EventEmitter } from 'node:events';
import { join, resolve } from 'node:path';

import { asExitwatchError, ExitwatchError } from '../common/errors.js';
import { makeFolder } from '../memory/state-folder.js';
import { ExitMonitor } from '../monitor/exit-monitor.js';
import type { Ready } from '../monitor/ready.js';
import { newPromise } from '../common/promise-with-resolvers.js';
import type { SignalName } from '../events/wait-status.js';
import { type Applied, Supervisor, type SupervisorReady } from '../supervisor/index.js';
import { keeperBinary } from '../supervisor/keeper/keeper-process.js';

import { Answers, type AnswersHost } from './answers.js';
import { ControlServer } from './control/control-server.js';
import type { AppliedConfig, SupervisorView } from './control/protocol.js';
import type { Config } from './config/check-config.js';
import { compareConfig } from './config/compare-config.js';
import { isConfigError, loadConfig } from './config/load-config.js';
import { endedRun } from './ends/service-story.js';
import { StoryStore } from './ends/story-store.js';
import { MachineJudge } from './machines/machine-judge.js';
import { LogCheck } from './log-check.js';
import { LogRotation } from './log-rotation.js';
import { MainService } from './main-service.js';
import { isMachine, type MachineFolders, machineFolders } from './machines/machine-spec.js';

export interface SupervisionOptions {
  /** The configuration. */
  config: string;
  /** Its own folder. */
  folder: string;
  /** For recorders. */
  pinDir: string | undefined;
  /** Takes the signals of the container that we are the supervisor of. */
  onSignal: (signal: SignalName) => void;
  version: string;
}

/** What was found at the start. */
export interface SupervisionReady {
  supervisor: SupervisorReady;
  /** `null`: there is no monitor. */
  monitor: Ready | null;
  /** How many services there are to be. */
  services: number;
}

export interface SupervisionEvents {
  /** Before the configuration is applied. */
  ready: [SupervisionReady];
  warning: [{ service: string | null; error: ExitwatchError }];
  applied: [AppliedConfig];
}

/** Keeps the services of a configuration running, and answers questions about them. */
export class Supervision extends EventEmitter<SupervisionEvents> {
  readonly supervisor: Supervisor;
  readonly #options: SupervisionOptions;
  readonly #stories: StoryStore;
  readonly #server: ControlServer;
  readonly #monitor: ExitMonitor;
  readonly #judge: MachineJudge;
  readonly #main: MainService;
  #judging: Promise<void> | undefined;
  #config: Config = { services: [], main: null };
  #configError: ExitwatchError | null = null;
  #warnings: string[] = [];
  #applying: Promise<unknown> = Promise.resolve();
  #isGuarded = false;
  /** Nothing starts any more. */
  #isEnding = false;
  readonly #opened = newPromise<undefined>();
  readonly #rotation: LogRotation;
  readonly #logCheck: LogCheck;

  /**
   * @throws ExitwatchError `ERR_EXITWATCH_NO_KEEPER`, `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR`; and
   *   the system's error if its folders cannot be made
   */
  constructor(options: SupervisionOptions) {
    super();
    const folder = resolve(options.folder);
    this.#options = { ...options, folder, config: resolve(options.config) };
    keeperBinary(); // what a configuration may ask for requires one
    makeFolder(join(folder, 'logs'));
    this.#stories = new StoryStore(join(folder, 'ends'));
    this.#main = new MainService(this.#stories);
    const { pinDir } = options;
    this.#monitor = new ExitMonitor({
      stateDir: join(folder, 'watches'),
      autoCommit: false, // who ended a run is known until what follows from it is on disk
      recorder: pinDir === undefined ? {} : { pinDir },
    });
    const machines = machineFolders(folder);
    makeFolder(machines.control);
    this.#judge = new MachineJudge(machines, pinDir, async (identity) => {
      await this.#opened.promise; // before, nobody knows
      return this.supervisor.exitOf(identity);
    });
    this.supervisor = new Supervisor({
      ...{ stateDir: folder, monitor: this.#monitor },
      judgeOf: (spec) =>
        isMachine(spec, machines)
          ? (exit, identity) => this.#judge.judge(spec.name, exit, identity)
          : null,
    });
    const warn = (service: string, error: ExitwatchError) => {
      this.emit('warning', { service, error });
    };
    this.#rotation = new LogRotation(this.supervisor, warn);
    this.#logCheck = new LogCheck(this.supervisor, warn);
    const answers = new Answers(this.#answersHost());
    this.#server = new ControlServer(folder, (name, question, peer) =>
      answers.of(name, question, peer),
    );
    this.#listen();
  }

  /**
   * Goes on with what the folder has. A configuration that cannot be used changes nothing: what was
   * applied before is what runs. Only where there was nothing before, it is an error.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_CONFIG`, and those of {@link Supervisor.start}.
   */
  async start(): Promise<void> {
    const config = await this.#load().catch((error: unknown) => {
      if (!isConfigError(error)) throw error;
      this.#configError = error;
      return null;
    });
    if (this.#configError !== null && !this.#hasServices()) throw this.#configError;
    this.#config = config ?? { services: [], main: this.#stories.life.main };
    const { main } = this.#config;
    const earlier = this.#main.lastAt(main); // before it may be found to have ended
    const monitor = await this.#startMonitor();
    const machines = machineFolders(this.#options.folder);
    // Those of before that have ended wait for it.
    const isNeeded = existsSync(machines.state) || hasMachine(config, machines);
    const judging = isNeeded ? this.#startJudge() : undefined;
    let plan = null as ReturnType<typeof compareConfig> | null;
    const supervisor = await this.supervisor
      .start(config?.services ?? null, (before) => {
        if (config !== null) plan = compareConfig(before, config.services);
      })
      .finally(() => {
        this.#opened.resolve(undefined);
      });
    for (const watch of monitor?.restored ?? []) {
      // Its run was forgotten.
      if (this.#monitor.takeRestored(watch) !== null) watch.close();
    }
    this.#isGuarded = supervisor.isGuarded;
    this.#store(() => {
      this.#main.begin(main, this.#isGuarded, earlier);
    }, null);
    // From now on our death is not the end of the container.
    if (this.#isGuarded) await this.supervisor.takeSignals(this.#options.onSignal);
    await judging;
    if (this.#configError !== null) {
      this.emit('warning', { service: null, error: this.#configError });
    }
    await this.#server.listen();
    this.#rotation.begin();
    this.#logCheck.begin();
    const services = (config?.services ?? this.supervisor.services()).length;
    this.emit('ready', { supervisor, monitor, services });
    if (plan !== null) this.emit('applied', withApplied(plan, supervisor.applied));
    this.#startMain();
  }

  /** Somebody who starts us again wants it to run again, unless we are only kept alive. */
  #startMain(): void {
    const { main } = this.#config;
    const status = this.supervisor.services().find(({ name }) => name === main);
    if (main === null || (status?.phase !== 'ended' && status?.phase !== 'failed')) return;
    if (this.#isGuarded) this.#main.end();
    // Not awaited: what it starts after may take its time. If it fails, a warning says why.
    else
      void this.supervisor
        .service(main)
        .start()
        .catch(() => undefined);
  }

  /** Reads the configuration again. Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_CONFIG`. */
  async apply(isDryRun = false): Promise<AppliedConfig> {
    const turn = this.#applying.then(async () => {
      if (isDryRun) return this.#compare(await this.#load());
      this.#checkNotEnding();
      try {
        const applied = await this.#apply(await this.#load());
        this.#configError = null;
        return applied;
      } catch (error) {
        if (isConfigError(error)) this.#configError = error;
        throw error;
      }
    });
    this.#applying = turn.catch(() => undefined);
    return turn;
  }

  #compare({ services }: Config): AppliedConfig {
    const before = this.supervisor
      .services()
      .filter(({ isRemoved }) => !isRemoved)
      .map(({ name }) => this.supervisor.service(name).spec());
    return { ...compareConfig(before, services), isDryRun: true };
  }

  #checkNotEnding(): void {
    if (!this.#isEnding) return;
    throw new ExitwatchError(
      'ERR_EXITWATCH_CLOSED',
      'the supervisor is ending: nothing is started',
    );
  }

  /** Resolves when the main service has ended for good. */
  get mainEnded(): Promise<undefined> {
    return this.#main.ended;
  }

  /** Whether there is a main service: then the others end with us. */
  get hasMain(): boolean {
    return this.#config.main !== null;
  }

  /** Whether we are in a container, and its first process keeps us alive. */
  get isGuarded(): boolean {
    return this.#isGuarded;
  }

  /** A signal that is not for us: HUP without a main service reads the configuration again. */
  async pass(signal: SignalName): Promise<void> {
    const { main } = this.#config;
    if (main !== null) await this.supervisor.signal(main, signal);
    else if (signal === 'SIGHUP') await this.apply();
  }

  /** Stops all services. Resolves with what to exit with. */
  async finish(): Promise<number> {
    this.#isEnding = true;
    const { errors } = await this.supervisor.stopAll();
    for (const { name, error } of errors) this.emit('warning', { service: name, error });
    const { status } = this.#main;
    if (this.#isGuarded) await this.supervisor.endWith(status);
    return status;
  }

  /** The services go on, unless they were stopped. */
  async close(): Promise<void> {
    this.#rotation.end();
    this.#logCheck.end();
    await this.#server.close();
    await this.supervisor.close();
    await this.#judge.close();
    await this.#monitor.close();
    this.#stories.close();
  }

  /** How many services run. */
  get running(): number {
    return this.supervisor.services().filter(({ pid }) => pid !== null).length;
  }

  /** What limits it, in sentences. */
  get warnings(): readonly string[] {
    return this.#warnings;
  }

  get configError(): ExitwatchError | null {
    return this.#configError;
  }

  /** Of before. */
  #hasServices(): boolean {
    const folder = join(this.#options.folder, 'services');
    return existsSync(folder) && readdirSync(folder).some((file) => file.endsWith('.json'));
  }

  #listen(): void {
    this.#monitor.on('error', (error) => {
      this.#warnings.push(`who ends a service is not known: ${error.message}`);
      this.emit('warning', { service: null, error: asExitwatchError(error) });
    });
    this.supervisor.on('exit', (exit) => {
      this.#store(() => {
        this.#stories.add(exit.service, endedRun(exit));
      }, exit.service);
    });
    this.supervisor.on('warning', ({ service, error }) => {
      this.emit('warning', { service, error });
      if (service === null || error.code !== 'ERR_EXITWATCH_START_FAILED') return;
      const { message } = error;
      this.#store(() => {
        const at = new Date();
        const times = { at, since: at, count: 1 };
        this.#stories.add(service, { event: 'start-failed', service, message, ...times });
      }, service);
      // What runs once is not tried again.
      const isMain = service === this.#config.main;
      if (isMain && this.supervisor.service(service).spec().restart === 'never') {
        this.#main.end();
      }
    });
    this.supervisor.on('stopped', ({ service, phase }) => {
      const isOver = phase === 'ended' || phase === 'failed';
      if (isOver && service === this.#config.main) this.#main.end();
      if (phase !== 'removed') return;
      this.#store(() => {
        this.#stories.remove(service);
      }, service);
    });
  }

  #store(write: () => void, service: string | null): void {
    try {
      write();
    } catch (error) {
      this.emit('warning', { service, error: asExitwatchError(error) });
    }
  }

  async #startMonitor(): Promise<Ready | null> {
    try {
      const ready = await this.#monitor.start();
      if (!ready.traced) {
        const why = ready.traceDowngrade?.detail ?? 'there is no signal trace';
        this.#warnings.push(`who ends a service is not known: ${why}`);
      }
      return ready;
    } catch (error) {
      const { message } = asExitwatchError(error);
      this.#warnings.push(`who ends a service is not known: ${message}`);
      return null;
    }
  }

  async #load(): Promise<Config> {
    return loadConfig(this.#options.config, this.#options.folder);
  }

  #use(config: Config): void {
    this.#config = config;
    this.#store(() => {
      this.#main.use(config.main);
    }, null);
  }

  /** Once, and only if there are machines. */
  async #startJudge(): Promise<void> {
    this.#judging ??= this.#judge.start((error, service) => {
      this.emit('warning', { service, error });
    });
    await this.#judging;
  }

  async #apply(config: Config): Promise<AppliedConfig> {
    const plan = this.#compare(config);
    if (hasMachine(config, machineFolders(this.#options.folder))) await this.#startJudge();
    this.#checkNotEnding(); // it may have begun in the meantime
    const before = this.#config;
    this.#use(config); // its main service may end before this resolves
    try {
      const result = withApplied(plan, await this.supervisor.apply(config.services));
      this.emit('applied', result);
      return result;
    } catch (error) {
      this.#use(before);
      throw error;
    }
  }

  #answersHost(): AnswersHost {
    const config = () => this.#config;
    return {
      ...{ supervisor: this.supervisor, stories: this.#stories },
      get config() {
        return config();
      },
      view: () => this.#view(),
      apply: (isDryRun) => this.apply(isDryRun),
      checkNotEnding: () => {
        this.#checkNotEnding();
      },
    };
  }

  #view(): SupervisorView {
    return {
      pid: process.pid,
      version: this.#options.version,
      config: this.#options.config,
      configError: this.#configError?.message ?? null,
      keeperPid: this.supervisor.keeper?.pid ?? null,
      keeperVersion: this.supervisor.keeper?.version ?? null,
      warnings: this.#warnings,
    };
  }
}

function withApplied(
  plan: Omit<AppliedConfig, 'isDryRun'>,
  applied: Applied | null,
): AppliedConfig {
  return { ...plan, ...applied, isDryRun: false };
}

function hasMachine(config: Config | null, folders: MachineFolders): boolean {
  return config?.services.some((spec) => isMachine(spec, folders)) === true;
}
