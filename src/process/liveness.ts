import { ExitwatchError } from '../common/errors.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { signalProcess } from './process-signal.js';
import { notVerified } from './send.js';
import { matchNow, resolveTarget, type ProcessTarget } from './target.js';

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
 * `'dead'` only if nobody has the pid, or a zombie; of an identity, also if another process has its pid.
 * `'unknown'` if it cannot be looked at (no /proc, hidepid, another pid namespace), or if the pid is a
 * thread's or a kernel thread's: that is no process, but it is there.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_INVALID_IDENTITY`
 */
export function isAlive(target: number | ProcessIdentity): Liveness {
  return lookAt(target).liveness;
}

/**
 * Whether a process with this pid lives and runs this executable or, if that is an interpreter, this
 * script: a path, or a file name in full, as the kernel's name has 15 bytes of it. `false` also if another
 * program has the pid. `'unknown'` if it cannot be looked at, or if the pid is a thread's: its process may
 * be the one.
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
  if (isImpossible(pid)) return false;
  try {
    const found = matchNow(pid, executable);
    if (found === null || found.runs === false) return false;
    const { liveness } = signalProcess(found.identity);
    if (liveness === 'dead') return false;
    return liveness === 'unknown' ? liveness : found.runs;
  } catch (error) {
    if (isFault(error)) throw error;
    // It runs nothing, least of all this.
    return !(error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_KERNEL_THREAD')
      ? 'unknown'
      : false;
  }
}

/** Whether a process lives, and why that cannot be told. @internal */
export type Look = { liveness: 'alive' | 'dead' } | { liveness: 'unknown'; why: Error };

/** A process that lives, but is not the one that is meant, is not dead: then nobody knows. @internal */
export function lookAt(target: ProcessTarget): Look {
  try {
    const identity = resolveTarget(target);
    if (identity === null) return { liveness: 'dead' };
    const { liveness } = signalProcess(identity);
    return liveness === 'unknown' ? { liveness, why: notVerified(identity) } : { liveness };
  } catch (error) {
    if (isFault(error)) throw error;
    return { liveness: 'unknown', why: error as Error };
  }
}

/** @internal */
export function livenessOf(target: ProcessTarget): Liveness {
  return lookAt(target).liveness;
}

/** A number that no process ever had is no fault here: it was read from somewhere. */
function isImpossible(pid: number): boolean {
  return Number.isInteger(pid) && pid > PID_LIMIT;
}

/** PID_MAX_LIMIT */
const PID_LIMIT = 4_194_304;

function isFault(error: unknown): boolean {
  return error instanceof ExitwatchError && FAULTS.includes(error.code);
}
