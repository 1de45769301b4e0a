// Lane: alone

import { ExitMonitor, type ExitEvent, type ProcessIdentity } from '../../src';

import { exitOf } from '../support/ends';
import { describeForEachFilter } from '../support/filters';
import { itAsRoot } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

const LIVES = 200 * ROUNDS;

type Settings = { scope: 'all' | 'watched'; source: 'auto' | 'connector' | 'pidfd' };

/** The events of processes that exit with this code may be made to come later than the next one's. */
const LATE = 3;

/** An event that may be of either of two processes tells how neither ended. */
const MOST_UNKNOWN = LIVES / 20;

function itTellsEachByItsWatch(
  settings: Settings,
  {
    when = '',
    lateCode,
    mostUnknown = 0,
  }: { when?: string; lateCode?: number; mostUnknown?: number } = {},
): void {
  itAsRoot(
    `each watch reports the end of its own process${when} (${JSON.stringify(settings)})`,
    async () => {
      await using monitor = new ExitMonitor(settings);
      await monitor.start();
      const slow =
        lateCode === undefined
          ? undefined
          : new LineProcess(program('slow-listener'), [String(lateCode), '100']);
      if (slow !== undefined) expect(await slow.line()).toBe('listening');
      const reuse = new LineProcess(program('reuse'), [String(LIVES), '--wait']);
      const ends: Promise<ExitEvent>[] = [];
      const tooLate: Promise<ExitEvent>[] = [];
      const ids = new Set<string>();
      const codes: number[] = [];
      let before: ProcessIdentity | undefined;
      for (let line = await reuse.line(); line !== undefined; line = await reuse.line()) {
        const [pid = 0, code = 0] = line.split(' ').map(Number);
        // Another process already has this pid. Its end must not resolve the earlier watch.
        if (before !== undefined) tooLate.push(exitOf(monitor.watch(before)));
        const watch = monitor.watch(pid);
        before = watch.identity;
        ids.add(watch.identity.id);
        ends.push(exitOf(watch));
        codes.push(code);
        reuse.child.stdin.write('go\n');
      }
      expect(await reuse.ended).toBe(0);
      const told = await Promise.all(ends);
      const unknown = told.filter(({ how }) => how === 'unknown').length;
      expect(unknown).toBeLessThanOrEqual(mostUnknown);
      expect(told.map(({ how, exitCode }, i) => (how === 'unknown' ? codes[i] : exitCode))).toEqual(
        codes,
      );
      expect(told.map(({ id }) => id)).toEqual([...ids]);
      expect(ids.size).toBe(LIVES);
      // A watch of the same identity may get the true end as long as that end is being processed.
      for (const [i, { id, exitCode, how, unknownReason }] of (
        await Promise.all(tooLate)
      ).entries()) {
        expect(id).toBe(told[i]?.id);
        if (how === 'exited') expect(exitCode).toBe(codes[i]);
        else expect(unknownReason).toBe('gone-before-watch');
      }
      const [last = 0] = [before?.pid];
      expect(() => monitor.watch(last)).toThrow('no process has pid');
      slow?.child.stdin.end();
      expect((await slow?.ended) ?? 0).toBe(0);
    },
  );
}

describe('a pid that the kernel gives to one process after another', () => {
  itTellsEachByItsWatch({ scope: 'watched', source: 'pidfd' });
});

describeForEachFilter((filter) => {
  const mostUnknown = filter === 'cbpf' ? MOST_UNKNOWN : 0;
  describe('a pid that the kernel gives to one process after another', () => {
    itTellsEachByItsWatch({ scope: 'watched', source: 'connector' });
    itTellsEachByItsWatch({ scope: 'watched', source: 'auto' });
    for (const source of ['connector', 'auto'] as const) {
      for (const scope of ['watched', 'all'] as const) {
        const late = { when: ', even if its event comes late', lateCode: LATE, mostUnknown };
        itTellsEachByItsWatch({ scope, source }, late);
      }
    }
    itTellsEachByItsWatch({ scope: 'all', source: 'auto' });

    itAsRoot('reports each process, even without a watch', async () => {
      await using monitor = new ExitMonitor({ scope: 'all' });
      const exits: ExitEvent[] = [];
      monitor.on('exit', (event) => exits.push(event));
      await monitor.start();
      const reuse = new LineProcess(program('reuse'), [String(LIVES)]);
      const lines = await reuse.rest();
      expect(await reuse.ended).toBe(0);
      expect(lines).toHaveLength(LIVES);
      const wanted = new Set(lines.map((line) => Number(line.split(' ')[0])));
      // A stranger that took the pid first, and made the program try again, does not count.
      const isOurs = ({ pid, parentPid }: ExitEvent) =>
        wanted.has(pid) && (parentPid === reuse.pid || parentPid === null);
      const told = () => JSON.stringify(exits.filter(({ pid }) => wanted.has(pid)));
      const areReported = () => exits.filter(isOurs).length >= LIVES;
      await until(`${LIVES} exits of process ${[...wanted].join()}`, areReported, told);
      const codes = exits.filter(isOurs).map(({ exitCode }) => exitCode);
      expect(codes.toSorted()).toEqual(lines.map((line) => Number(line.split(' ')[1])).toSorted());
    });
  });
});
