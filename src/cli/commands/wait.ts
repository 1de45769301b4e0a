import { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { signalNumber } from '../../events/wait-status.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';
import { waitForExit } from '../../monitor/wait-for-exit.js';
import {
  COMMAND_LINE_HELP,
  COMMAND_LINE_OPTIONS,
  parseCommandLines,
} from '../args/command-lines.js';
import { parseDuration } from '../args/duration.js';
import { NamePattern } from '../../common/name-pattern.js';
import { parseArguments } from '../args/parse-arguments.js';
import { listProcesses } from '../args/process-list.js';
import { parseSource } from '../args/source-option.js';
import { UsageError } from '../args/usage-error.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_NO_SUCH_PROCESS, EXIT_TIMEOUT, EXIT_UNKNOWN } from '../output/exit-codes.js';
import { NAME_WIDTH, tellStory } from '../output/exit-story.js';
import { describeExit } from '../output/exit-table.js';
import { columnsOf, paragraph } from '../output/terminal-text.js';

export const WAIT_HELP = `Waits until a process ends, even if it is not a child, and exits as it did.

Usage: exitwatch wait PID|NAME [OPTION]…

  PID            the process with this pid; if its name is a number, write a
                 pattern: '[1]23'
  NAME           the only process with this name, which may contain * and ?: the
                 kernel's name (its first 15 bytes), or the program's file name

  --timeout TIME gives up after this time: 10s, 500ms, 2h
  --source S     the source: auto (default), connector, pidfd or poll
${COMMAND_LINE_HELP}
  --json         prints the end as a JSON object, with everything that is known
  --help         prints this text

Prints how the process ended; stderr shows everything that is known about it,
who ended it, and how certain that is. Exits with the exit code of the process,
or with 128 plus the number of the signal that killed it. Exits with 124 after
--timeout; 125 if nobody knows how it ended, if the kernel cannot be watched, or
if PID is a thread's id; 127 if there is no such process; 2 for wrong usage, or
if several processes have the name.
`;

/** `exitwatch wait`; resolves with the exit code. */
export async function waitCommand(args: readonly string[]): Promise<number> {
  const { target, timeoutMs, source, commandLines, json } = parse(args);
  try {
    const event = await waitForExit(typeof target === 'number' ? target : findOne(target), {
      source,
      commandLines,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    process.stdout.write(`${json ? toJsonLine(event) : describeExit(event)}\n`);
    if (!json) tell(event);
    return exitCodeOf(event);
  } catch (error) {
    if (!(error instanceof ExitwatchError)) throw error;
    switch (error.code) {
      case 'ERR_EXITWATCH_TIMEOUT':
        return EXIT_TIMEOUT;
      case 'ERR_EXITWATCH_NO_SUCH_PROCESS':
      case 'ERR_EXITWATCH_KERNEL_THREAD':
        process.stderr.write(`exitwatch: ${escapeText(error.message)}\n`);
        return EXIT_NO_SUCH_PROCESS;
      default:
        throw error;
    }
  }
}

function tell(event: ExitEvent): void {
  const columns = columnsOf(process.stderr);
  for (const line of tellStory(event).trimEnd().split('\n')) {
    process.stderr.write(`${paragraph(line, columns, NAME_WIDTH)}\n`);
  }
}

function parse(args: readonly string[]) {
  const parsed = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      timeout: { type: 'string' },
      source: { type: 'string', default: 'auto' },
      ...COMMAND_LINE_OPTIONS,
      json: { type: 'boolean', default: false },
    },
  });
  const [target, ...more] = parsed.positionals;
  if (target === undefined || target === '' || more.length > 0) {
    throw new UsageError('wait requires exactly one PID or NAME');
  }
  const { timeout, source, json } = parsed.values;
  return {
    target: /^\d+$/.test(target) ? Number(target) : target,
    timeoutMs: timeout === undefined ? undefined : Math.ceil(parseDuration('--timeout', timeout)),
    source: parseSource(source),
    commandLines: parseCommandLines(parsed.values),
    json,
  };
}

/** @throws ExitwatchError `ERR_EXITWATCH_NO_SUCH_PROCESS`; UsageError if there are several */
function findOne(name: string): ProcessIdentity {
  if (process.platform !== 'linux')
    throw new UsageError('waiting by name works only on Linux; give a pid');
  const pattern = new NamePattern([name]);
  const found = [...listProcesses()].filter(
    (listed) =>
      listed.identity.pid !== process.pid &&
      pattern.matches([listed.name, ...(listed.executable === null ? [] : [listed.executable])]),
  );
  const [first, ...others] = found.map(({ identity }) => identity);
  if (first === undefined) {
    throw new ExitwatchError('ERR_EXITWATCH_NO_SUCH_PROCESS', `no process is named ${name}`);
  }
  if (others.length > 0) {
    const pids = [first, ...others].map(({ pid }) => pid).join(', ');
    throw new UsageError(
      `${others.length + 1} processes are named ${name}; give one of these pids: ${pids}`,
    );
  }
  return first;
}

function exitCodeOf(event: ExitEvent): number {
  switch (event.how) {
    case 'exited':
      return event.exitCode;
    case 'killed':
    case 'dumped':
      return 128 + signalNumber(event.signal);
    case 'unknown':
      return EXIT_UNKNOWN;
  }
}
