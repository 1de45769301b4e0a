import { emitSafely } from '../common/emit-safely.js';
import type { SignalName } from '../events/wait-status.js';
import { processTable } from '../identity/platform-table.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

/** What is waited for, when something was done to a process that is to end. */
export type StopWait = {
  /** What was done. */
  via: 'control' | 'signal' | 'kill';
  /** Who is still there; the process that is to be stopped first, if it is. */
  waitingFor: { identity: ProcessIdentity; name: string | null }[];
  /** What follows if they have not ended after `inMs`; `null`: nothing, they are given up. */
  next: 'control' | SignalName | null;
  /** In ms. */
  inMs: number;
};

/** Calls a listener; what it throws surfaces as an uncaught exception, and keeps nothing from being done. */
export function tell(onWait: ((wait: StopWait) => void) | undefined, wait: StopWait): void {
  emitSafely(() => onWait?.(wait));
}

/** What follows on a step; `controls` is how many control calls are left. */
export function nextStep(
  via: StopWait['via'],
  controls: number,
  options: { killSignal: SignalName | false; forceKillAfterDelayMs: number | false },
): StopWait['next'] {
  if (via === 'control') return controls > 0 ? 'control' : options.killSignal || null;
  return via === 'signal' && options.forceKillAfterDelayMs !== false ? 'SIGKILL' : null;
}

/** The kernel's name of a process; `null`: it has ended, or is hidden. */
export function nameOf({ pid }: ProcessIdentity): string | null {
  try {
    const lookup = processTable().lookNow(pid);
    return lookup === null || lookup === 'unknown' ? null : lookup.name;
  } catch {
    return null;
  }
}
