import { parseArgs, type ParseArgsConfig } from 'node:util';

import { UsageError } from './usage-error.js';

/** parseArgs() of node:util; what it objects to is wrong usage. */
export function parseArguments<T extends ParseArgsConfig>(
  config: T,
): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
