// Lane: patient

import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ExitMonitor } from '../../../src';

import { EventLog } from '../../support/event-log';
import { describeForEachFilter } from '../../support/filters';
import { itAsRoot } from '../../support/privilege';
import { LineProcess, run } from '../../support/programs';

/** The pids of the kernel threads that write the journals of ext4 file systems. */
function journalThreads(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commOf(pid).startsWith('jbd2/'))
    .map(Number);
}

function commOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8');
  } catch {
    return '';
  }
}

describeForEachFilter(() => {
  itAsRoot('exits of kernel threads, old and new, are not reported', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-mount-'));
    const image = join(folder, 'image');
    const point = join(folder, 'point');
    mkdirSync(point);
    await run('truncate', ['-s', '16M', image]);
    await run('/sbin/mkfs.ext4', ['-q', image]);
    const before = journalThreads();
    const mount = () => run('mount', ['-o', 'loop', image, point]);
    const newThreads = () => journalThreads().filter((pid) => !before.includes(pid));
    try {
      await mount();
      const old = newThreads();
      await using monitor = new ExitMonitor({ scope: 'all' });
      const log = new EventLog(monitor);
      await monitor.start();
      await run('umount', [point]);
      await mount();
      const young = newThreads();
      await run('umount', [point]);
      expect([old.length, young.length]).toEqual([1, 1]);

      const last = new LineProcess('true', []);
      await last.ended;
      await log.untilAllOf([last.pid]);
      // Another process may have got the pid since. The exit of a kernel thread has no parent.
      const told = [...old, ...young].flatMap((pid) => log.of(pid));
      expect(told.filter(({ parentPid }) => parentPid === null)).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
