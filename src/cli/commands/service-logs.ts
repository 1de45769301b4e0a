import { ask } from '../../supervise/control/control-client.js';
import { parseInteger } from '../args/integer.js';
import { parseArguments } from '../args/parse-arguments.js';
import { STATE_DIR_OPTION, STATE_DIR_HELP, askedDir } from '../args/supervisor-option.js';
import { UsageError } from '../args/usage-error.js';
import { EXIT_FAILED } from '../output/exit-codes.js';
import { LogTail } from '../output/log-tail.js';
import { untilSignalled } from '../until-signalled.js';

const FEW = 50;

export const SERVICE_LOGS_HELP = `Prints the last lines of what a service has written.

Usage: exitwatch service logs NAME [OPTION]…

  --lines N, -n N  how many lines (default: ${FEW})
  --follow, -f     goes on with what is written from now on, until Ctrl+C
${STATE_DIR_HELP}
  --help           prints this text

Exits with 0; with 127 if there is no such service, 125 if its output is not kept
or no supervisor answers, 2 for wrong usage.
`;

/** `exitwatch service logs`; resolves with the exit code. */
export async function serviceLogsCommand(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      ...STATE_DIR_OPTION,
      lines: { type: 'string', short: 'n' },
      follow: { type: 'boolean', short: 'f', default: false },
    },
  });
  const [name, ...more] = positionals;
  if (name === undefined || more.length > 0) throw new UsageError('service logs requires one NAME');
  const lines = values.lines === undefined ? FEW : parseInteger('--lines', values.lines);
  const { service } = await ask(askedDir(values), 'story', { name });
  if (service.logs.length === 0) {
    process.stderr.write('exitwatch: it has no logs in its configuration\n');
    return EXIT_FAILED;
  }
  const lost = () => {
    process.stderr.write('exitwatch: lines are missing: they were removed before they were read\n');
  };
  const tails = service.logs.map((file) => new LogTail(file, process.stdout, lost));
  for (const tail of tails) await tail.printLast(lines);
  if (!values.follow) return 0;
  const ended = untilSignalled();
  for (const tail of tails) tail.follow();
  await ended;
  for (const tail of tails) tail.close();
  return 0;
}
