import {
  checkAbortSignal,
  checkMilliseconds,
  checkOptionNames,
  invalidOption,
} from '../common/options.js';
import { signalNumber, type SignalName } from '../events/wait-status.js';

import { IntentLog, type ControlName, type IntentRecorder } from './intent-log.js';
import type { StopWait } from './stop-wait.js';

/**
 * A call that asks a process to exit.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export interface ControlStep {
  /** Its name in the intent log. */
  what: ControlName;
  /** The signal is aborted once the result is no longer needed. */
  call: (signal: AbortSignal) => Promise<unknown>;
  /** How long to wait for the answer, and then for the exit, in ms. */
  timeoutMs: number;
}

/** Options of {@link stop}. */
export interface StopOptions {
  /**
   * Tried first: a call that asks the process to exit (a VM's control socket, an HTTP request), or
   * several, one after the other. If one rejects, or has not answered after
   * `forceKillAfterDelayMs`, the next step follows. Only the exit counts, not the answer. The
   * signal is aborted once the result is no longer needed.
   */
  control?: ((signal: AbortSignal) => Promise<unknown>) | readonly ControlStep[];
  /**
   * The signal that asks the process to exit; default `'SIGTERM'`. `'SIGKILL'`: kills without
   * asking. `false`: only control calls, and no signal; cannot be combined with `tree`.
   */
  killSignal?: SignalName | false;
  /**
   * How long to wait after the control call, and again after the signal, before the next step, in
   * ms; default 5,000. `false`: no SIGKILL follows, and the signal gets `confirmTimeoutMs`.
   */
  forceKillAfterDelayMs?: number | false;
  /** How long to wait for the exit after the last step, in ms; default 5,000. */
  confirmTimeoutMs?: number;
  /**
   * Removed as soon as the process is known to be gone, unless it names another process by then.
   */
  pidfile?: string;
  /** Records every step before it is taken: a path, or an open log. */
  intentLog?: string | IntentRecorder;
  /** The reason to record in the intent log. */
  reason?: string;
  /**
   * Also stops everything that belongs to the process, and resolves when all of it is gone: its
   * descendants, its session if it leads one, its process group if it leads one, and its cgroup
   * (v2) if that contains nothing else. Control calls concern only the process itself. Linux only.
   */
  tree?: boolean;
  /**
   * Called each time after a step, before waiting for the exit, so that you can show progress.
   * Callers that join a running stop get no calls.
   */
  onWait?: (wait: StopWait) => void;
  /** Allow init, or this process itself. */
  force?: boolean;
  /**
   * When aborted, stops waiting; signals already sent stay sent. No further step follows once all
   * callers for this process have aborted.
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
  /** Closes the log if it was opened for this call. */
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
    throw invalidOption('control must be a function');
  if (killSignal !== false && (typeof killSignal !== 'string' || signalNumber(killSignal) <= 0)) {
    throw invalidOption(
      `killSignal must be the name of a signal, not ${JSON.stringify(killSignal)}`,
    );
  }
  const isUncontrolled = control === undefined || (Array.isArray(control) && control.length === 0);
  if (killSignal === false && isUncontrolled)
    throw invalidOption('killSignal: false requires a control call');
  if (killSignal === false && tree)
    throw invalidOption('tree cannot be combined with killSignal: false');
  if (pidfile !== undefined && typeof pidfile !== 'string')
    throw invalidOption('pidfile must be a path');
  if (reason !== null && typeof reason !== 'string') throw invalidOption('reason must be a string');
  if (typeof tree !== 'boolean') throw invalidOption('tree must be true or false');
  if (onWait !== undefined && typeof onWait !== 'function')
    throw invalidOption('onWait must be a function');
  if (typeof force !== 'boolean') throw invalidOption('force must be true or false');
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

/** Whether a stop that has run for `elapsedMs` will do all that is wanted, as soon as wanted. */
export function covers(
  running: CheckedStopOptions,
  elapsedMs: number,
  wanted: CheckedStopOptions,
): boolean {
  const leftMs = killsAfterMs(running) - elapsedMs;
  if (leftMs > killsAfterMs(wanted)) return false;
  if (leftMs < Infinity) return true;
  const isIncluded = ({ what }: ControlStep) => running.controls.some((each) => each.what === what);
  const { controls, killSignal } = wanted;
  return (killSignal === false || killSignal === running.killSignal) && controls.every(isIncluded);
}

/** How long it takes at most until SIGKILL is sent. */
function killsAfterMs({ controls, killSignal, forceKillAfterDelayMs }: CheckedStopOptions): number {
  const controlsMs = controls.reduce((sum, { timeoutMs }) => sum + timeoutMs, 0);
  if (killSignal === 'SIGKILL') return controlsMs;
  const never = killSignal === false || forceKillAfterDelayMs === false;
  return never ? Infinity : controlsMs + forceKillAfterDelayMs;
}

function recorder(log: unknown): IntentRecorder | undefined {
  if (log === undefined) return undefined;
  const { append, settle } = (log ?? {}) as Partial<IntentRecorder>;
  if (typeof append === 'function' && typeof settle === 'function') return log as IntentRecorder;
  throw invalidOption('intentLog must be a path or an IntentLog');
}

function controlSteps(control: StopOptions['control'], timeoutMs: number): readonly ControlStep[] {
  if (control === undefined) return [];
  return typeof control === 'function' ? [{ what: 'control', call: control, timeoutMs }] : control;
}
