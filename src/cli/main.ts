#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { escapeText } from './escape.js';
import { UsageError } from './usage-error.js';
import { WATCH_HELP, watchCommand } from './watch.js';

const HELP = `exitwatch tells that processes end, and how.

Usage: exitwatch COMMAND [OPTION]…

Commands:
  watch    prints processes as they end

  --help after a command tells its options; --version tells the version.
`;

/** Wrong usage, as everywhere. */
const EXIT_USAGE = 2;
/** exitwatch itself failed; the number that timeout(1) and env(1) use for it. */
const EXIT_FAILED = 125;

async function main(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  switch (command) {
    case 'watch':
      if (rest.includes('--help') || rest.includes('-h')) {
        process.stdout.write(WATCH_HELP);
        return 0;
      }
      return watchCommand(rest);
    case undefined:
    case 'help':
    case '--help':
    case '-h':
      process.stdout.write(HELP);
      return command === undefined ? EXIT_USAGE : 0;
    case '--version':
    case '-V':
      process.stdout.write(`${version()}\n`);
      return 0;
    default:
      throw new UsageError(`there is no command ${JSON.stringify(command)}`);
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
