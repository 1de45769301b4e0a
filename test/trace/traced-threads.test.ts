// Lane: patient

import { ExitMonitor, type ExitEvent } from '../../src';

import { exitOf } from '../support/ends';
import { EventLog } from '../support/event-log';
import { describeForEachFilter } from '../support/filters';
import { LineProcess, program } from '../support/programs';

/** The latest time of the end that the event allows, on CLOCK_MONOTONIC. */
function latestNs(event: ExitEvent | undefined): number {
  if (event === undefined) return NaN;
  const clockNs = Date.now() * 1e6 - Number(process.hrtime.bigint());
  return event.exitedNs ?? event.exitedAt.getTime() * 1e6 - clockNs + 2e6;
}

const STATUS = { 'first-left': 9 << 8, 'first-stays': 7 << 8 };

const SETTINGS = [
  { scope: 'all', source: 'auto' },
  { scope: 'all', source: 'connector' },
  { scope: 'watched', source: 'auto' },
  { scope: 'watched', source: 'connector' },
] as const;

function describeTraced(
  settings: { scope: 'all' | 'watched'; source: 'auto' | 'connector' | 'pidfd' },
  ready: object,
): void {
  describe(JSON.stringify(settings), () => {
    for (const way of ['first-left', 'first-stays'] as const) {
      test(`a process whose dead thread is held by a tracer ends when the tracer detaches (${way})`, async () => {
        await using monitor = new ExitMonitor(settings);
        const log = new EventLog(monitor);
        expect(await monitor.start()).toMatchObject(ready);
        const traced = new LineProcess(program('traced'), [way, '200']);
        const pid = Number(await traced.line());
        const watch = monitor.watch(pid);
        traced.child.stdin.write('\n');
        expect(await traced.line()).toBe('held');
        const [, status, releasedNs] = ((await traced.line()) ?? '').split(' ').map(Number);
        expect(status).toBe(STATUS[way]);
        const event = await exitOf(watch);
        expect(event).toMatchObject({ how: 'exited', exitCode: STATUS[way] >> 8, lossless: true });
        expect(latestNs(event)).toBeGreaterThanOrEqual(releasedNs ?? NaN);

        const last = new LineProcess('true', []);
        const end = monitor.watch(last.pid);
        await exitOf(end);
        expect(log.of(pid)).toHaveLength(1);
      });

      test(`a process whose thread was dead before the monitor started also ends when the tracer detaches (${way})`, async () => {
        const traced = new LineProcess(program('traced'), [way, '0']);
        const pid = Number(await traced.line());
        traced.child.stdin.write('\n');
        expect(await traced.line()).toBe('held');
        await using monitor = new ExitMonitor(settings);
        const log = new EventLog(monitor);
        if (settings.scope === 'watched') monitor.watch(pid);
        await monitor.start();
        traced.child.stdin.write('\n');
        const [, status] = ((await traced.line()) ?? '').split(' ').map(Number);
        expect(status).toBe(STATUS[way]);
        await log.untilAllOf([pid]);
        expect(log.of(pid)).toEqual([
          expect.objectContaining({ how: 'exited', exitCode: STATUS[way] >> 8 }),
        ]);
      });
    }
  });
}

describeTraced({ scope: 'watched', source: 'pidfd' }, { source: 'pidfd' });

describeForEachFilter((filter) => {
  for (const settings of SETTINGS) describeTraced(settings, { source: 'connector', filter });

  test('a tracer that detaches at once does not hide the status', async () => {
    const COUNT = 500;
    await using monitor = new ExitMonitor({ scope: 'all' });
    const log = new EventLog(monitor);
    await monitor.start();
    const tracer = new LineProcess(program('quick-tracer'), [String(COUNT)]);
    const lines = (await tracer.rest()).map((line) => line.split(' ').map(Number));
    expect(lines).toHaveLength(COUNT);
    await log.untilAllOf(lines.map(([pid = 0]) => pid));
    const wrong = lines.filter(([pid = 0, status = -1]) => {
      const ours = log.of(pid).filter(({ parentPid }) => [tracer.pid, null].includes(parentPid));
      return ours.length !== 1 || ours[0]?.exitCode !== status >> 8;
    });
    expect(wrong).toEqual([]);
  });
});
