import { ExitwatchError } from '../common/errors.js';
import type { SignalName } from '../events/wait-status.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { signalProcess } from './process-signal.js';
import { resolveTarget, type ProcessTarget } from './target.js';

/**
 * The result of sending a signal.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export type Sent = {
  /** `'requested'`: the signal was sent, which does not mean that the process exits. */
  outcome: 'requested' | 'already-gone';
  /** The process concerned; `null` if nothing had that pid. */
  identity: ProcessIdentity | null;
  /**
   * The check and the signal hit the same process. `false` if pidfds are not available: the pid may
   * have been reused in between.
   */
  isAtomic: boolean;
};

/**
 * Asks a process to exit with SIGTERM; on Windows this kills it. Does not wait for the exit:
 * {@link stop} does.
 *
 * Rejects with an {@link ExitwatchError} and sends nothing: `ERR_EXITWATCH_NOT_VERIFIED` if the
 * process with this pid does not run the executable, `…_THREAD`, `…_KERNEL_THREAD`,
 * `…_INVALID_PID`, `…_INVALID_IDENTITY`, `…_INVALID_OPTION`, `…_REFUSED`, `…_NOT_PERMITTED`,
 * `…_NO_PROC`, `…_SYSTEM`.
 *
 * @param options `force`: allow init, or this process itself
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export function terminate(target: ProcessTarget, options: { force?: boolean } = {}): Promise<Sent> {
  return send(target, 'SIGTERM', options);
}

/**
 * Kills a process with SIGKILL. Otherwise like {@link terminate}.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
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
  const who = pid === 1 ? 'init' : 'this process itself';
  throw new ExitwatchError('ERR_EXITWATCH_REFUSED', `process ${pid} is ${who}`, {
    remedy: 'set `force: true` if you mean it',
  });
}

/** It could not be verified which process this is. */
export function notVerified({ pid }: ProcessIdentity): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_NOT_VERIFIED',
    `cannot verify from here that process ${pid} is the intended one`,
  );
}
