import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

import { ExitwatchError } from '../../common/errors.js';
import { toJsonLine } from '../output/escape.js';

/** A hook may do that much; then it is left alone, and what becomes of it is its own matter. */
const MOST_MS = 60_000;

/** What a hook is run for. */
export interface HookCall {
  /** For whom, or what: in what is said of its failure. */
  subject: string;
  /** What it has to know. Nothing of it becomes part of a command. */
  environment: NodeJS.ProcessEnv;
  /** All of it, for its stdin: a line of JSON. */
  content: object;
  /** Whether this process lives on for it. */
  isAwaited: boolean;
  onStart?: (pid: number) => void;
}

/**
 * Runs a command of the shell. What it prints goes to our stderr.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_HOOK`.
 */
export function runHook(command: string, call: HookCall): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, {
      shell: true,
      stdio: ['pipe', 2, 2],
      env: { ...process.env, ...PRIVATE, ...call.environment },
    });
    const fail = (what: string) => {
      const detail = `the hook for ${call.subject} ${what}`;
      reject(new ExitwatchError('ERR_EXITWATCH_HOOK', detail));
    };
    const timer = setTimeout(() => {
      fail(`has not ended after ${MOST_MS} ms, and is not waited for`);
      child.unref();
    }, MOST_MS);
    if (!call.isAwaited) {
      timer.unref();
      child.unref();
      (child.stdin as Socket | null)?.unref();
    }
    if (child.pid !== undefined) call.onStart?.(child.pid);
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
    child.stdin?.end(`${toJsonLine(call.content)}\n`);
  });
}

/** Meant for us alone. */
const PRIVATE = { NOTIFY_SOCKET: undefined, WATCHDOG_USEC: undefined, WATCHDOG_PID: undefined };
