import { ExitwatchError, reasonOf, type ExitwatchErrorCode } from '../../common/errors.js';
import { UsageError } from '../args/usage-error.js';

import { EXIT_FAILED, EXIT_NO_SUCH_PROCESS, EXIT_USAGE } from './exit-codes.js';

/** Errors caused by the command line or the environment. */
const USAGE: readonly ExitwatchErrorCode[] = [
  'ERR_EXITWATCH_INVALID_OPTION',
  'ERR_EXITWATCH_INVALID_PID',
];

/** What a command exits with after an error. */
export function exitCodeOf(error: unknown): number {
  if (isWrongUsage(error)) return EXIT_USAGE;
  if (!(error instanceof ExitwatchError)) return EXIT_FAILED;
  if (error.code === 'ERR_EXITWATCH_CONFIG') return EXIT_USAGE;
  return error.code === 'ERR_EXITWATCH_NO_SERVICE' ? EXIT_NO_SUCH_PROCESS : EXIT_FAILED;
}

/** Whether the command line is wrong. */
export function isWrongUsage(error: unknown): boolean {
  return (
    error instanceof UsageError || (error instanceof ExitwatchError && USAGE.includes(error.code))
  );
}

/** An error as a sentence for the terminal. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { path, syscall } = error as NodeJS.ErrnoException;
  if (error instanceof ExitwatchError || syscall === undefined) return error.message;
  return path === undefined ? `${syscall}: ${reasonOf(error)}` : `${path}: ${reasonOf(error)}`;
}

/** Gives a refusal the remedy that fits the command line, such as an option. */
export function refusal(error: unknown, remedy: string | undefined): unknown {
  if (!(error instanceof ExitwatchError) || error.code !== 'ERR_EXITWATCH_REFUSED') return error;
  return new ExitwatchError(error.code, error.detail, { remedy, cause: error });
}
