import { type ChildProcess, spawn } from 'node:child_process';

import { reasonOf } from '../../common/errors.js';
import { ownEnvironment } from '../keeper/own-environment.js';

import type { Clock } from './clock.js';
import type { ServiceCommand } from './service-spec.js';

/** How long a command may take that does not say. */
export const DEFAULT_COMMAND_MS = 5000;

/** What a command gets. */
export interface CommandPlace {
  env: Readonly<Record<string, string>>;
  /** Default `/`. */
  cwd?: string | undefined;
}

/**
 * Runs a command to its end. Resolves with `null` if it has exited with 0; otherwise with what it did
 * instead, as it follows its name in a sentence.
 */
export function runCommand(
  { command, args = [], timeoutMs = DEFAULT_COMMAND_MS }: ServiceCommand,
  { env, cwd = '/' }: CommandPlace,
  clock: Clock,
  aborted?: AbortSignal,
): Promise<string | null> {
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = spawn(command, args, {
        env: { ...ownEnvironment(), ...env },
        cwd,
        stdio: 'ignore',
        detached: true,
      });
    } catch (error) {
      resolve(notStarted(error)); // too long, for example: it throws only some errors
      return;
    }
    let isLate = false;
    const kill = () => {
      // Its process group, so that what it has started ends as well.
      try {
        if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has just ended.
      }
    };
    const cancel = clock.after(timeoutMs, () => {
      isLate = true;
      kill();
      // It may wait for a dead disk.
      child.unref();
      done(`took longer than ${timeoutMs} ms`);
    });
    aborted?.addEventListener('abort', kill, { once: true });
    const done = (failure: string | null) => {
      cancel();
      aborted?.removeEventListener('abort', kill);
      resolve(failure);
    };
    child.once('error', (error) => {
      done(notStarted(error));
    });
    child.once('exit', (code, signal) => {
      if (code === 0) done(null);
      else if (isLate) done(`took longer than ${timeoutMs} ms`);
      else done(code === null ? `got ${signal}` : `exited with ${code}`);
    });
  });
}

function notStarted(error: unknown): string {
  return `could not be started: ${reasonOf(error)}`;
}
