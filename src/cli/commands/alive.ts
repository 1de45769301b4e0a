import { ExitwatchError } from '../../common/errors.js';
import { lookAt, type Look } from '../../process/liveness.js';
import { parseArguments } from '../args/parse-arguments.js';
import { findProcess, isMissingPidfile, noPidfile } from '../args/process-argument.js';
import { UsageError } from '../args/usage-error.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_UNKNOWN } from '../output/exit-codes.js';

export const ALIVE_HELP = `Reports whether a process is alive.

Usage: exitwatch alive PID|PIDFILE [OPTION]…

  --executable NAME  the process must run this: an executable, or the script of
                     an interpreter; a path, or a full file name
  --json             prints one JSON object
  --help             prints this text

A zombie counts as dead. A pidfile written by exitwatch identifies one process,
and never a later one with the same pid. Any other pidfile is only a number: add
--executable to check what has the pid.

Exits with 0 if the process is alive, 1 if it is dead or the pidfile does not
exist, 125 if that is unknown, and 2 for wrong usage. It is unknown if the
process runs something else, or if the pid is a thread's id: stderr says what
has the pid.
`;

const EXIT_DEAD = 1;

/** `exitwatch alive`; resolves with the exit code. */
export async function aliveCommand(args: readonly string[]): Promise<number> {
  const { argument, executable, json } = parse(args);
  const look = await lookAtArgument(argument, executable);
  const { liveness } = look;
  const why = look.liveness === 'unknown' ? look.why.message : null;
  const report = {
    event: 'alive',
    process: argument,
    liveness,
    ...(why === null ? {} : { why }),
  };
  process.stdout.write(`${json ? toJsonLine(report) : liveness}\n`);
  if (why !== null) process.stderr.write(`exitwatch: ${escapeText(why)}\n`);
  return { alive: 0, dead: EXIT_DEAD, unknown: EXIT_UNKNOWN }[liveness];
}

async function lookAtArgument(argument: string, executable: string | undefined): Promise<Look> {
  try {
    return lookAt((await findProcess(argument, executable)).target);
  } catch (error) {
    if (!(error instanceof ExitwatchError)) throw error;
    if (error.code === 'ERR_EXITWATCH_NOT_VERIFIED') return { liveness: 'unknown', why: error };
    if (!isMissingPidfile(error)) throw error;
    process.stderr.write(`exitwatch: ${escapeText(noPidfile(argument))}\n`);
    return { liveness: 'dead' };
  }
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
    throw new UsageError('alive requires exactly one PID or PIDFILE');
  }
  return { argument, ...parsed.values };
}
