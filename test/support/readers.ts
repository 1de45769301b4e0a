import { readFileSync, readdirSync } from 'node:fs';

/**
 * The number of threads of exitwatch in a process: its readers, and sometimes a canary that is
 * about to end.
 */
export function readerThreads(pid: number | 'self'): number {
  return readdirSync(`/proc/${pid}/task`).filter((thread) => {
    try {
      return readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8') === 'exitwatch\n';
    } catch {
      return false; // it has ended
    }
  }).length;
}

/** epoll_wait(2) and epoll_pwait(2) on x64 and arm64. */
const WAITS = ['232', '281', '22'];

/** Whether a reader of this process is idle and waits for events. */
export function readerSleeps(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).some((thread) => {
    const task = `/proc/${pid}/task/${thread}`;
    try {
      if (readFileSync(`${task}/comm`, 'utf8') !== 'exitwatch\n') return false;
      const [call = ''] = readFileSync(`${task}/syscall`, 'utf8').split(' ');
      return WAITS.includes(call);
    } catch {
      return false; // it has ended
    }
  });
}
