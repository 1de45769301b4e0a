import { readFileSync, statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

import { pids } from './pids.js';
import type { ProcessRow, ProcessTable, Lookup } from './process-table.js';

/** USER_HZ, the unit of times in /proc on every architecture that Node.js supports. */
const TICKS_PER_SECOND = 100;

/** PF_KTHREAD of the kernel's sched.h. */
const KERNEL_THREAD = 0x00200000;

/** How many files to read before yielding to the event loop. */
const AT_ONCE = 200;

/** Fields of proc_pid_stat(5) after the name, which may contain spaces and parentheses. */
enum Field {
  state,
  parentPid,
  groupId,
  sessionId,
  flags = 6,
  threads = 17,
  startTicks = 19,
}

/** Linux: reads /proc directly. */
export class ProcTable implements ProcessTable {
  readonly by = '/proc';
  readonly startTolerance = 0;

  lookNow(pid: number): Lookup | null {
    return this.#look(pid, true);
  }

  #look(pid: number, withOwner: boolean): Lookup | null {
    let text;
    try {
      text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    } catch (error) {
      // ESRCH: it exited while it was read.
      const { code } = error as NodeJS.ErrnoException;
      return code === 'ENOENT' || code === 'ESRCH' ? null : 'unknown';
    }
    return isChanging(text)
      ? 'unknown'
      : (parseStat(text, withOwner ? uidOf(pid) : null) ?? 'unknown');
  }

  look(pids: readonly number[]): Promise<Map<number, Lookup>> {
    return this.#lookAt(pids, false);
  }

  async #lookAt(pids: readonly number[], withOwner: boolean): Promise<Map<number, Lookup>> {
    checkThatItIsThere();
    const seen = new Map<number, Lookup>();
    let left = AT_ONCE;
    for (const pid of pids) {
      const lookup = this.#look(pid, withOwner);
      if (lookup !== null) seen.set(pid, lookup);
      if (--left > 0) continue;
      left = AT_ONCE;
      await setImmediate();
    }
    return seen;
  }

  list(): Promise<Map<number, Lookup>> {
    return this.#lookAt(pids(), true);
  }

  startTime(startTicks: number): Date {
    const [uptimeSeconds = ''] = readFileSync('/proc/uptime', 'latin1').split(' ');
    const age = Number(uptimeSeconds) - startTicks / TICKS_PER_SECOND;
    return new Date(Date.now() - Math.max(0, age * 1000));
  }
}

/**
 * Whether the process is being released, or a thread that calls exec is replacing the first thread.
 * In both cases it briefly looks dead, whether it is or not.
 */
function isChanging(text: string): boolean {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const state = fields[Field.state] ?? '';
  return /^[Xx]/.test(state) || (state === 'Z' && fields[Field.threads] === '0');
}

/** With an empty /proc, every process would look gone. */
function checkThatItIsThere(): void {
  readFileSync('/proc/self/stat');
}

function uidOf(pid: number): number | null {
  try {
    return statSync(`/proc/${pid}`).uid;
  } catch {
    return null;
  }
}

/** `null`: this is not the content of a stat file. @internal */
export function parseStat(text: string, uid: number | null): ProcessRow | null {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  const pid = Number(text.slice(0, open));
  const fields = text.slice(close + 2).split(' ');
  const number = (field: Field) => Number(fields[field]);
  const state = fields[Field.state];
  const startTicks = number(Field.startTicks);
  if (open < 1 || close < open || !Number.isInteger(pid) || !Number.isInteger(startTicks)) {
    return null;
  }
  return {
    pid,
    parentPid: number(Field.parentPid),
    groupId: number(Field.groupId),
    sessionId: number(Field.sessionId),
    name: text.slice(open + 1, close),
    uid,
    startTicks,
    // In a living process, the first thread may be a zombie.
    isDead: state === 'Z' && number(Field.threads) === 1,
    isKernelThread: (number(Field.flags) & KERNEL_THREAD) !== 0,
  };
}
