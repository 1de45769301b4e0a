import { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { ExitMonitor } from '../../monitor/exit-monitor.js';
import type { ExitWatch } from '../../monitor/exit-watch.js';
import type { Intent, IntentRecorder } from '../../process/intent-log.js';
import { isAlive } from '../../process/liveness.js';
import { isLeft, readPidfile } from '../../process/pidfile.js';
import { stop } from '../../process/stop.js';
import type { ControlStep } from '../../process/stop-options.js';
import { isSameProcess, startOf, type ProcessIdentity } from '../../identity/process-identity.js';
import { evidenceOf, wordsOf, type VmTestimony, type Words } from '../evidence/vm-evidence.js';
import type { VmRequests, VmRun, VmWitness } from '../evidence/vm-witness.js';
import { qemuWitness } from '../qemu/qemu-witness.js';
import { judge } from '../verdict/judge.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import type { VmOptions } from './vm-options.js';

/**
 * Options of {@link VmWatch.stop}; times in ms.
 *
 * @see [Why a virtual machine ended](../../../docs/virtual-machines.md)
 */
export interface VmStopOptions {
  /** How long the guest may take to obey its power button; 0: do not press it. Default: 60,000. */
  powerdownTimeoutMs?: number;
  /** How long the hypervisor may take to quit; 0: do not ask it. Default: 5,000. */
  quitTimeoutMs?: number;
  /** How long SIGTERM may take before SIGKILL follows. Default: 5,000. */
  forceKillAfterDelayMs?: number;
  /** For the intent log. */
  reason?: string;
}

/** Who knows how a process ended that nobody saw end, such as its parent; `null`: it does not. */
export type ExitOf = (identity: ProcessIdentity) => Promise<ExitEvent | null>;

/** What a watch gets from its monitor. */
export interface VmContext {
  monitor: ExitMonitor;
  recorder: IntentRecorder;
  readIntents: (since: Date) => Promise<readonly Intent[]>;
  exitOf: ExitOf;
  running(name: string): void;
  warning(error: Error, name: string): void;
  /** `null`: there is no verdict. */
  ended(watch: VmWatch, verdict: VmVerdict | null): void;
}

/** How often to read what a hypervisor writes, to leave little for the end. */
const CATCH_UP_MS = 30_000;

/** An older intent does not explain an end. */
const MATTERS_MS = 24 * 3_600_000;

/** The testimony if nothing was heard. */
const SILENCE: VmTestimony = { events: [], eventsComplete: false };

/**
 * One virtual machine under watch.
 *
 * @see [Why a virtual machine ended](../../../docs/virtual-machines.md)
 */
export class VmWatch {
  readonly name: string;
  /**
   * Why it ended. Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_CLOSED`, as reading its
   * pidfile does, and if it cannot be watched.
   */
  readonly stopped: Promise<VmVerdict>;
  /**
   * The same, with the times of the hypervisor's first and last event.
   *
   * @internal
   */
  readonly judged: Promise<{ verdict: VmVerdict; words: Words }>;
  readonly #options: VmOptions;
  readonly #context: VmContext;
  readonly #witnessOf: (run: VmRun) => VmWitness;
  #witness: VmWitness | undefined;
  #watch: ExitWatch | undefined;
  /** Aborts stop() in close(). */
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  readonly #armed: Promise<ExitWatch>;

  /** @internal */
  constructor(options: VmOptions, context: VmContext) {
    this.name = options.name;
    this.#options = options;
    this.#context = context;
    const { driver, identity } = options;
    this.#witnessOf =
      driver?.witness === undefined
        ? qemuWitness(options, identity === undefined || isAlive(identity) !== 'dead')
        : driver.witness.bind(driver);
    this.#armed = this.#arm();
    this.judged = this.#run();
    this.stopped = this.judged.then(({ verdict }) => verdict);
    // Rejections are for callers, if there are any.
    this.judged.catch(() => undefined);
    this.stopped.catch(() => undefined);
  }

  /** The process, once it is known. */
  get identity(): ProcessIdentity | null {
    return this.#watch?.identity ?? null;
  }

  /**
   * Ends it: presses its power button, then tells the hypervisor to quit, then sends SIGTERM, then
   * SIGKILL. Each step is on record before it is taken. Resolves with the verdict when the exit was
   * observed.
   *
   * Rejects as {@link stop} of exitwatch/process does, and with `ERR_EXITWATCH_TIMEOUT` if it
   * survives all that.
   */
  async stop(options: VmStopOptions = {}): Promise<VmVerdict> {
    const { identity } = await this.#armed;
    const { forceKillAfterDelayMs = 5000, reason } = options;
    const { pidfile } = this.#options;
    const result = await stop(identity, {
      control: this.#stepsOf(options),
      forceKillAfterDelayMs,
      intentLog: this.#context.recorder,
      signal: this.#closing.signal,
      ...(reason === undefined ? {} : { reason }),
      ...(pidfile === undefined ? {} : { pidfile }),
    });
    if (result.outcome === 'timed-out') {
      throw new ExitwatchError('ERR_EXITWATCH_TIMEOUT', `${this.name} still exists after SIGKILL`);
    }
    return this.stopped;
  }

  /** Stops watching; the machine keeps running. */
  close(): void {
    this.#isClosed = true;
    this.#closing.abort();
    this.#watch?.close();
    this.#release();
  }

  /**
   * Reads what its logs hold by now.
   *
   * @internal
   */
  async catchUp(): Promise<void> {
    try {
      await this.#witness?.catchUp?.();
    } catch (error) {
      this.#context.warning(error as Error, this.name);
    }
  }

  #stepsOf({ powerdownTimeoutMs = 60_000, quitTimeoutMs = 5000 }: VmStopOptions): ControlStep[] {
    // Without a driver, the witness's own connection is the only way to talk to it.
    const control: VmRequests | null = this.#options.driver ?? this.#witness?.control ?? null;
    // A request that cannot even be made must not be on record as made.
    if (control === null) return [];
    const steps: ControlStep[] = [
      {
        what: 'powerdown',
        call: (signal) => control.powerDown(signal),
        timeoutMs: powerdownTimeoutMs,
      },
      { what: 'quit', call: (signal) => control.forceOff(signal), timeoutMs: quitTimeoutMs },
    ];
    return steps.filter(({ timeoutMs }) => timeoutMs > 0);
  }

  /** Arms the watch: before the first await, if possible. */
  #arm(): Promise<ExitWatch> {
    const { pid, identity, pidfile } = this.#options;
    if (pidfile !== undefined && pid === undefined && identity === undefined) {
      return readPidfile(pidfile).then((found) => this.#watchProcess(found.identity ?? found.pid));
    }
    return Promise.resolve(this.#watchProcess(identity ?? pid ?? 0));
  }

  #watchProcess(target: number | ProcessIdentity): ExitWatch {
    this.#watch = this.#watchOf(target);
    if (this.#isClosed) this.#watch.close();
    const { identity } = this.#watch;
    this.#witness = this.#begin({
      name: this.name,
      identity,
      // By the clock as it is now, which may be set later.
      startedAt: startOf(identity),
      isThere: isAlive(identity) === 'alive',
      ready: () => {
        this.#context.running(this.name);
      },
      warning: (error) => {
        this.#context.warning(error, this.name);
      },
    });
    this.#timer = setInterval(() => void this.catchUp(), CATCH_UP_MS).unref();
    void this.catchUp();
    return this.#watch;
  }

  /** A full disk must not keep a machine from being watched. */
  #watchOf(target: number | ProcessIdentity): ExitWatch {
    const { monitor } = this.#context;
    try {
      return monitor.watch(target, { key: this.name });
    } catch (error) {
      const { code } = error as Partial<ExitwatchError>;
      if (code !== 'ERR_EXITWATCH_STATE_DIR' && code !== 'ERR_EXITWATCH_RECORDER_FULL') throw error;
      this.#context.warning(error as Error, this.name);
      return monitor.watch(target, { durable: false });
    }
  }

  /** `undefined`: the witness does not work. */
  #begin(run: VmRun): VmWitness | undefined {
    try {
      return this.#witnessOf(run);
    } catch (error) {
      run.warning(error as Error);
      return undefined;
    }
  }

  async #run(): Promise<{ verdict: VmVerdict; words: Words }> {
    let verdict: VmVerdict | null = null;
    try {
      const watch = await this.#armed;
      const judged = await this.#judge(await this.#exitOf(watch), watch.identity);
      verdict = judged.verdict;
      return judged;
    } finally {
      this.#release();
      this.#context.ended(this, verdict);
    }
  }

  /** What nobody saw, its parent may know. */
  async #exitOf({ exited, identity }: ExitWatch): Promise<ExitEvent> {
    const seen = await exited;
    if (seen.how !== 'unknown') return seen;
    const kept = await this.#context.exitOf(identity).catch(() => null);
    return kept === null ? seen : { ...kept, id: seen.id, isRepeated: seen.isRepeated };
  }

  #release(): void {
    clearInterval(this.#timer);
    this.#witness?.close();
  }

  /** Judges after the process has exited, when its hypervisor can say no more. */
  async #judge(
    exit: ExitEvent,
    identity: ProcessIdentity,
  ): Promise<{ verdict: VmVerdict; words: Words }> {
    const [testimony, intents] = await Promise.all([
      this.#testimony(exit),
      this.#intentsFor(identity, exit),
    ]);
    const pidfileIsLeft = isLeft(this.#options.pidfile ?? null);
    const evidence = evidenceOf({ name: this.name, exit, intents, pidfileIsLeft }, testimony);
    return { verdict: judge(evidence), words: wordsOf(evidence.events) };
  }

  async #testimony(exit: ExitEvent): Promise<VmTestimony> {
    try {
      return (await this.#witness?.testify(exit)) ?? SILENCE;
    } catch (error) {
      this.#context.warning(error as Error, this.name);
      return SILENCE;
    }
  }

  async #intentsFor(identity: ProcessIdentity, exit: ExitEvent): Promise<Intent[] | null> {
    try {
      const startedAt = startOf(identity)?.getTime() ?? 0;
      const since = new Date(Math.max(startedAt, exit.exitedAt.getTime() - MATTERS_MS));
      const intents = await this.#context.readIntents(since);
      return intents.filter((intent) => isSameProcess(intent.identity, identity));
    } catch (error) {
      this.#context.warning(error as Error, this.name);
      return null;
    }
  }
}
