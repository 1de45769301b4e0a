import { readFileSync, readdirSync } from 'node:fs';

/** Threads of exitwatch in a process: its readers, and now and then a canary that just ends. */
export function readerThreads(pid: number | 'self'): number {
  return readdirSync(`/proc/${pid}/task`).filter((thread) => {
    try {
      return readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8') === 'exitwatch\n';
    } catch {
      return false; // it has ended meanwhile
    }
  }).length;
}
