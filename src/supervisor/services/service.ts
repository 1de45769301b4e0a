import {
  LONGEST_MS,
  checkInteger,
  checkOneOf,
  checkOptionNames,
  invalidOption,
} from '../../common/options.js';

import type { ServiceStatus } from './service-events.js';
import type { ServiceSpec } from './service-spec.js';
import type { ServiceWorker } from './service-worker.js';

/**
 * How one service is stopped.
 *
 * @see [Services](../../../docs/services.md)
 */
export type StopServiceOptions = {
  /** Of all of the stop, in ms, instead of that of the service. A stop that is under way only gets shorter by it. */
  graceMs?: number;
  /**
   * How long it stays stopped: until somebody starts it (default), until the next boot, or for as long as this
   * supervisor lives, as by `stopAll()`. One that lasts longer holds.
   */
  until?: 'start' | 'reboot' | 'close';
  /** On whose behalf, or what for; it is on record, and in `decision.because`. */
  why?: string;
};

/**
 * How one service is restarted.
 *
 * @see [Services](../../../docs/services.md)
 */
export type RestartServiceOptions = {
  /** On whose behalf, or what for; it is on record, and in `decision.because`. */
  why?: string;
};

/**
 * @see [Services](../../../docs/services.md)
 */
export type RestartedService = {
  name: string;
  /** `null`: it did not run. */
  oldPid: number | null;
  newPid: number | null;
};

/**
 * A service of a {@link Supervisor}, by its name.
 *
 * All methods reject with an `ExitwatchError` `ERR_EXITWATCH_NO_SERVICE` if it was removed, `…_CLOSED` if
 * the supervisor was closed, and `…_STATE_DIR` if what you ask cannot be stored; only an attempt to start
 * is made again by itself then.
 *
 * @see [Services](../../../docs/services.md)
 */
export class Service {
  readonly name: string;
  readonly #worker: () => ServiceWorker;

  /** @internal */
  constructor(name: string, worker: () => ServiceWorker) {
    this.name = name;
    this.#worker = worker;
  }

  /**
   * Starts it, if it does not run, and ends a `stop()`. Resolves when its command was executed.
   *
   * Rejects also with the error of the attempt, such as `ERR_EXITWATCH_START_FAILED`; further attempts
   * follow. And with `…_ABORTED` if it is stopped in the meantime.
   */
  async start(): Promise<ServiceStatus> {
    return this.#worker().start();
  }

  /**
   * Stops it for good: until `start()`, also if the supervisor is restarted in between. Resolves when
   * nothing of its run is left.
   *
   * Rejects also with `ERR_EXITWATCH_INVALID_OPTION`, and with `…_TIMEOUT` after 10 s or 1.5 times the
   * grace; the stop goes on. And with `…_ABORTED` if it is started before its stop has begun.
   */
  async stop(options: StopServiceOptions = {}): Promise<ServiceStatus> {
    checkOptionNames(options, ['graceMs', 'until', 'why']);
    const { graceMs, until = 'start', why } = options;
    checkWhy(why);
    if (graceMs !== undefined) checkInteger('graceMs', graceMs, 0, LONGEST_MS);
    checkOneOf('until', until, ['start', 'reboot', 'close']);
    const worker = this.#worker();
    await worker.stop(graceMs, until, why);
    return worker.status();
  }

  /** Stops its run and starts another one; or starts it. Resolves when the new one has begun. */
  async restart(options: RestartServiceOptions = {}): Promise<RestartedService> {
    const { why } = checkOptionNames(options, ['why']) as RestartServiceOptions;
    checkWhy(why);
    const worker = this.#worker();
    const { pid: oldPid } = worker.status();
    const { pid: newPid } = await worker.restart(why ?? null);
    return { name: this.name, oldPid, newPid };
  }

  /**
   * Stops all its processes where they are.
   *
   * Rejects also with `ERR_EXITWATCH_WRONG_PHASE` unless it is running.
   */
  async pause(): Promise<void> {
    await this.#worker().setPaused(true);
  }

  /**
   * Lets them go on.
   *
   * Rejects also with `ERR_EXITWATCH_WRONG_PHASE` unless it is paused.
   */
  async resume(): Promise<void> {
    await this.#worker().setPaused(false);
  }

  /**
   * What was applied last, without what `redact` took.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_NO_SERVICE`
   */
  spec(): ServiceSpec {
    return this.#worker().spec;
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_NO_SERVICE` */
  status(): ServiceStatus {
    return this.#worker().status();
  }
}

const MOST_WHY = 1000;

function checkWhy(why: unknown): void {
  if (why === undefined || (typeof why === 'string' && why.length <= MOST_WHY)) return;
  throw invalidOption(`why must be a text of at most ${MOST_WHY} characters`);
}
