import { ExitwatchError } from '../common/errors.js';
import type { SignalName } from '../events/wait-status.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { signalProcess } from './process-signal.js';
import { resolveTarget, type ProcessTarget } from './target.js';

/** What became of a signal. */
export type Sent = {
  /** `'requested'`: it was sent, which says nothing of what follows. */
  outcome: 'requested' | 'already-gone';
  /** Whom it concerned; `null` if nobody had that pid. */
  identity: ProcessIdentity | null;
  /**
   * Nothing could come between the look at the process and the signal. `false` where there are no
   * pidfds: its pid may have become another's in between.
   */
  isAtomic: boolean;
};

/**
 * Asks a process to end, with SIGTERM; on Windows it ends it. It says nothing of whether it will:
 * {@link stop} does.
 *
 * Rejects with an {@link ExitwatchError}, and signals nobody: `ERR_EXITWATCH_NOT_VERIFIED` if the process
 * that has the pid does not run the executable, `…_THREAD`, `…_KERNEL_THREAD`, `…_INVALID_PID`,
 * `…_INVALID_IDENTITY`, `…_INVALID_OPTION`, `…_REFUSED`, `…_NOT_PERMITTED`, `…_NO_PROC`, `…_SYSTEM`.
 *
 * @param options `force`: init, or this process, is meant indeed
 */
export function terminate(target: ProcessTarget, options: { force?: boolean } = {}): Promise<Sent> {
  return send(target, 'SIGTERM', options);
}

/** Ends a process, with SIGKILL. Otherwise as {@link terminate}. */
export function kill(target: ProcessTarget, options: { force?: boolean } = {}): Promise<Sent> {
  return send(target, 'SIGKILL', options);
}

// eslint-disable-next-line @typescript-eslint/require-await -- what it throws, callers await
async function send(
  target: ProcessTarget,
  signal: SignalName,
  { force = false }: { force?: boolean },
): Promise<Sent> {
  const identity = resolveTarget(target);
  if (identity === null) return { outcome: 'already-gone', identity, isAtomic: true };
  refuseOurselves(identity.pid, force);
  const { liveness, isAtomic } = signalProcess(identity, signal);
  if (liveness === 'unknown') throw notVerified(identity);
  return { outcome: liveness === 'alive' ? 'requested' : 'already-gone', identity, isAtomic };
}

/** @throws ExitwatchError `ERR_EXITWATCH_REFUSED` */
export function refuseOurselves(pid: number, force: boolean): void {
  if (force || (pid !== 1 && pid !== process.pid)) return;
  const who = pid === 1 ? 'init' : 'this very process';
  throw new ExitwatchError('ERR_EXITWATCH_REFUSED', `process ${pid} is ${who}`, {
    remedy: 'if it is meant, pass `force: true`',
  });
}

/** Which process it is could not be found out. */
export function notVerified({ pid }: ProcessIdentity): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_NOT_VERIFIED',
    `whether process ${pid} is the one that is meant cannot be found out from here`,
  );
}
