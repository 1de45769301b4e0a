// Lane: storm

import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';

import { ExitMonitor } from '../../src';

import { DyingProcesses, type Death, type DeathName, isEndOf } from '../support/deaths';
import { exitsOf } from '../support/ends';
import { EventLog } from '../support/event-log';
import { itAsRootOfHost } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { ROUNDS } from '../support/rounds';

/** For the first three a pidfd does not show whether a core was written. */
const NAMES: DeathName[] = ['worker-fault-core', 'worker-fault', 'abort', 'exit-7', 'sigterm'];

/** Makes these processes end on one CPU, and leaves the others to the reader. */
function keepToOneProcessor(pids: readonly number[]): void {
  if (cpus().length < 2) return;
  for (const pid of pids) execFileSync('taskset', ['-cp', '1', String(pid)], { stdio: 'ignore' });
}

/**
 * Ends the processes so that their pidfds are ready before their last threads write their records.
 */
async function dieWithLateRecords(dying: DyingProcesses): Promise<Death[]> {
  keepToOneProcessor(dying.pids);
  const late = new LineProcess(program('late-records'), dying.pids.map(String));
  expect(await late.line()).toBe('ready');
  try {
    return await dying.die();
  } finally {
    late.child.stdin.end();
    await late.ended;
  }
}

describe.each(['watched', 'all'] as const)('with scope %s', (scope) => {
  itAsRootOfHost(
    'a dump is reported as waitpid saw it even if the record arrives long after the pidfd',
    async () => {
      await using monitor = new ExitMonitor({ scope });
      const log = new EventLog(monitor);
      expect(await monitor.start()).toMatchObject({ filter: 'ebpf' });
      const all: Death[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const dying = await DyingProcesses.spawn(NAMES, 'now');
        const watches = dying.pids.map((pid) => monitor.watch(pid));
        const deaths = await dieWithLateRecords(dying);
        const ends = await exitsOf(watches);
        for (const end of ends) {
          const death = deaths.find(({ pid }) => pid === end.pid);
          const status = death?.status ?? NaN;
          const told = {
            death: death?.name,
            exitCode: end.exitCode,
            killed: end.signal !== null,
            coreDumped: end.coreDumped,
            lossless: end.lossless,
          };
          expect(told).toEqual({
            death: death?.name,
            exitCode: (status & 0x7f) === 0 ? status >> 8 : null,
            killed: (status & 0x7f) !== 0,
            coreDumped: (status & 0x80) !== 0,
            lossless: true,
          });
        }
        all.push(...deaths);
      }
      // The pidfd resolves the watches, but the record triggers the monitor's event.
      const eventsOf = (death: Death) => log.of(death.pid).filter((each) => isEndOf(death, each));
      await log.until('all exits', () => all.every((death) => eventsOf(death).length > 0));
      // Any other records from that CPU have been written before this one.
      const last = await DyingProcesses.spawn(['exit-0'], 'now');
      keepToOneProcessor(last.pids);
      for (const pid of last.pids) monitor.watch(pid);
      const lastDeaths = await last.die();
      await log.until('the exits of the last processes', () =>
        lastDeaths.every((death) => eventsOf(death).length > 0),
      );
      for (const death of all) expect(eventsOf(death)).toHaveLength(1);
      expect(log.gaps).toEqual([]);
    },
    30_000 + ROUNDS * 5000,
  );
});
