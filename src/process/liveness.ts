import { ExitwatchError } from '../common/errors.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { signalProcess } from './process-signal.js';
import { notVerified } from './send.js';
import { matchNow, resolveTarget, type ProcessTarget } from './target.js';

/**
 * Whether a process is alive. A zombie is dead once all of its threads are.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export type Liveness = 'alive' | 'dead' | 'unknown';

/** A caller's mistake is thrown; whatever cannot be found out is `'unknown'`. */
const FAULTS: readonly string[] = [
  'ERR_EXITWATCH_INVALID_PID',
  'ERR_EXITWATCH_INVALID_IDENTITY',
  'ERR_EXITWATCH_INVALID_OPTION',
];

/**
 * Whether any process with this pid, or the process with this identity, is alive. It may belong to
 * another user.
 * - `'dead'`: nothing has the pid, or a zombie has it; for an identity, also if the pid was reused
 * - `'unknown'`: it cannot be checked (no /proc, hidepid, another pid namespace), or the pid
 *   belongs to a thread or kernel thread, which is not a process but exists
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_INVALID_IDENTITY`
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export function isAlive(target: number | ProcessIdentity): Liveness {
  return lookAt(target).liveness;
}

/**
 * Whether a process with this pid is alive and runs this executable or, if it is an interpreter,
 * this script. `executable` is a path, or a full file name (the kernel's name has only 15 bytes).
 * `false` also if the pid belongs to another program. `'unknown'` if it cannot be checked, or if
 * the pid is a thread's, whose process may match.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_INVALID_OPTION`
 * @see [Stop a process safely](../../docs/stop-safely.md)
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
    // A kernel thread runs no executable.
    return !(error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_KERNEL_THREAD')
      ? 'unknown'
      : false;
  }
}

/** Whether a process is alive, and why that cannot be found out. @internal */
export type Look = { liveness: 'alive' | 'dead' } | { liveness: 'unknown'; why: Error };

/** If the pid belongs to another program than the target's, the result is `'unknown'`. @internal */
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

/** A pid above the limit is not an error here: you may have read it from a file. */
function isImpossible(pid: number): boolean {
  return Number.isInteger(pid) && pid > PID_LIMIT;
}

/** PID_MAX_LIMIT of the kernel. */
const PID_LIMIT = 4_194_304;

function isFault(error: unknown): boolean {
  return error instanceof ExitwatchError && FAULTS.includes(error.code);
}
