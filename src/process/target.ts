import { ExitwatchError } from '../common/errors.js';
import { invalidOption } from '../common/options.js';
import {
  checkIdentity,
  checkPid,
  identifyOrNone,
  type ProcessIdentity,
} from '../identity/process-identity.js';

import { describeProgram, programOf, runs, type Program } from './executable.js';
import { signalProcess } from './process-signal.js';

/**
 * A process: by pid, as it is now; by pid and the executable that it must run, or the script if
 * that is an interpreter (a path, or a full file name); or by identity, which never means a later
 * process with the same pid.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export type ProcessTarget = number | ProcessIdentity | { pid: number; executable: string };

/**
 * The process that the target means now; `null` if nothing has the pid.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_PID`, `ERR_EXITWATCH_INVALID_IDENTITY`,
 *   `ERR_EXITWATCH_INVALID_OPTION`; `ERR_EXITWATCH_THREAD` and `ERR_EXITWATCH_KERNEL_THREAD` if the
 *   pid belongs to one; `ERR_EXITWATCH_NOT_VERIFIED` if a living process does not run the
 *   executable, or if that is unknown
 */
export function resolveTarget(target: ProcessTarget): ProcessIdentity | null {
  if (typeof target === 'number') return identifyOrNone(target);
  if ('executable' in target) return resolveExecutable(target.pid, target.executable);
  checkIdentity(target);
  return target;
}

function resolveExecutable(pid: number, executable: string): ProcessIdentity | null {
  const found = matchNow(pid, executable);
  if (found === null || found.runs === true) return found?.identity ?? null;
  throw found.runs === 'unknown'
    ? cannotTell(found.program, executable)
    : runsOther(found.program, executable);
}

/** The process with a pid, and whether it runs an executable. */
export interface Match {
  identity: ProcessIdentity;
  program: Program;
  runs: boolean | 'unknown';
}

/**
 * The process with this pid, and whether it runs the executable; `null` if nothing has the pid, or
 * only a dead process that ran something else.
 */
export function matchNow(pid: number, executable: string): Match | null {
  checkPid(pid);
  checkExecutable(executable);
  const before = identifyOrNone(pid);
  if (before === null) return null;
  const program = programOf(pid);
  const verdict = runs(program, executable);
  // The names may belong to a process that got the pid in the meantime.
  const after = identifyOrNone(pid);
  if (after === null) return null;
  if (after.id !== before.id) return { identity: after, program: programOf(pid), runs: 'unknown' };
  if (verdict !== true && signalProcess(before).liveness === 'dead') return null;
  return { identity: before, program, runs: verdict };
}

/** @throws ExitwatchError `ERR_EXITWATCH_NOT_VERIFIED` unless this process runs the executable. */
export function checkRuns({ pid }: ProcessIdentity, executable: string): void {
  checkExecutable(executable);
  const program = programOf(pid);
  const verdict = runs(program, executable);
  if (verdict === true) return;
  throw verdict === 'unknown' ? cannotTell(program, executable) : runsOther(program, executable);
}

function checkExecutable(executable: unknown): void {
  if (typeof executable === 'string' && executable !== '' && !executable.includes('\0')) return;
  throw invalidOption('executable must be a path or a file name');
}

function runsOther(program: Program, executable: string): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_NOT_VERIFIED',
    `process ${program.pid} runs ${describeProgram(program)}, not ${JSON.stringify(executable)}`,
    { remedy: 'if you mean this process, name what it runs; if not, your pid is out of date' },
  );
}

function cannotTell(program: Program, executable: string): ExitwatchError {
  const { pid } = program;
  return new ExitwatchError(
    'ERR_EXITWATCH_NOT_VERIFIED',
    `cannot tell whether process ${pid} runs ${JSON.stringify(executable)}: it runs ${describeProgram(program)}`,
    { remedy: 'name the executable itself, or run as its user or with CAP_SYS_PTRACE' },
  );
}
