#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ALIVE_HELP, aliveCommand } from './alive.js';
import { BUILD_NATIVE_HELP, buildNativeCommand } from './build-native.js';
import { DOCTOR_HELP, doctorCommand } from './doctor.js';
import { escapeText } from './escape.js';
import { EXIT_FAILED, EXIT_USAGE } from './exit-codes.js';
import { UsageError } from './usage-error.js';
import { STOP_HELP, stopCommand } from './stop.js';
import { VM_DAEMON_HELP, vmDaemonCommand } from './vm-daemon.js';
import { VM_STATUS_HELP, vmStatusCommand } from './vm-status.js';
import { VM_WATCH_HELP, vmWatchCommand } from './vm-watch.js';
import { WAIT_HELP, waitCommand } from './wait.js';
import { WATCH_HELP, watchCommand } from './watch.js';

const HELP = `exitwatch tells that processes end, how, and who ended them.

Usage: exitwatch COMMAND [OPTION]…

Commands:
  watch         prints processes as they end
  wait          waits until a process ends, and ends as it did
  stop          stops a process, and ends when its end was observed
  alive         tells whether a process lives
  vm watch      prints virtual machines as they come and go, and why they ended
  vm daemon     the same, remembered, with a hook
  vm status     what the daemon knows
  doctor        tells what works here, why not better, and what to do about it
  build-native  compiles the native addon, where no binary that came along can be used

  --help after a command tells its options; --version tells the version.
`;

const COMMANDS = new Map([
  ['watch', { run: watchCommand, help: WATCH_HELP }],
  ['wait', { run: waitCommand, help: WAIT_HELP }],
  ['stop', { run: stopCommand, help: STOP_HELP }],
  ['alive', { run: aliveCommand, help: ALIVE_HELP }],
  ['vm watch', { run: vmWatchCommand, help: VM_WATCH_HELP }],
  ['vm daemon', { run: vmDaemonCommand, help: VM_DAEMON_HELP }],
  ['vm status', { run: vmStatusCommand, help: VM_STATUS_HELP }],
  ['doctor', { run: doctorCommand, help: DOCTOR_HELP }],
  ['build-native', { run: buildNativeCommand, help: BUILD_NATIVE_HELP }],
]);

async function main(args: readonly string[]): Promise<number> {
  const words = args[0] === 'vm' && args.length > 1 ? 2 : 1;
  const name = args.length === 0 ? undefined : args.slice(0, words).join(' ');
  const rest = args.slice(words);
  const command = COMMANDS.get(name ?? '');
  if (command !== undefined) {
    if (!rest.includes('--help') && !rest.includes('-h')) return command.run(rest);
    process.stdout.write(command.help);
    return 0;
  }
  switch (name) {
    case undefined:
    case 'help':
    case '--help':
    case '-h':
    case 'vm --help':
    case 'vm -h':
      process.stdout.write(HELP);
      return name === undefined ? EXIT_USAGE : 0;
    case '--version':
    case '-V':
      process.stdout.write(`${version()}\n`);
      return 0;
    default:
      throw new UsageError(`there is no command ${JSON.stringify(name)}`);
  }
}

function version(): string {
  const manifest = readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

// A reader who goes away ends us without a word; a disk that is full does not.
let outputError: NodeJS.ErrnoException | undefined;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return;
  outputError ??= error;
  process.exitCode = EXIT_FAILED;
});

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = outputError === undefined ? code : EXIT_FAILED;
    if (outputError !== undefined) process.stderr.write(`exitwatch: ${outputError.message}\n`);
  },
  (error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`exitwatch: ${escapeText(message)}\n`);
    if (error instanceof UsageError) {
      process.stderr.write('exitwatch --help, or --help after a command, tells more.\n');
    }
    process.exitCode = error instanceof UsageError ? EXIT_USAGE : EXIT_FAILED;
  },
);
