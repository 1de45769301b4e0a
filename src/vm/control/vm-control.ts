import { invalidOption } from '../../common/options.js';
import { ExitwatchError } from '../../common/errors.js';
import { livenessOf, lookAt, type Liveness } from '../../process/liveness.js';
import { mayHaveStartedAfter, readPidfile, removePidfile } from '../../process/pidfile.js';
import { stop, type StopResult } from '../../process/stop.js';
import type { ControlStep, StopOptions } from '../../process/stop-options.js';
import type { ProcessTarget } from '../../process/target.js';
import { identify, type ProcessIdentity } from '../../identity/process-identity.js';

import type {
  VmControlOptions,
  VmControlStopOptions,
  VmProcess,
  VmRequestOptions,
  VmState,
  VmStopped,
} from './vm-control-options.js';
import type { VmDriver } from './vm-driver.js';

/** How long a guest may take to obey its power button. */
const POWERDOWN_MS = 60_000;

/** How long a hypervisor may take to exit after a request. */
const FORCE_OFF_MS = 5000;

/** A process as it was found, and where its pidfile is. */
interface Found {
  /** `null`: there is no pidfile. */
  target: ProcessTarget | null;
  pidfile: string | undefined;
  /** The pid may be another process's by now. */
  isDoubtful: boolean;
  /** The pidfile is only a number: perhaps of another pid namespace. */
  isNumber: boolean;
}

/**
 * State, stop and restart of a virtual machine, with any driver. It keeps nothing but pidfiles, so
 * a short-lived command can use it. The machine's processes decide whether it runs, not what its
 * hypervisor says. For why it ended, use a `VmMonitor`.
 *
 * @see [Stop and restart a machine](../../../docs/vm-control.md)
 */
export class VmControl {
  readonly #options: VmControlOptions;

  constructor(options: VmControlOptions) {
    this.#options = options;
  }

  /**
   * What the machine is doing. Removes a pidfile whose process is gone.
   *
   * Rejects as `readPidfile()` does, except for a missing pidfile.
   */
  async state(): Promise<VmState> {
    const warnings: string[] = [];
    const { process, companions = [], driver } = this.#options;
    const main = await look(process, warnings, driver);
    const others = await Promise.all(companions.map((each) => look(each, warnings)));
    let said: string | null = null;
    if (main !== 'dead' && driver !== undefined) {
      try {
        said = await driver.state();
      } catch (error) {
        warnings.push((error as Error).message);
      }
    }
    const all = [main, ...others];
    const isUnknown = all.includes('unknown');
    const state = all.includes('alive') ? 'running' : isUnknown ? 'unknown' : 'stopped';
    return { state, said, warnings };
  }

  /**
   * Presses the power button. If the hypervisor cannot be asked, or the guest does not obey,
   * SIGTERM and then SIGKILL follow, to this very process. Then stops the companions, even if the
   * hypervisor was gone before. Resolves when their exits were observed, or with
   * `outcome: 'timed-out'`.
   *
   * Rejects as {@link stop} of exitwatch/process and `readPidfile()` do: with
   * `ERR_EXITWATCH_NOT_VERIFIED` also if the pidfile is older than the process that it names.
   */
  stop(options: VmControlStopOptions = {}): Promise<VmStopped> {
    const { powerdownTimeoutMs = POWERDOWN_MS, forceKillAfterDelayMs = 5000, ...common } = options;
    const { driver } = this.#options;
    const call = (signal: AbortSignal) => driver?.powerDown(signal) ?? Promise.resolve();
    return this.#stop(common, {
      forceKillAfterDelayMs,
      ...(driver === undefined || powerdownTimeoutMs === 0
        ? {}
        : { control: [{ what: 'powerdown', call, timeoutMs: powerdownTimeoutMs }] }),
    });
  }

  /**
   * Makes the hypervisor exit at once, by SIGKILL if it must. Otherwise as {@link VmControl.stop}.
   */
  kill(options: Pick<VmControlStopOptions, 'reason' | 'onWait'> = {}): Promise<VmStopped> {
    const { driver } = this.#options;
    const call = (signal: AbortSignal) => driver?.forceOff(signal) ?? Promise.resolve();
    return this.#stop(options, {
      killSignal: 'SIGKILL',
      ...(driver === undefined
        ? {}
        : { control: [{ what: 'quit', call, timeoutMs: FORCE_OFF_MS }] }),
    });
  }

  /**
   * Presses the power button, and does no more: companions stay. Resolves when the exit was
   * observed, or with `outcome: 'timed-out'`.
   *
   * Rejects as {@link VmControl.stop} does, and as the driver if the hypervisor cannot be asked.
   */
  powerDown({ timeoutMs = POWERDOWN_MS, ...common }: VmRequestOptions = {}): Promise<StopResult> {
    return this.#request(common, {
      ...{ what: 'powerdown', timeoutMs },
      call: (signal) => this.#driver().powerDown(signal),
    });
  }

  /**
   * Makes the hypervisor exit at once, and does no more. Otherwise as {@link VmControl.powerDown}.
   */
  quit({ timeoutMs = FORCE_OFF_MS, ...common }: VmRequestOptions = {}): Promise<StopResult> {
    return this.#request(common, {
      ...{ what: 'quit', timeoutMs },
      call: (signal) => this.#driver().forceOff(signal),
    });
  }

  /**
   * Stops the machine, and calls `start` when all of its processes have exited, not before.
   *
   * Rejects as {@link VmControl.stop} does, and with `ERR_EXITWATCH_TIMEOUT` if one of them still
   * exists: then nothing is started.
   */
  async restart<T>(start: () => Promise<T>, options: VmControlStopOptions = {}): Promise<T> {
    const { companions, ...main } = await this.stop(options);
    const left = [main, ...companions].find(({ outcome }) => outcome === 'timed-out');
    if (left !== undefined) {
      throw new ExitwatchError(
        'ERR_EXITWATCH_TIMEOUT',
        `process ${left.identity?.pid ?? '?'} still exists, so the machine was not started again`,
      );
    }
    return start();
  }

  #driver(): VmDriver {
    const { driver } = this.#options;
    if (driver !== undefined) return driver;
    throw invalidOption('this method requires the driver option');
  }

  async #request(common: VmRequestOptions, step: ControlStep): Promise<StopResult> {
    this.#driver(); // throws before anything is written down
    const { process, driver } = this.#options;
    const how: StopOptions = { control: [step], killSignal: false };
    return stopOne(process, { ...how, ...this.#common(common) }, driver);
  }

  #common({ reason, onWait }: VmRequestOptions): StopOptions {
    const { intentLog } = this.#options;
    return {
      ...(intentLog === undefined ? {} : { intentLog }),
      ...(reason === undefined ? {} : { reason }),
      ...(onWait === undefined ? {} : { onWait }),
    };
  }

  async #stop(options: VmRequestOptions, how: StopOptions): Promise<VmStopped> {
    const { process, companions = [], driver } = this.#options;
    const common = this.#common(options);
    const main = await stopOne(process, { ...how, ...common }, driver);
    const rest = how.killSignal === undefined ? {} : { killSignal: how.killSignal };
    const others: StopResult[] = [];
    for (const each of companions) others.push(await stopOne(each, { ...rest, ...common }));
    return { ...main, companions: others };
  }
}

async function find(process: VmProcess): Promise<Found> {
  if ('identity' in process) {
    return { target: process.identity, pidfile: undefined, isDoubtful: false, isNumber: false };
  }
  const { pidfile, executable } = process;
  try {
    const { pid, identity } = await readPidfile(pidfile);
    const target = identity ?? { pid, executable };
    const found = identity === null ? identify(pid) : null;
    const isDoubtful = found !== null && mayHaveStartedAfter(found, pidfile);
    return { target, pidfile, isDoubtful, isNumber: identity === null };
  } catch (error) {
    const isMissing = error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_NO_PIDFILE';
    if (isMissing) return { target: null, pidfile, isDoubtful: false, isNumber: false };
    throw error;
  }
}

function doubt(pidfile: string): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_NOT_VERIFIED',
    `${JSON.stringify(pidfile)} is older than the process that it names: it belongs to another process, or the clock was set`,
    { remedy: 'write it with writePidfile(), or remove it if you do not need it' },
  );
}

/** No process here has the number in the pidfile, but the machine is there. */
async function isElsewhere({ isNumber }: Found, driver: VmDriver | undefined): Promise<boolean> {
  if (!isNumber || driver === undefined) return false;
  // A manager also answers for machines that do not run.
  return driver.state().then(
    (state) => !STOPPED.test(state),
    () => false,
  );
}

const STOPPED = /^(stopped|shut ?off|off|inactive|crashed)$/i;

function elsewhere(pidfile: string): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_NOT_VERIFIED',
    `${JSON.stringify(pidfile)} names no process here, but the hypervisor answers: it may run in another pid namespace`,
    { remedy: 'write it with writePidfile(), in this pid namespace' },
  );
}

async function look(process: VmProcess, warnings: string[], driver?: VmDriver): Promise<Liveness> {
  const found = await find(process);
  const { target, pidfile, isDoubtful } = found;
  if (target === null) return 'dead';
  const seen = lookAt(target);
  const { liveness } = seen;
  if (seen.liveness === 'unknown') warnings.push(seen.why.message);
  if (liveness === 'alive' && isDoubtful) {
    warnings.push(doubt(pidfile ?? '').message);
    return 'unknown';
  }
  if (liveness !== 'dead' || pidfile === undefined) return liveness;
  if (await isElsewhere(found, driver)) {
    warnings.push(elsewhere(pidfile).message);
    return 'unknown';
  }
  try {
    await removePidfile(pidfile, whoIs(target));
  } catch (error) {
    warnings.push((error as Error).message);
  }
  return liveness;
}

function whoIs(target: ProcessTarget): number | ProcessIdentity {
  return typeof target === 'object' && 'executable' in target ? target.pid : target;
}

async function stopOne(
  process: VmProcess,
  options: StopOptions,
  driver?: VmDriver,
): Promise<StopResult> {
  const found = await find(process);
  const { target, pidfile, isDoubtful } = found;
  const isDead = target !== null && livenessOf(target) === 'dead';
  if (isDoubtful && target !== null && !isDead) throw doubt(pidfile ?? '');
  if (isDead && (await isElsewhere(found, driver))) throw elsewhere(pidfile ?? '');
  if (target !== null)
    return stop(target, { ...options, ...(pidfile === undefined ? {} : { pidfile }) });
  return {
    outcome: 'already-gone',
    via: null,
    exit: null,
    identity: null,
    endedBy: null,
    endedByUs: null,
    warnings: [],
  };
}
