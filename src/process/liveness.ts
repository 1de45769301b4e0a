import { ExitwatchError } from '../errors.js';
import type { ProcessIdentity } from '../process-identity.js';

import { signalProcess } from './process-signal.js';
import { resolveTarget, runsNow, type ProcessTarget } from './target.js';

/** Whether a process lives. A zombie is dead, as soon as all of its threads are. */
export type Liveness = 'alive' | 'dead' | 'unknown';

/** What is the caller's fault is thrown; what cannot be found out is unknown. */
const FAULTS: readonly string[] = [
  'ERR_EXITWATCH_INVALID_PID',
  'ERR_EXITWATCH_INVALID_IDENTITY',
  'ERR_EXITWATCH_INVALID_OPTION',
];

/**
 * Whether some process with this pid lives, or this very process; another user's as well.
 * `'unknown'` where it cannot be looked at (no /proc, hidepid, another pid namespace): not dead.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_INVALID_IDENTITY`
 */
export function isAlive(target: number | ProcessIdentity): Liveness {
  return find(() => {
    const identity = resolveTarget(target);
    return identity === null ? 'dead' : signalProcess(identity).life;
  });
}

/**
 * Whether a process with this pid lives and runs this executable: a path, or a file name in full, as
 * the kernel's name has 15 bytes of it. `'unknown'` where it cannot be looked at.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_INVALID_OPTION`
 */
export function exists({
  pid,
  executable,
}: {
  pid: number;
  executable: string;
}): boolean | 'unknown' {
  const liveness = find(() => {
    const found = isImpossible(pid) ? null : runsNow(pid, executable);
    if (found === 'unknown') return 'unknown';
    return found === null ? 'dead' : signalProcess(found).life;
  });
  return liveness === 'unknown' ? 'unknown' : liveness === 'alive';
}

/** The one or the other, by what is known of it. @internal */
export function livenessOf(target: ProcessTarget): Liveness {
  if (typeof target === 'number' || !('executable' in target)) return isAlive(target);
  const found = exists(target);
  if (found === 'unknown') return 'unknown';
  return found ? 'alive' : 'dead';
}

/** A number that no process ever had is no fault here: it was read from somewhere. */
function isImpossible(pid: number): boolean {
  return Number.isInteger(pid) && pid > PID_LIMIT;
}

/** PID_MAX_LIMIT */
const PID_LIMIT = 4_194_304;

function find(look: () => Liveness): Liveness {
  try {
    return look();
  } catch (error) {
    if (error instanceof ExitwatchError && FAULTS.includes(error.code)) throw error;
    return 'unknown';
  }
}
