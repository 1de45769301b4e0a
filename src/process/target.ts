import { ExitwatchError } from '../errors.js';
import {
  checkIdentity,
  checkPid,
  identify,
  lookUp,
  type ProcessIdentity,
} from '../process-identity.js';

import { runs } from './executable.js';

/**
 * Which process is meant: a pid, as it is now; a pid whose process has to run this executable (a path,
 * or a file name in full); or an identity, which is that process and no later one with its pid.
 */
export type ProcessTarget = number | ProcessIdentity | { pid: number; executable: string };

/**
 * Who that is now; `null`: nobody, or somebody else.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_INVALID_IDENTITY`,
 *   `ERR_EXITWATCH_INVALID_OPTION`, and `ERR_EXITWATCH_NOT_VERIFIED` where it cannot be told whether
 *   the process runs the executable
 */
export function resolveTarget(target: ProcessTarget): ProcessIdentity | null {
  if (typeof target === 'object' && 'executable' in target) return resolveExecutable(target);
  if (typeof target === 'object') {
    checkIdentity(target);
    return target;
  }
  return identify(target);
}

function resolveExecutable({ pid, executable }: { pid: number; executable: string }) {
  const verdict = runsNow(pid, executable);
  if (verdict === 'unknown') {
    throw new ExitwatchError(
      'ERR_EXITWATCH_NOT_VERIFIED',
      `whether process ${pid} runs ${JSON.stringify(executable)} cannot be read`,
    );
  }
  return verdict;
}

/** The process, if it runs this executable; `null`: there is none, or it runs another. */
export function runsNow(pid: number, executable: string): ProcessIdentity | 'unknown' | null {
  checkPid(pid);
  if (typeof executable !== 'string' || executable === '' || executable.includes('\0')) {
    throw new ExitwatchError('ERR_EXITWATCH_INVALID_OPTION', 'executable is a path or a file name');
  }
  const before = lookUp(pid);
  if (typeof before === 'string') return null;
  const verdict = runs(pid, executable);
  // The names are of who has the pid now: is that who had it before?
  const after = lookUp(pid);
  if (typeof after === 'string' || after.id !== before.id) return null;
  if (verdict === 'unknown') return 'unknown';
  return verdict ? before : null;
}
