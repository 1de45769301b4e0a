import { ExitwatchError } from '../errors.js';
import { livenessOf, type Liveness } from '../process/liveness.js';

import { escapeText, toJsonLine } from './escape.js';
import { EXIT_UNKNOWN } from './exit-codes.js';
import { findProcess, isMissingPidfile } from './process-argument.js';
import { parseArguments } from './parse-arguments.js';
import { UsageError } from './usage-error.js';

export const ALIVE_HELP = `Tells whether a process lives.

Usage: exitwatch alive PID|PIDFILE [OPTION]…

  --executable NAME  it has to run this: a path, or a file name in full
  --json             one JSON object
  --help             this text

A zombie is dead. A pidfile that exitwatch has written names a process and no later one with its pid;
of any other one, the pid is all that is known, unless --executable is given.

Ends with 0 if it is alive, with 1 if it is dead or there is no such pidfile, with 125 if that cannot
be told, and with 2 for wrong usage.
`;

const EXIT_DEAD = 1;

/** `exitwatch alive`; resolves with the exit code. */
export async function aliveCommand(args: readonly string[]): Promise<number> {
  const { argument, executable, json } = parse(args);
  let liveness: Liveness;
  try {
    liveness = livenessOf((await findProcess(argument, executable)).target);
  } catch (error) {
    if (error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_INVALID_PID') {
      throw new UsageError(error.message);
    }
    if (!isMissingPidfile(error)) throw error;
    process.stderr.write(`exitwatch: ${escapeText(error.message)}\n`);
    liveness = 'dead';
  }
  const text = json ? toJsonLine({ event: 'alive', process: argument, liveness }) : liveness;
  process.stdout.write(`${text}\n`);
  return { alive: 0, dead: EXIT_DEAD, unknown: EXIT_UNKNOWN }[liveness];
}

function parse(args: readonly string[]) {
  const parsed = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      executable: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const [argument, ...more] = parsed.positionals;
  if (argument === undefined || argument === '' || more.length > 0) {
    throw new UsageError('alive takes one PID or PIDFILE');
  }
  return { argument, ...parsed.values };
}
