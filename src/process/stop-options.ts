import { ExitwatchError } from '../errors.js';
import { signalNumber, type SignalName } from '../wait-status.js';

import { IntentLog } from './intent-log.js';

/** Options of {@link stop}. */
export interface StopOptions {
  /**
   * Tried first: any call that asks the process to end (a VM's control socket, an HTTP request). Where
   * it rejects, or has not answered after `forceKillAfterDelayMs`, the signal follows; its answer counts
   * for nothing, only the process's end does. It is given a signal that is aborted when nobody waits for
   * it any more.
   */
  control?: (signal: AbortSignal) => Promise<unknown>;
  /** Asks the process to end: `'SIGTERM'`. `'SIGKILL'`: nothing is asked. */
  killSignal?: SignalName;
  /**
   * How long the control call, and then the signal, may take before the next step: in ms, 5,000. `false`:
   * no SIGKILL follows; the signal then has `confirmTimeoutMs`.
   */
  forceKillAfterDelayMs?: number | false;
  /** How long the end may take after the last step: in ms, 5,000. */
  confirmTimeoutMs?: number;
  /** Removed as soon as the process is known to be gone, unless it names another by then. */
  pidfile?: string;
  /** Where every step is written down before it is done: a path, or a log that is open. */
  intentLog?: string | IntentLog;
  /** For the intent log. */
  reason?: string;
  /** Init, or this process, is meant indeed. */
  force?: boolean;
  /**
   * Ends the waiting, not the process: what was sent was sent. When everybody who waits for one process
   * has given up, no further step follows.
   */
  signal?: AbortSignal;
}

export interface CheckedStopOptions {
  control: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  killSignal: SignalName;
  forceKillAfterDelayMs: number | false;
  confirmTimeoutMs: number;
  pidfile: string | undefined;
  intentLog: IntentLog | undefined;
  /** It was opened for this. */
  ownsIntentLog: boolean;
  reason: string | null;
  force: boolean;
  signal: AbortSignal | undefined;
}

/** setTimeout() takes no more. */
const LONGEST_MS = 2 ** 31 - 1;

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkStopOptions(options: StopOptions): CheckedStopOptions {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw invalid('options are an object');
  }
  const {
    control,
    killSignal = 'SIGTERM',
    forceKillAfterDelayMs = 5000,
    confirmTimeoutMs = 5000,
    pidfile,
    intentLog,
    reason = null,
    force = false,
    signal,
    ...unknown
  } = options;
  const [stranger] = Object.keys(unknown);
  if (stranger !== undefined) throw invalid(`there is no option ${JSON.stringify(stranger)}`);
  if (control !== undefined && typeof control !== 'function')
    throw invalid('control is a function');
  if (typeof killSignal !== 'string' || signalNumber(killSignal) <= 0) {
    throw invalid(`killSignal is the name of a signal, not ${JSON.stringify(killSignal)}`);
  }
  if (pidfile !== undefined && typeof pidfile !== 'string') throw invalid('pidfile is a path');
  if (reason !== null && typeof reason !== 'string') throw invalid('reason is a text');
  if (typeof force !== 'boolean') throw invalid('force is true or false');
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalid('signal is an AbortSignal');
  }
  return {
    control,
    killSignal,
    forceKillAfterDelayMs:
      forceKillAfterDelayMs === false
        ? false
        : milliseconds('forceKillAfterDelayMs', forceKillAfterDelayMs),
    confirmTimeoutMs: milliseconds('confirmTimeoutMs', confirmTimeoutMs),
    pidfile,
    intentLog: openLog(intentLog),
    ownsIntentLog: typeof intentLog === 'string',
    reason,
    force,
    signal,
  };
}

function openLog(log: unknown): IntentLog | undefined {
  if (log === undefined || log instanceof IntentLog) return log;
  if (typeof log === 'string') return new IntentLog(log);
  throw invalid('intentLog is a path, or an IntentLog');
}

function milliseconds(name: string, value: unknown): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= LONGEST_MS) {
    return value as number;
  }
  throw invalid(`${name} is an integer from 0 to ${LONGEST_MS}`);
}

function invalid(message: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_INVALID_OPTION', message);
}
