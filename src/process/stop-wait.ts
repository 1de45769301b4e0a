import { emitSafely } from '../common/emit-safely.js';
import type { SignalName } from '../events/wait-status.js';
import { processTable } from '../identity/platform-table.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

/**
 * What {@link stop} waits for after a step.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export type StopWait = {
  /** The step that was taken. */
  via: 'control' | 'signal' | 'kill';
  /** The processes that still exist; the process to stop comes first, if it is among them. */
  waitingFor: { identity: ProcessIdentity; name: string | null }[];
  /** The next step if they have not exited after `inMs`; `null`: none, stop() gives up. */
  next: 'control' | SignalName | null;
  /** In ms. */
  inMs: number;
};

/** Calls the listener; if it throws, the error becomes an uncaught exception and stops nothing. */
export function tell(onWait: ((wait: StopWait) => void) | undefined, wait: StopWait): void {
  emitSafely(() => onWait?.(wait));
}

/** The step that follows `via`; `controls` is the number of control calls left. */
export function nextStep(
  via: StopWait['via'],
  controls: number,
  options: { killSignal: SignalName | false; forceKillAfterDelayMs: number | false },
): StopWait['next'] {
  if (via === 'control') return controls > 0 ? 'control' : options.killSignal || null;
  return via === 'signal' && options.forceKillAfterDelayMs !== false ? 'SIGKILL' : null;
}

/** The kernel's name of a process; `null` if it is gone or hidden. */
export function nameOf({ pid }: ProcessIdentity): string | null {
  try {
    const lookup = processTable().lookNow(pid);
    return lookup === null || lookup === 'unknown' ? null : lookup.name;
  } catch {
    return null;
  }
}
