import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

import { ExitwatchError } from '../errors.js';
import { shouldRestart, type VmEnd } from '../vm/index.js';

/** A hook may do that much; then it is left alone, and what becomes of it is its own matter. */
const MOST_MS = 60_000;

/**
 * Runs a command of the shell for each end: what it has to know is in its environment, and all of it on its
 * stdin, as one line of JSON. What it prints goes to our stderr.
 */
export function hookCommand(command: string): (end: VmEnd) => Promise<void> {
  return (end) =>
    new Promise((resolve, reject) => {
      const child = spawn(command, {
        shell: true,
        stdio: ['pipe', 2, 2],
        env: { ...process.env, ...environment(end) },
      });
      const fail = (what: string) => {
        const detail = `the hook for ${JSON.stringify(end.stop.name)} ${what}`;
        reject(new ExitwatchError('ERR_EXITWATCH_HOOK', detail));
      };
      // Nobody waits for it but who has other things to do as well.
      const timer = setTimeout(() => {
        fail(`has not ended after ${MOST_MS} ms, and is not waited for`);
      }, MOST_MS).unref();
      child.unref();
      (child.stdin as Socket | null)?.unref();
      child.on('error', (error) => {
        clearTimeout(timer);
        fail(`cannot be run: ${error.message}`);
      });
      child.on('exit', (code, signal) => {
        clearTimeout(timer);
        if (code === 0) resolve();
        else fail(code === null ? `was killed by ${String(signal)}` : `has failed with ${code}`);
      });
      child.stdin?.on('error', () => undefined); // it need not read that
      child.stdin?.end(`${JSON.stringify({ ...end.stop, ...end, stop: undefined })}\n`);
    });
}

function environment({ id, group, isRepeated, identity, stop }: VmEnd): NodeJS.ProcessEnv {
  const { exit } = stop;
  return {
    // Meant for us alone.
    NOTIFY_SOCKET: undefined,
    WATCHDOG_USEC: undefined,
    WATCHDOG_PID: undefined,
    EXITWATCH_ID: id,
    EXITWATCH_NAME: stop.name,
    EXITWATCH_PID: String(identity?.pid ?? ''),
    EXITWATCH_CAUSE: stop.cause,
    EXITWATCH_USER_SHUTDOWN: String(stop.userShutdown ?? 'unknown'),
    EXITWATCH_INITIATOR: stop.initiator,
    EXITWATCH_CERTAINTY: stop.certainty,
    EXITWATCH_CANDIDATES: stop.candidates.join(' '),
    EXITWATCH_RESTART: String(shouldRestart(stop).restart ?? 'unknown'),
    EXITWATCH_SUMMARY: stop.summary,
    EXITWATCH_EXIT_CODE: String(exit?.exitCode ?? ''),
    EXITWATCH_SIGNAL: exit?.signal ?? '',
    EXITWATCH_GROUP: group ?? '',
    EXITWATCH_REPEATED: String(isRepeated),
  };
}
