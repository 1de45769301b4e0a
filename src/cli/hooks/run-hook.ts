import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

import { ExitwatchError } from '../../common/errors.js';
import { toJsonLine } from '../output/escape.js';

/** How long to wait for a hook. After that it keeps running unattended. */
const MOST_MS = 60_000;

/** What a hook is run for. */
export interface HookCall {
  /** The subject of error messages about the hook. */
  subject: string;
  /** Its environment variables. No value becomes part of a command. */
  environment: NodeJS.ProcessEnv;
  /** The whole event, written to its stdin as a line of JSON. */
  content: object;
  /** Whether this process stays alive until the hook has finished. */
  isAwaited: boolean;
  /** `began`: the process may have run for a while. */
  onStart?: (pid: number, began: Date) => void;
  /** It has ended. */
  onEnd?: (pid: number) => void;
}

/**
 * Runs a shell command. Its output goes to our stderr.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_HOOK`.
 */
export function runHook(command: string, call: HookCall): Promise<void> {
  return new Promise((resolve, reject) => {
    const began = new Date();
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
      fail(`did not finish within ${MOST_MS} ms; exitwatch no longer waits for it`);
      child.unref();
    }, MOST_MS);
    if (!call.isAwaited) {
      timer.unref();
      child.unref();
      (child.stdin as Socket | null)?.unref();
    }
    if (child.pid !== undefined) call.onStart?.(child.pid, began);
    child.on('error', (error) => {
      clearTimeout(timer);
      fail(`cannot be run: ${error.message}`);
    });
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      if (child.pid !== undefined) call.onEnd?.(child.pid);
      if (code === 0) resolve();
      else fail(code === null ? `was killed by ${String(signal)}` : `exited with ${code}`);
    });
    child.stdin?.on('error', () => undefined); // it need not read its stdin
    child.stdin?.end(`${toJsonLine(call.content)}\n`);
  });
}

/** Variables that are meant for this process only. */
const PRIVATE = { NOTIFY_SOCKET: undefined, WATCHDOG_USEC: undefined, WATCHDOG_PID: undefined };
