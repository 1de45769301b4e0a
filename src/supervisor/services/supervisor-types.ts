import type { ExitwatchError } from '../../common/errors.js';
import type { Downgrade } from '../../events/exit-event.js';
import type { ExitMonitor } from '../../monitor/exit-monitor.js';

import type { Clock } from './clock.js';
import type { Applied } from './desired-set.js';
import type { Judge } from './restart-policy.js';
import type { ServiceSpec } from './service-spec.js';

/**
 * @see [Services](../../../docs/services.md)
 */
export type SupervisorOptions = {
  /** A folder that is this program's alone. Who opens it later finds the same services. */
  stateDir: string;
  /** A started monitor: it adds to each end who sent the signal, which `askedBy` requires. */
  monitor?: ExitMonitor;
  /**
   * Takes secrets out of a service before it is stored: returns what may be on disk. A service from
   * which it took something is not started again after a restart of the supervisor until it is applied.
   */
  redact?: (spec: ServiceSpec) => ServiceSpec;
  /** Who knows more of an end of a service than its exit; `null`: nobody does. @internal */
  judgeOf?: (spec: ServiceSpec) => Judge | null;
  /** @internal */
  clock?: Clock;
  /** As if there were no keeper for this system. @internal */
  withoutKeeper?: boolean;
};

/**
 * What {@link Supervisor.start} found.
 *
 * @see [Services](../../../docs/services.md)
 */
export type SupervisorReady = {
  /** The process of the keeper; `null`: there is none. */
  keeperPid: number | null;
  /** Of exitwatch; it may be older than this one. `null`: there is no keeper. */
  keeperVersion: string | null;
  /**
   * Why there is no keeper, and what to do about it. Then the services are plain children: they outlive
   * this program as well, but how they end afterwards is unknown, and options such as `user` and `logs`
   * are refused. `null`: there is one.
   */
  downgrade: Downgrade | null;
  /** The keeper is the first process of a container, and keeps this program alive. @internal */
  isGuarded: boolean;
  /** Services that run since before. */
  adopted: string[];
  /** Runs that nobody desires; they are stopped. */
  orphans: string[];
  /** What was applied at the start; `null`: what ran before runs on. */
  applied: Applied | null;
};

/**
 * @see [Services](../../../docs/services.md)
 */
export type StoppedAll = {
  stopped: string[];
  /** Those that could not be stopped; they are still listed, and their stop goes on. */
  errors: { name: string; error: ExitwatchError }[];
};
