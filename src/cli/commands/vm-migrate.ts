import { IntentLog } from '../../process/index.js';
import { migrate, type Migration, type MigrationProgress } from '../../vm/qemu/migrate.js';
import { formatDuration, parseDuration } from '../args/duration.js';
import { parseArguments } from '../args/parse-arguments.js';
import { UsageError } from '../args/usage-error.js';
import { findMachine, MACHINE_HELP, MACHINE_OPTIONS, NoSuchMachine } from '../args/vm-machine.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_FAILED, EXIT_NO_SUCH_PROCESS, EXIT_TIMEOUT } from '../output/exit-codes.js';
import { StopProgress } from '../output/stop-progress.js';

export const VM_MIGRATE_HELP = `Migrates a virtual machine, and waits until that has completed or failed.

Usage: exitwatch vm migrate NAME URI [OPTION]…
       exitwatch vm migrate --pid N|--pidfile FILE URI [OPTION]…

  URI                the destination in QEMU's notation: tcp:HOST:PORT,
                     unix:PATH, …; a QEMU must listen there (-incoming)
${MACHINE_HELP}
  --timeout TIME     stops waiting after this time: 1h (default), 5m, 2h; the
                     migration continues
  --json             prints the outcome as a JSON object
  --help             prints this text

First sets the migration capability "events", so that the event log shows the
migration, and records an intent. After a migration that has completed, the
machine here still exists, paused: end it with exitwatch vm quit. After one that
has failed, it continues here.

On a terminal, stderr shows the progress. Exits with 0 if the migration has
completed; 124 if it has not after --timeout, 125 if it fails, is cancelled or
cannot be requested, 127 if there is no such machine, process or pidfile, 2 for
wrong usage.
`;

/** `exitwatch vm migrate`; resolves with the exit code. */
export async function vmMigrateCommand(args: readonly string[]): Promise<number> {
  const { name, uri, values, timeoutMs } = parse(args);
  const progress = new StopProgress();
  let log: IntentLog | undefined;
  try {
    const machine = await findMachine('vm migrate', name, values);
    const { identity, qmp, owner } = machine;
    if (identity === null) throw new NoSuchMachine(`${machine.name} has already ended`);
    if (qmp === undefined) {
      throw new UsageError('vm migrate requires --qmp SOCKET, or a NAME with such a socket');
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
      return 'the migration has completed; the machine here is paused';
    case 'failed':
      return `the migration failed${why}`;
    case 'cancelled':
      return `the migration was cancelled${why}`;
    case 'timed-out':
      return `the migration has not completed yet${why}; it continues`;
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
  if (values.agent !== undefined) throw new UsageError('vm migrate does not take --agent');
  const isNamed = values.pid === undefined && values.pidfile === undefined;
  const [name, uri, ...more] = isNamed ? positionals : [undefined, ...positionals];
  if (uri === undefined || uri === '' || more.length > 0) {
    throw new UsageError('vm migrate requires NAME and URI, or URI with --pid or --pidfile');
  }
  const timeoutMs = Math.ceil(parseDuration('--timeout', values.timeout));
  return { name, uri, values, timeoutMs };
}
