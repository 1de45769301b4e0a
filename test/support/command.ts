import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { LineProcess, REPOSITORY } from './programs';
import { readerSleeps } from './readers';
import { until } from './wait';

export const MAIN = join(REPOSITORY, 'dist', 'cli', 'main.js');

/** Starts the command. */
export function exitwatch(...args: string[]): LineProcess {
  return new LineProcess(process.execPath, [MAIN, ...args]);
}

/** The output and exit code of a call. `before` is a command that runs it. */
export async function callWith(before: readonly string[], ...args: string[]) {
  const [first = '', ...rest] = [...before, process.execPath, MAIN, ...args];
  const command = new LineProcess(first, rest);
  const lines = await command.rest();
  return { code: await command.ended, lines, stderr: command.stderr };
}

export function call(...args: string[]) {
  return callWith([], ...args);
}

/**
 * Resolves when the command's reader waits for events: by then it listens and has made its watches.
 */
export async function watching({ pid, child, told }: LineProcess): Promise<void> {
  const watches = () => {
    if (child.exitCode !== null) return true;
    try {
      return readerSleeps(pid);
    } catch {
      return true; // it has ended
    }
  };
  await until(`the reader of process ${pid} to wait for events`, watches, told);
}

/**
 * An environment in which the command is in the PATH under its own name, as if it were installed,
 * and the folder that has it.
 */
export function installCommand(folder: string): { env: NodeJS.ProcessEnv; bin: string } {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const command = `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`;
  writeFileSync(join(bin, 'exitwatch'), command, { mode: 0o755 });
  return { env: { ...process.env, PATH: `${bin}:${process.env['PATH'] ?? ''}` }, bin };
}
