import type { SignalName } from '../../events/wait-status.js';
import type { ProcessOptions } from '../keeper/run-options.js';

import type { BackoffOptions } from './backoff.js';
import type { AskedBy, RestartMode } from './restart-policy.js';

/**
 * A command that ends by itself. It runs as the supervisor's user.
 *
 * @see [Services](../../../docs/services.md)
 */
export type ServiceCommand = { command: string; args?: string[]; timeoutMs?: number };

/**
 * How a service is stopped: the control command, the signal, and SIGKILL for all that is left.
 *
 * @see [Services](../../../docs/services.md)
 */
export type ServiceStop = {
  /** Default `'SIGTERM'`. */
  signal?: SignalName;
  /** `'main'`: only its own process gets the signal, not those that it has started. Default `'tree'`. */
  ask?: 'tree' | 'main';
  /** How long it may take after the signal, in ms; default 5,000. 0 counts as 1. */
  graceMs?: number;
  /**
   * Runs before the signal, with `MAINPID` in its environment. The signal follows when it has ended or
   * its `timeoutMs` (default 5,000) has passed, unless the service is gone by then.
   */
  control?: ServiceCommand;
};

/**
 * When a service is ready. One of:
 * - `notify`: it sends `READY=1` as sd_notify(3) describes
 * - `http`: a GET of this URL is answered with a status below 400
 * - `tcp`: something accepts connections there
 * - `exec`: the command exits with 0
 * - `aliveMs`: it has lived so long
 *
 * @see [Services](../../../docs/services.md)
 */
export type ServiceReady = (
  | { notify: true }
  | { http: string }
  | { tcp: { host?: string; port: number } }
  | { exec: ServiceCommand }
  | { aliveMs: number }
) & {
  /** How often it is tried, in ms; default 1,000. */
  everyMs?: number;
  /** It is restarted if it is not ready after so many ms; default: never. */
  withinMs?: number;
};

/**
 * What a {@link Supervisor} keeps running. Plain JSON.
 *
 * @see [Services](../../../docs/services.md)
 */
export type ServiceSpec = ProcessOptions & {
  /** 1 to 75 of the characters A-Z, a-z, 0-9 and `._@-`, the first one no dot. */
  name: string;
  /** Variables that it gets in addition to `env`, or instead of those of the same name. */
  extraEnv?: Record<string, string>;
  /** Default `'unless-asked'`. */
  restart?: RestartMode;
  /** For `'on-failure'`; default `[0]`. */
  successExitCodes?: number[];
  /** For `'unless-asked'`: whose signals ask it to end. Default: nobody's. */
  askedBy?: AskedBy[];
  /** What follows an end of which that is not known; default `'restart'`. */
  onUnknown?: 'restart' | 'stay';
  backoff?: BackoffOptions;
  /**
   * The names of services that it starts after: each is ready then, or is not going to run. When both are
   * stopped, it is stopped before them.
   */
  after?: string[];
  stop?: ServiceStop;
  /** Default: as soon as it runs. */
  ready?: ServiceReady;
  /** It is restarted if it does not send `WATCHDOG=1` within so many ms; its WATCHDOG_USEC says so. */
  watchdog?: { withinMs: number };
};

/** What takes effect without another start. @internal */
const LIVE: readonly (keyof ServiceSpec)[] = [
  ...(['restart', 'successExitCodes', 'askedBy', 'onUnknown', 'backoff', 'after'] as const),
  'stop',
];

/** What a run depends on: if it differs, another run takes the place of this one. @internal */
export function runPart(spec: ServiceSpec): Partial<ServiceSpec> {
  const entries = Object.entries(spec).filter(([name]) => !LIVE.includes(name as never));
  return Object.fromEntries(entries);
}
