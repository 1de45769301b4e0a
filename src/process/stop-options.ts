import {
  checkAbortSignal,
  checkMilliseconds,
  checkOptionNames,
  invalidOption,
} from '../common/options.js';
import { signalNumber, type SignalName } from '../events/wait-status.js';

import { IntentLog, type ControlName, type IntentRecorder } from './intent-log.js';
import type { StopWait } from './stop-wait.js';

/** One call that asks a process to end. */
export interface ControlStep {
  /** Its name in the intent log. */
  what: ControlName;
  /** It is given a signal that is aborted when nobody waits for it any more. */
  call: (signal: AbortSignal) => Promise<unknown>;
  /** How long its answer, and then the end, may take: in ms. */
  timeoutMs: number;
}

/** Options of {@link stop}. */
export interface StopOptions {
  /**
   * Tried first: any call that asks the process to end (a VM's control socket, an HTTP request), or
   * several, one after the other. Where one rejects, or has not answered after `forceKillAfterDelayMs`,
   * the next step follows; its answer counts for nothing, only the process's end does. It is given a signal
   * that is aborted when nobody waits for it any more.
   */
  control?: ((signal: AbortSignal) => Promise<unknown>) | readonly ControlStep[];
  /**
   * Asks the process to end: `'SIGTERM'`. `'SIGKILL'`: nothing is asked. `false`: there are the control calls,
   * and no signal follows; not with `tree`.
   */
  killSignal?: SignalName | false;
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
  intentLog?: string | IntentRecorder;
  /** For the intent log. */
  reason?: string;
  /**
   * Stops all that belongs to the process, too, and resolves when all of it is gone: what its cgroup (v2)
   * holds, if that holds nobody else; and its descendants, its session if it leads one, its group if it
   * leads that. Control calls concern the process alone. Only on Linux.
   */
  tree?: boolean;
  /**
   * Called each time that something was done, and the end is waited for: to show it to somebody. Those
   * who join a stop that is under way are not told.
   */
  onWait?: (wait: StopWait) => void;
  /** Init, or this process, is meant indeed. */
  force?: boolean;
  /**
   * Ends the waiting, not the process: what was sent was sent. When everybody who waits for one process
   * has given up, no further step follows.
   */
  signal?: AbortSignal;
}

export interface CheckedStopOptions {
  controls: readonly ControlStep[];
  killSignal: SignalName | false;
  forceKillAfterDelayMs: number | false;
  confirmTimeoutMs: number;
  pidfile: string | undefined;
  intentLog: IntentRecorder | undefined;
  /** Closes it, if it was opened for this. */
  release: () => Promise<void>;
  reason: string | null;
  tree: boolean;
  onWait: ((wait: StopWait) => void) | undefined;
  force: boolean;
  signal: AbortSignal | undefined;
}

const NAMES = [
  ...(['control', 'killSignal', 'forceKillAfterDelayMs', 'confirmTimeoutMs', 'pidfile'] as const),
  ...(['intentLog', 'reason', 'tree', 'onWait', 'force', 'signal'] as const),
] satisfies (keyof StopOptions)[];

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkStopOptions(options: StopOptions): CheckedStopOptions {
  checkOptionNames(options, NAMES);
  const {
    control,
    killSignal = 'SIGTERM',
    forceKillAfterDelayMs = 5000,
    confirmTimeoutMs = 5000,
    pidfile,
    intentLog,
    reason = null,
    tree = false,
    onWait,
    force = false,
    signal,
  } = options;
  if (control !== undefined && typeof control !== 'function' && !Array.isArray(control))
    throw invalidOption('control is a function');
  if (killSignal !== false && (typeof killSignal !== 'string' || signalNumber(killSignal) <= 0)) {
    throw invalidOption(`killSignal is the name of a signal, not ${JSON.stringify(killSignal)}`);
  }
  const isUncontrolled = control === undefined || (Array.isArray(control) && control.length === 0);
  if (killSignal === false && isUncontrolled)
    throw invalidOption('without a signal it takes a control call');
  if (killSignal === false && tree) throw invalidOption('a tree is not stopped without a signal');
  if (pidfile !== undefined && typeof pidfile !== 'string')
    throw invalidOption('pidfile is a path');
  if (reason !== null && typeof reason !== 'string') throw invalidOption('reason is a text');
  if (typeof tree !== 'boolean') throw invalidOption('tree is true or false');
  if (onWait !== undefined && typeof onWait !== 'function')
    throw invalidOption('onWait is a function');
  if (typeof force !== 'boolean') throw invalidOption('force is true or false');
  checkAbortSignal(signal);
  const killAfterMs =
    forceKillAfterDelayMs === false
      ? false
      : checkMilliseconds('forceKillAfterDelayMs', forceKillAfterDelayMs);
  const confirmMs = checkMilliseconds('confirmTimeoutMs', confirmTimeoutMs);
  const log = typeof intentLog === 'string' ? new IntentLog(intentLog) : undefined;
  return {
    controls: controlSteps(control, killAfterMs === false ? confirmMs : killAfterMs),
    killSignal,
    forceKillAfterDelayMs: killAfterMs,
    confirmTimeoutMs: confirmMs,
    pidfile,
    intentLog: log ?? recorder(intentLog),
    release: async () => log?.close(),
    reason,
    tree,
    onWait,
    force,
    signal,
  };
}

function recorder(log: unknown): IntentRecorder | undefined {
  if (log === undefined) return undefined;
  const { append, settle } = (log ?? {}) as Partial<IntentRecorder>;
  if (typeof append === 'function' && typeof settle === 'function') return log as IntentRecorder;
  throw invalidOption('intentLog is a path, or an IntentLog');
}

function controlSteps(control: StopOptions['control'], timeoutMs: number): readonly ControlStep[] {
  if (control === undefined) return [];
  return typeof control === 'function' ? [{ what: 'control', call: control, timeoutMs }] : control;
}
