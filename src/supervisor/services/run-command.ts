import { type ChildProcess, spawn } from 'node:child_process';

import { ownEnvironment } from '../keeper/own-environment.js';

import type { Clock } from './clock.js';
import type { ServiceCommand } from './service-spec.js';

/** How long a command may take that does not say. */
export const DEFAULT_COMMAND_MS = 5000;

/**
 * Runs a command to its end. Resolves with its exit code; with `null` if it could not start, was
 * killed, or took too long, in which case it is killed.
 */
export function runCommand(
  { command, args = [], timeoutMs = DEFAULT_COMMAND_MS }: ServiceCommand,
  env: Readonly<Record<string, string>>,
  clock: Clock,
  aborted?: AbortSignal,
): Promise<number | null> {
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = spawn(command, args, {
        env: { ...ownEnvironment(), ...env },
        cwd: '/',
        stdio: 'ignore',
        detached: true,
      });
    } catch {
      resolve(null); // too long, for example: it throws only some errors
      return;
    }
    const kill = () => {
      // Its process group, so that what it has started ends as well.
      try {
        if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has just ended.
      }
    };
    const cancel = clock.after(timeoutMs, kill);
    aborted?.addEventListener('abort', kill, { once: true });
    const done = (code: number | null) => {
      cancel();
      aborted?.removeEventListener('abort', kill);
      resolve(code);
    };
    child.once('error', () => {
      done(null);
    });
    child.once('exit', done);
  });
}
