import { IntentLog } from '../../process/index.js';
import { migrate, type Migration, type MigrationProgress } from '../../vm/qemu/migrate.js';
import { formatDuration, parseDuration } from '../args/duration.js';
import { parseArguments } from '../args/parse-arguments.js';
import { UsageError } from '../args/usage-error.js';
import { findMachine, MACHINE_HELP, MACHINE_OPTIONS, NoSuchMachine } from '../args/vm-machine.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_FAILED, EXIT_NO_SUCH_PROCESS, EXIT_TIMEOUT } from '../output/exit-codes.js';
import { StopProgress } from '../output/stop-progress.js';

export const VM_MIGRATE_HELP = `Migrates a virtual machine, and ends when it has arrived, or has not.

Usage: exitwatch vm migrate NAME URI [OPTION]…
       exitwatch vm migrate --pid N|--pidfile FILE URI [OPTION]…

  URI                where to, as QEMU takes it: tcp:HOST:PORT, unix:PATH, …; a QEMU listens there
                     (-incoming)
${MACHINE_HELP}
  --timeout TIME     gives up waiting: 1h (default), 5m, 2h; the migration goes on
  --json             the outcome as a JSON object
  --help             this text

The migration capability "events" is set first, so that the machine's event log tells of the migration; and
an intent is on record before it begins. When it has arrived, the machine here is still there, paused: end it
by exitwatch vm quit. If it has not, it goes on here.

On a terminal it tells on stderr how far it has come. Ends with 0 when it has arrived; 124 if that is not
known in time, 125 if it fails, is cancelled or cannot be asked for, 127 if there is no such machine, process
or pidfile, 2 for wrong usage.
`;

/** `exitwatch vm migrate`; resolves with the exit code. */
export async function vmMigrateCommand(args: readonly string[]): Promise<number> {
  const { name, uri, values, timeoutMs } = parse(args);
  const progress = new StopProgress();
  let log: IntentLog | undefined;
  try {
    const machine = await findMachine('vm migrate', name, values);
    const { identity, qmp, owner } = machine;
    if (identity === null) throw new NoSuchMachine(`${machine.name} has ended`);
    if (qmp === undefined) {
      throw new UsageError('vm migrate takes --qmp SOCKET, or a NAME with such a socket');
    }
    log = new IntentLog(machine.intentLog);
    const until = performance.now() + timeoutMs;
    const migration = await migrate(identity, {
      ...{ socket: qmp, owner: owner ?? null, uri, timeoutMs, intentLog: log },
      reason: values.reason ?? null,
      onProgress: (far) => {
        progress.write(describeProgress(machine.name, far, until - performance.now()));
      },
    });
    progress.end();
    const line = values.json
      ? toJsonLine({ event: 'migrate', name: machine.name, identity, uri, ...migration })
      : `${escapeText(machine.name)}: ${describe(migration)}`;
    process.stdout.write(`${line}\n`);
    for (const warning of migration.warnings) {
      process.stderr.write(`exitwatch: ${escapeText(warning)}\n`);
    }
    return { completed: 0, failed: EXIT_FAILED, cancelled: EXIT_FAILED, 'timed-out': EXIT_TIMEOUT }[
      migration.outcome
    ];
  } catch (error) {
    if (!(error instanceof NoSuchMachine)) throw error;
    process.stderr.write(`exitwatch: ${escapeText(error.message)}\n`);
    return EXIT_NO_SUCH_PROCESS;
  } finally {
    progress.end();
    await log?.close();
  }
}

function describe({ outcome, reason }: Migration): string {
  const why = reason === null ? '' : `: ${escapeText(reason)}`;
  switch (outcome) {
    case 'completed':
      return 'it has arrived; what is left of it here is paused';
    case 'failed':
      return `the migration has failed${why}`;
    case 'cancelled':
      return `the migration was cancelled${why}`;
    case 'timed-out':
      return `it has not arrived yet${why}; the migration goes on`;
  }
}

/** `waiting for web: active, 12 of 32 MiB left; giving up in 59m` */
function describeProgress(
  name: string,
  { status, remainingBytes, totalBytes }: MigrationProgress,
  inMs: number,
): string {
  const mebibytes = (bytes: number) => Math.ceil(bytes / 2 ** 20);
  const isKnown = remainingBytes !== null && totalBytes !== null && totalBytes > 0;
  const left = isKnown ? `, ${mebibytes(remainingBytes)} of ${mebibytes(totalBytes)} MiB left` : '';
  const end = formatDuration(Math.max(0, inMs));
  return `waiting for ${escapeText(name)}: ${escapeText(status)}${left}; giving up in ${end}`;
}

function parse(args: readonly string[]) {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      ...MACHINE_OPTIONS,
      timeout: { type: 'string', default: '1h' },
      json: { type: 'boolean', default: false },
    },
  });
  if (values.agent !== undefined) throw new UsageError('vm migrate takes no --agent');
  const isNamed = values.pid === undefined && values.pidfile === undefined;
  const [name, uri, ...more] = isNamed ? positionals : [undefined, ...positionals];
  if (uri === undefined || uri === '' || more.length > 0) {
    throw new UsageError('vm migrate takes NAME and URI, or URI with --pid or --pidfile');
  }
  const timeoutMs = Math.ceil(parseDuration('--timeout', values.timeout));
  return { name, uri, values, timeoutMs };
}
