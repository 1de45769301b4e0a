import { readFileSync, readlinkSync } from 'node:fs';

import { ExitwatchError } from '../common/errors.js';

/** Why a pid has no process: it is unused, or belongs to something else. */
export type Absence = 'none' | 'thread' | 'kernel-thread';

/**
 * The pid of the process that a thread belongs to (`Tgid` of proc_pid_status(5)); for a process,
 * its own pid. `null` if it cannot be read. @internal
 */
export function threadGroupOf(thread: number): number | null {
  const group = Number(field(thread, 'Tgid'));
  return Number.isInteger(group) && group > 0 ? group : null;
}

/** The error that says what has this pid instead of a process. @internal */
export function absenceError(pid: number, found: Absence): ExitwatchError {
  switch (found) {
    case 'none':
      return new ExitwatchError('ERR_EXITWATCH_NO_SUCH_PROCESS', `no process has pid ${pid}`);
    case 'kernel-thread':
      return new ExitwatchError(
        'ERR_EXITWATCH_KERNEL_THREAD',
        `pid ${pid} is a kernel thread${inParentheses(field(pid, 'Name'))}, not a process`,
      );
    case 'thread':
      return threadError(pid);
  }
}

function threadError(pid: number): ExitwatchError {
  const group = threadGroupOf(pid);
  if (group === null || group === pid) {
    return new ExitwatchError(
      'ERR_EXITWATCH_THREAD',
      `${pid} is the id of a thread, not of a process`,
      { remedy: 'use the pid of its process: Tgid in /proc/ID/status' },
    );
  }
  return new ExitwatchError(
    'ERR_EXITWATCH_THREAD',
    `${pid} is a thread of process ${group}${inParentheses(field(group, 'Name'))}`,
    { remedy: `use pid ${group} if you mean that process` },
  );
}

function inParentheses(name: string | null): string {
  return name === null ? '' : ` (${name})`;
}

function field(task: number, name: 'Name' | 'Tgid'): string | null {
  try {
    // The /proc of another pid namespace numbers processes differently.
    if (readlinkSync('/proc/self') !== String(process.pid)) return null;
    const status = readFileSync(`/proc/${task}/status`, 'utf8');
    return new RegExp(`^${name}:\\t(.*)$`, 'm').exec(status)?.[1] ?? null;
  } catch {
    return null; // it has exited in the meantime, or is hidden
  }
}
