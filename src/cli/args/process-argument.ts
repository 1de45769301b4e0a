import { ExitwatchError } from '../../common/errors.js';
import { isAlive, readPidfile, type ProcessTarget } from '../../process/index.js';
import { checkRuns } from '../../process/target.js';

import { UsageError } from './usage-error.js';

/** The process that an argument names: a pid, or a pidfile. */
export interface ProcessArgument {
  target: ProcessTarget;
  /** `undefined`: it is a pid. */
  pidfile: string | undefined;
}

/**
 * Digits are a pid, anything else is the path of a pidfile. The process has to run `executable`, if that is
 * given.
 *
 * Rejects as readPidfile() does, with a {@link UsageError} for a word that no pidfile has for a name, and with `ERR_EXITWATCH_NOT_VERIFIED` if the process that a pidfile of
 * ours names lives, and does not run `executable`.
 */
export async function findProcess(
  argument: string,
  executable: string | undefined,
): Promise<ProcessArgument> {
  const withExecutable = (pid: number) => (executable === undefined ? pid : { pid, executable });
  if (/^-?\d+$/.test(argument)) {
    return { target: withExecutable(Number(argument)), pidfile: undefined };
  }
  const { pid, identity } = await readPidfile(argument).catch((error: unknown) => {
    throw isMissingPidfile(error) && isBareWord(argument) ? noName(argument) : error;
  });
  if (identity === null) return { target: withExecutable(pid), pidfile: argument };
  // Both count: who it was, and what it runs.
  if (executable !== undefined && isAlive(identity) !== 'dead') checkRuns(identity, executable);
  return { target: identity, pidfile: argument };
}

/** As a program has it for a name: no path, and no pidfile either, unless there is one. */
function isBareWord(argument: string): boolean {
  return !/[/.]/.test(argument);
}

function noName(argument: string): UsageError {
  const word = JSON.stringify(argument);
  return new UsageError(
    `${word} is no pid, and there is no pidfile of that name; pgrep tells pids by name`,
  );
}

/** Says that there is no such pidfile. */
export function noPidfile(path: string): string {
  return `there is no pidfile ${JSON.stringify(path)}`;
}

/** There is no such pidfile. */
export function isMissingPidfile(error: unknown): error is ExitwatchError {
  return error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_NO_PIDFILE';
}
