import { ExitwatchError } from '../../common/errors.js';
import { isAlive, readPidfile, type ProcessTarget } from '../../process/index.js';
import { checkRuns } from '../../process/target.js';

import { UsageError } from './usage-error.js';

/** The process that an argument names by pid or pidfile. */
export interface ProcessArgument {
  target: ProcessTarget;
  /** `undefined`: the argument is a pid. */
  pidfile: string | undefined;
}

/**
 * Digits are a pid, anything else is the path of a pidfile. If `executable` is given, the process
 * must run it.
 *
 * Rejects like readPidfile(); with a {@link UsageError} for a word that is unlikely to be a path;
 * and with `ERR_EXITWATCH_NOT_VERIFIED` if a pidfile with an identity names a living process that
 * does not run `executable`.
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
  // Both must match: the identity, and what it runs.
  if (executable !== undefined && isAlive(identity) !== 'dead') checkRuns(identity, executable);
  return { target: identity, pidfile: argument };
}

/** A word that looks like the name of a program, not like a path. */
function isBareWord(argument: string): boolean {
  return !/[/.]/.test(argument);
}

function noName(argument: string): UsageError {
  const word = JSON.stringify(argument);
  return new UsageError(
    `${word} is neither a pid nor an existing pidfile; pgrep finds pids by name`,
  );
}

/** The message for a missing pidfile. */
export function noPidfile(path: string): string {
  return `pidfile ${JSON.stringify(path)} does not exist`;
}

/** Whether the error means that the pidfile is missing. */
export function isMissingPidfile(error: unknown): error is ExitwatchError {
  return error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_NO_PIDFILE';
}
