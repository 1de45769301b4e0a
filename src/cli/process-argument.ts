import { ExitwatchError } from '../errors.js';
import { exists, isAlive, readPidfile, type ProcessTarget } from '../process/index.js';

import { UsageError } from './usage-error.js';

/** The process that an argument names: a pid, or a pidfile. */
export interface ProcessArgument {
  target: ProcessTarget;
  /** `undefined`: it is a pid. */
  pidfile: string | undefined;
}

/**
 * Digits are a pid, anything else is the path of a pidfile. Of a pidfile that says no more than a pid, the
 * process has to run `executable`, where that is given.
 *
 * Rejects as readPidfile() does.
 */
export async function findProcess(
  argument: string,
  executable: string | undefined,
): Promise<ProcessArgument> {
  const withExecutable = (pid: number) => (executable === undefined ? pid : { pid, executable });
  if (/^-?\d+$/.test(argument)) {
    return { target: withExecutable(Number(argument)), pidfile: undefined };
  }
  const { pid, identity } = await readPidfile(argument);
  if (identity === null) return { target: withExecutable(pid), pidfile: argument };
  // Both count: who it was, and what it runs.
  const isOther = executable !== undefined && exists({ pid, executable }) !== true;
  if (isOther && isAlive(identity) !== 'dead') {
    throw new UsageError(`process ${pid} does not run ${JSON.stringify(executable)}`);
  }
  return { target: identity, pidfile: argument };
}

/** There is no such pidfile. */
export function isMissingPidfile(error: unknown): error is ExitwatchError {
  return error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_NO_PIDFILE';
}
