// Lane: storm

import { readFileSync, readdirSync } from 'node:fs';

import { ExitMonitor, type ExitEvent, type ExitWatch } from '../../src';

import { Crowd } from '../support/crowd';
import { describeForEachFilter } from '../support/filters';
import { LineProcess, program } from '../support/programs';
import { roomForProcesses } from '../support/room';
import { exitOf, exitsOf } from '../support/ends';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

const WATCHED = roomForProcesses(2_000 * ROUNDS);
const STRANGERS = 10_000 * ROUNDS;

/** How often the reader's thread of this process has gone to sleep, counted while it sleeps. */
async function sleepsOfReader(): Promise<number> {
  const asleep = () => {
    const status = readdirSync('/proc/self/task')
      .map((thread) => readFileSync(`/proc/self/task/${thread}/status`, 'utf8'))
      .find((each) => each.startsWith('Name:\texitwatch\n'));
    if (status === undefined) throw new Error('no reader');
    return /^State:\tS/m.test(status) && status;
  };
  const status = await until('the reader to sleep', asleep);
  return Number(/^voluntary_ctxt_switches:\t(\d+)$/m.exec(status)?.[1]);
}

describeForEachFilter((filter) => {
  test(
    `reports many watched processes, even if watches come and go in a storm of ${STRANGERS} other exits`,
    async () => {
      await using crowd = await Crowd.of(WATCHED);
      const { pids } = crowd;
      await using monitor = new ExitMonitor({ canaryIntervalMs: 0 });
      const told: ExitEvent[] = [];
      const gaps: unknown[] = [];
      monitor.on('exit', (event) => told.push(event)).on('gap', (gap) => gaps.push(gap));
      const watches: ExitWatch[] = [];
      for (const pid of pids.slice(0, WATCHED / 2)) watches.push(monitor.watch(pid));
      await monitor.start();
      expect(monitor.stats()).toMatchObject({
        filter,
        watchedSet: filter === 'ebpf' ? 'kernel' : 'user-space',
      });

      // While no watch is added, exits of other processes do not even wake the reader.
      const before = await sleepsOfReader();
      const quiet = new LineProcess(program('storm'), [String(STRANGERS)]);
      expect(await quiet.rest()).toHaveLength(STRANGERS);
      if (filter === 'ebpf') expect(await sleepsOfReader()).toBe(before);

      const storm = new LineProcess(program('storm'), [String(STRANGERS)]);
      for (const pid of pids.slice(WATCHED / 2)) watches.push(monitor.watch(pid));
      // Closes every tenth watch, and later watches the process again.
      const left = watches.filter((_, i) => i % 10 === 0);
      for (const watch of left) watch.close();
      for (const [i, pid] of pids.entries()) {
        if (i % 10 === 0) watches[i] = monitor.watch(pid);
      }
      expect(await storm.rest()).toHaveLength(STRANGERS);
      crowd.end();
      const ends = await exitsOf(watches);

      expect(ends.map(({ pid }) => pid)).toEqual(pids);
      expect(ends.filter(({ exitCode, lossless }, i) => exitCode !== i % 128 || !lossless)).toEqual(
        [],
      );
      for (const watch of left) await expect(exitOf(watch)).rejects.toThrow('closed');
      expect(told).toHaveLength(WATCHED);
      expect(gaps).toEqual([]);
      expect(monitor.stats()).toMatchObject({ received: WATCHED, delivered: WATCHED, watches: 0 });
    },
    60_000 + ROUNDS * 25_000,
  );
});
