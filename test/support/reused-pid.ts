import { readFileSync, writeFileSync } from 'node:fs';

import { until } from './wait';

/** A stranger that still has the pid after so many tries may keep it. */
const MOST_TRIES = 10;

/**
 * Resolves with the pid of a process that `end` has ended, as soon as `begin` has started another
 * with this pid. Any fork on the host, also one of the kernel for its workers, may take the pid
 * first, and keep it: then `end` is asked for another. Requires root, and no other test beside it.
 */
export function reusedPid(
  end: () => Promise<number>,
  begin: (pid: number) => Promise<boolean>,
): Promise<number> {
  const strangers: string[] = [];
  return until(
    'a process with the pid of an ended one',
    async () => {
      const pid = await end();
      for (let i = 0; i < MOST_TRIES; i++) {
        writeFileSync('/proc/sys/kernel/ns_last_pid', String(pid - 1));
        if (await begin(pid)) return pid;
      }
      strangers.push(`${pid} is in use by ${ownerOf(pid)}`);
      return null;
    },
    () => strangers.join('\n'),
  );
}

function ownerOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return 'nobody any more';
  }
}
