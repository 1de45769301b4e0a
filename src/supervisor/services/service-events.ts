import type { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';

import type { RestartDecision } from './restart-policy.js';

/**
 * - `'waiting'`: secrets were taken out of what is stored of it; `apply()` it
 * - `'backoff'`: it is started at `nextStartAt`
 * - `'stopping'`: until nothing of its run is left
 * - `'stopped'`: by somebody who called `stop()` or `stopAll()`
 * - `'ended'`: its policy says that it is not started again
 * - `'failed'`: it was started `backoff.giveUpAfter` times in a row
 *
 * @see [Services](../../../docs/services.md)
 */
export type ServicePhase =
  | 'waiting'
  | 'starting'
  | 'running'
  | 'paused'
  | 'backoff'
  | 'stopping'
  | 'stopped'
  | 'ended'
  | 'failed';

/**
 * A service as it is now. Survives JSON.
 *
 * @see [Services](../../../docs/services.md)
 */
export type ServiceStatus = {
  name: string;
  phase: ServicePhase;
  /** The run's id; `null` if there is none. */
  run: string | null;
  pid: number | null;
  identity: ProcessIdentity | null;
  isReady: boolean;
  /** Why it is not ready yet, as its last check found; `null`: it is, it does not run, or nothing was found. */
  notReady: string | null;
  /** Who stopped it and what for, as far as they said; `null`: nobody has, or it was removed since. */
  stopped: ServiceStopRecord | null;
  /** When its process started; `null`: it does not run. */
  startedAt: Date | null;
  /** What runs is what was applied last. */
  isCurrent: boolean;
  /** It was removed, and goes away when nothing of it is left. */
  isRemoved: boolean;
  /** How often it was started again; a start that is only planned does not count yet. */
  restarts: number;
  /** Starts in a row without a healthy run. */
  attempts: number;
  /** How its last run ended; `null`: none has. */
  lastEnd: ServiceEnd | null;
  /** Why it could not be started the last time. */
  lastError: string | null;
  /** `null`: it is not waiting for a start. */
  nextStartAt: Date | null;
  /** The services that it waits for, to start after them or to be stopped after them. */
  waitsFor: string[];
  termination: Termination;
};

/**
 * A stop that lasts. See {@link Service.stop}.
 *
 * @see [Services](../../../docs/services.md)
 */
export type ServiceStopRecord = {
  until: 'start' | 'reboot';
  /** `null`: not known. */
  at: Date | null;
  why: string | null;
};

/**
 * @see [Services](../../../docs/services.md)
 */
export type ServiceEnd = {
  run: string;
  how: ExitEvent['how'];
  exitCode: number | null;
  signal: string | null;
  at: Date;
  reason: RestartDecision['reason'];
  because: string;
};

/**
 * Four facts about a stop, each of which stays true until the next start.
 *
 * @see [Services](../../../docs/services.md)
 */
export type Termination = {
  /** Somebody has asked for it. */
  requested: boolean;
  /** Nothing new is started. */
  started: boolean;
  /** Nothing runs. */
  terminated: boolean;
  /** What it has left is removed. */
  finished: boolean;
};

/**
 * A run of a service has begun, or was found running.
 *
 * @see [Services](../../../docs/services.md)
 */
export type ServiceRunEvent = {
  service: string;
  run: string;
  pid: number;
  identity: ProcessIdentity | null;
};

/**
 * The process of a service has ended. `name` is the kernel's name of the process, as in every
 * {@link ExitEvent}.
 *
 * @see [Services](../../../docs/services.md)
 */
export type ServiceExit = ExitEvent & { service: string; run: string; decision: RestartDecision };

/**
 * @see [Services](../../../docs/services.md)
 */
export type ServiceBackoff = {
  service: string;
  /** The number of the start that waits. */
  attempt: number;
  delayMs: number;
  nextStartAt: Date;
  because: string;
};

/**
 * @see [Services](../../../docs/services.md)
 */
export type ServiceStopped = { service: string; phase: ServicePhase | 'removed'; because: string };

/**
 * A run that nobody desires was found, and is stopped.
 *
 * @see [Services](../../../docs/services.md)
 */
export type OrphanEvent = { run: string; pid: number | null; identity: ProcessIdentity | null };

/**
 * Something went wrong that does not keep the supervisor from going on.
 *
 * @see [Services](../../../docs/services.md)
 */
export type SupervisorWarning = { service: string | null; error: ExitwatchError };

/**
 * The events of a {@link Supervisor}.
 *
 * @see [Services](../../../docs/services.md)
 */
export interface SupervisorEvents {
  started: [ServiceRunEvent];
  /** It runs since before we started. */
  adopted: [ServiceRunEvent];
  exit: [ServiceExit];
  backoff: [ServiceBackoff];
  ready: [ServiceRunEvent];
  /** It does not run, and is not started again by itself. */
  stopped: [ServiceStopped];
  orphan: [OrphanEvent];
  warning: [SupervisorWarning];
  close: [];
}
