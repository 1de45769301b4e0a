#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { tellMissingAddonBy } from '../native/addon-warning.js';

import { ALIVE_HELP, aliveCommand } from './commands/alive.js';
import { BUILD_NATIVE_HELP, buildNativeCommand } from './commands/build-native.js';
import { DOCTOR_HELP, doctorCommand } from './commands/doctor.js';
import { describeError, isWrongUsage } from './output/error-text.js';
import { escapeText } from './output/escape.js';
import { EXIT_FAILED, EXIT_USAGE } from './output/exit-codes.js';
import {
  INTENT_ADD_HELP,
  INTENT_SETTLE_HELP,
  intentAddCommand,
  intentSettleCommand,
} from './commands/intent.js';
import { UsageError } from './args/usage-error.js';
import { STOP_HELP, stopCommand } from './commands/stop.js';
import { VM_DAEMON_HELP, vmDaemonCommand } from './commands/vm-daemon.js';
import { VM_MIGRATE_HELP, vmMigrateCommand } from './commands/vm-migrate.js';
import {
  VM_KILL_HELP,
  VM_POWERDOWN_HELP,
  VM_QUIT_HELP,
  VM_STOP_HELP,
  vmKillCommand,
  vmPowerdownCommand,
  vmQuitCommand,
  vmStopCommand,
} from './commands/vm-request.js';
import { VM_STATUS_HELP, vmStatusCommand } from './commands/vm-status.js';
import { VM_WATCH_HELP, vmWatchCommand } from './commands/vm-watch.js';
import { WAIT_HELP, waitCommand } from './commands/wait.js';
import { WATCH_HELP, watchCommand } from './commands/watch.js';

const HELP_TAIL = `  --help after a command explains its options; --version prints the version.
`;

const HELP = `exitwatch reports when processes end, how they end, and who ended them.

Usage: exitwatch COMMAND [OPTION]…

Commands:
  watch          prints processes as they end
  wait           waits until a process ends, and exits as it did
  stop           stops a process, and exits when it has ended
  alive          reports whether a process is alive
  vm watch       prints virtual machines as they start and end, and why
  vm daemon      does the same, remembers it, and runs a hook
  vm status      prints what the daemon remembers
  vm powerdown   asks a guest to shut down, by its agent or its power button
  vm quit        tells a hypervisor to quit at once
  vm stop        stops a virtual machine: powerdown, then signals
  vm kill        ends a virtual machine at once: quit, then SIGKILL
  vm migrate     migrates a virtual machine
  intent add     records what you are about to do to a process
  intent settle  records the outcome
  doctor         reports what works here, what limits it, and what to do
  build-native   compiles the native addon, if the package has no binary for it

${HELP_TAIL}`;

const COMMANDS = new Map([
  ['watch', { run: watchCommand, help: WATCH_HELP }],
  ['wait', { run: waitCommand, help: WAIT_HELP }],
  ['stop', { run: stopCommand, help: STOP_HELP }],
  ['alive', { run: aliveCommand, help: ALIVE_HELP }],
  ['vm watch', { run: vmWatchCommand, help: VM_WATCH_HELP }],
  ['vm daemon', { run: vmDaemonCommand, help: VM_DAEMON_HELP }],
  ['vm status', { run: vmStatusCommand, help: VM_STATUS_HELP }],
  ['vm powerdown', { run: vmPowerdownCommand, help: VM_POWERDOWN_HELP }],
  ['vm quit', { run: vmQuitCommand, help: VM_QUIT_HELP }],
  ['vm stop', { run: vmStopCommand, help: VM_STOP_HELP }],
  ['vm kill', { run: vmKillCommand, help: VM_KILL_HELP }],
  ['vm migrate', { run: vmMigrateCommand, help: VM_MIGRATE_HELP }],
  ['intent add', { run: intentAddCommand, help: INTENT_ADD_HELP }],
  ['intent settle', { run: intentSettleCommand, help: INTENT_SETTLE_HELP }],
  ['doctor', { run: doctorCommand, help: DOCTOR_HELP }],
  ['build-native', { run: buildNativeCommand, help: BUILD_NATIVE_HELP }],
]);

/** Their commands have two words. */
const GROUPS: readonly string[] = ['vm', 'intent'];

const HELP_WORDS: readonly (string | undefined)[] = ['help', '--help', '-h'];

async function main(args: readonly string[]): Promise<number> {
  const words = GROUPS.includes(args[0] ?? '') && args.length > 1 ? 2 : 1;
  const name = args.length === 0 ? undefined : args.slice(0, words).join(' ');
  const rest = args.slice(words);
  const command = COMMANDS.get(name ?? '');
  if (command !== undefined) {
    if (!rest.includes('--help') && !rest.includes('-h')) return command.run(rest);
    process.stdout.write(command.help);
    return 0;
  }
  const [first, second] = args;
  if (first === '--version' || first === '-V') {
    process.stdout.write(`${version()}\n`);
    return 0;
  }
  const isAsked = HELP_WORDS.includes(words === 2 ? second : first);
  if (isAsked && second !== undefined && words === 1) return main([...args.slice(1), '--help']);
  if (GROUPS.includes(first ?? '') && (isAsked || second === undefined)) {
    process.stdout.write(groupHelp(first ?? ''));
  } else if (isAsked || first === undefined) {
    process.stdout.write(HELP);
  } else {
    throw new UsageError(`unknown command ${JSON.stringify(name)}`);
  }
  return isAsked ? 0 : EXIT_USAGE;
}

/** The help for all commands that start with this word. */
function groupHelp(group: string): string {
  const commands = HELP.split('\n').filter((line) => line.startsWith(`  ${group} `));
  const usage = `Usage: exitwatch ${group} COMMAND [OPTION]…`;
  return [usage, '', 'Commands:', ...commands, '', HELP_TAIL].join('\n');
}

function version(): string {
  const manifest = readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

process.stderr.on('error', () => undefined); // the reader is gone

// If the reader of stdout goes away, exit silently; if the disk is full, report it.
let outputError: NodeJS.ErrnoException | undefined;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return;
  outputError ??= error;
  process.exitCode = EXIT_FAILED;
});

tellMissingAddonBy((message) => {
  process.stderr.write(`exitwatch: ${escapeText(message)}\n`);
});

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = outputError === undefined ? code : EXIT_FAILED;
    if (outputError !== undefined) process.stderr.write(`exitwatch: ${outputError.message}\n`);
  },
  (error: unknown) => {
    process.stderr.write(`exitwatch: ${escapeText(describeError(error))}\n`);
    if (isWrongUsage(error)) {
      process.stderr.write('Run "exitwatch --help" or "exitwatch COMMAND --help" for usage.\n');
    }
    process.exitCode = isWrongUsage(error) ? EXIT_USAGE : EXIT_FAILED;
  },
);
