#!/usr/bin/env node
import { writeFileSync } from 'node:fs';

import { tellMissingAddonBy } from '../native/addon-warning.js';

import { describeError, exitCodeOf, isWrongUsage } from './output/error-text.js';
import { escapeText } from './output/escape.js';
import { EXIT_FAILED, EXIT_USAGE } from './output/exit-codes.js';
import { UsageError } from './args/usage-error.js';
import { COMMANDS } from './commands.js';
import { version } from './version.js';

const HELP_TAIL = `  --help after a command explains its options; --version prints the version.
`;

const HELP = `exitwatch reports when processes end, how they end, and who ended them.

Usage: exitwatch COMMAND [OPTION]…

Commands:
  watch          prints processes as they end
  wait           waits until a process ends, and exits as it did
  stop           stops a process, and exits when it has ended
  alive          reports whether a process is alive
  record         writes down which processes end, how, and who ended them
  why            tells how a process ended, and who ended it, from that
  history        prints what was written down
  supervise      keeps the services of a configuration running
  service list   prints what it keeps running, and how each service ended
  service start  starts services
  service restart  stops and starts services
  service stop   stops services, until they are started
  service logs   prints the output of a service
  service why    tells how a service ended, who ended it, and what followed
  service apply  reads the configuration again, and shows what changes
  service upgrade-keeper  replaces the running keeper by the installed one
  service import  makes a configuration from one of pm2 or supervisord
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
  memory         lists, creates and removes recorders of exits
  doctor         reports what works here, what limits it, and what to do
  build-native   compiles the native addon, if the package has no binary for it

${HELP_TAIL}`;

/** Their commands have two words. */
const GROUPS: readonly string[] = ['service', 'vm', 'intent'];

const HELP_WORDS: readonly (string | undefined)[] = ['help', '--help', '-h'];

/** So that its own ends can be told from those of other programs that Node.js runs. */
function takeName(): void {
  try {
    writeFileSync('/proc/self/comm', 'exitwatch-cli');
  } catch {
    // There is no /proc.
  }
}

async function main(args: readonly string[]): Promise<number> {
  const words = GROUPS.includes(args[0] ?? '') && args.length > 1 ? 2 : 1;
  const name = args.length === 0 ? undefined : args.slice(0, words).join(' ');
  const rest = args.slice(words);
  const load = COMMANDS.get(name ?? '');
  if (load !== undefined) {
    const command = await load();
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

takeName();
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
    process.exitCode = exitCodeOf(error);
  },
);
