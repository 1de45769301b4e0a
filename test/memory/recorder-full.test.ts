// Lane: alone

import { setTimeout } from 'node:timers/promises';

import { ExitMonitor, type ExitEvent, type Gap } from '../../src';

import { MemoryFolder } from '../support/bpffs';
import { itAsRecorder } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { isOfStorms } from '../support/storms';
import { until } from '../support/wait';

const RING_BYTES = 64 * 1024;

interface Told {
  monitor: ExitMonitor;
  exits: ExitEvent[];
  gaps: Gap[];
}

async function open(memory: MemoryFolder, ringBytes: number): Promise<Told> {
  const { stateDir, recorder } = memory.options;
  const monitor = new ExitMonitor({
    ...{ scope: 'all', stateDir, recorder: { ...recorder, ringBytes, signalBytes: ringBytes } },
  });
  const [exits, gaps]: [ExitEvent[], Gap[]] = [[], []];
  monitor.on('exit', (event) => exits.push(event)).on('gap', (gap) => gaps.push(gap));
  expect(await monitor.start()).toMatchObject({ memory: 'recorder' });
  return { monitor, exits, gaps };
}

itAsRecorder(
  'ES-15: exits that do not fit are counted, with the first and the last time',
  async () => {
    using small = new MemoryFolder();
    using large = new MemoryFolder();
    await (await open(large, 4 * 1024 * 1024)).monitor.close();
    await (await open(small, RING_BYTES)).monitor.close();
    const since = Date.now();
    const storm = new LineProcess(program('storm'), ['2000']);
    const report = await storm.rest();
    const isChild = isOfStorms([storm.pid], report);
    expect(await storm.ended).toBe(0);

    const told = await open(small, RING_BYTES);
    const all = await open(large, 4 * 1024 * 1024);
    const isOfStorm = (event: ExitEvent) => isChild(event) && event.exitedAt.getTime() >= since - 1;
    await until('the storm', () => all.exits.filter(isOfStorm).length === report.length);
    expect(all.gaps).toEqual([]);
    await until('a gap', () => told.gaps.length > 0);
    const ids = new Set(told.exits.map(({ id }) => id));
    // The ring may still have been full when the stream began: then there is another gap for strangers.
    const [gap] = told.gaps;
    const until_ = gap?.to.getTime() ?? 0;
    const missingUntil = (ms: number) =>
      all.exits.filter(
        ({ id, exitedAt }) =>
          !ids.has(id) && exitedAt.getTime() >= since && exitedAt.getTime() <= ms,
      );
    const missing = missingUntil(until_ + 1);
    expect(missing.length).toBeGreaterThan(1000);
    expect(gap).toMatchObject({ reason: 'recorder-full', recovered: 0 });
    // A gap ends with a millisecond, and an exit is told with the one in which it began. What is missing within the
    // gap's last one may be of the next gap.
    expect(gap?.lost).toBeGreaterThanOrEqual(missingUntil(until_ - 2).length);
    expect(gap?.lost).toBeLessThanOrEqual(missing.length);
    const [first, last] = [missing[0], missing.at(-1)].map(
      (event) => event?.exitedAt.getTime() ?? 0,
    );
    expect(Math.abs((gap?.from.getTime() ?? 0) - (first ?? 0))).toBeLessThanOrEqual(2);
    expect(Math.abs(until_ - (last ?? 0))).toBeLessThanOrEqual(2);
    // In their order, and before what is seen live.
    const recorded = told.exits.filter(({ source }) => source === 'recorder');
    const times = recorded.map(({ exitedNs }) => exitedNs ?? NaN);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    await told.monitor.close({ forget: true });
    await all.monitor.close({ forget: true });
  },
);

itAsRecorder.each([
  ['for two seconds', 4000],
  ['as long as it is counted', 14_000],
])(
  'ES-15: of what does not fit while the live stream begins, only what it has not delivered is lost: a storm %s',
  async (_, count) => {
    using small = new MemoryFolder();
    using large = new MemoryFolder();
    const all = await open(large, 4 * 1024 * 1024);
    await (await open(small, RING_BYTES)).monitor.close();
    const filling = new LineProcess(program('storm'), ['1000']);
    const filled = await filling.rest();
    const storm = new LineProcess(program('storm'), [String(count), '2000']);
    const told = await open(small, RING_BYTES);
    const isOfThem = isOfStorms([filling.pid, storm.pid], [...filled, ...(await storm.rest())]);
    await until('the storms', () => all.exits.filter(isOfThem).length === 1000 + count);
    const isAfter = (exits: readonly ExitEvent[], last: ExitEvent | undefined) =>
      exits.some(({ id }) => id === last?.id);
    await until('the last exit', () => isAfter(told.exits, all.exits.findLast(isOfThem)));
    // It tells what was lost meanwhile, if anything was, within a few seconds.
    await setTimeout(5000);

    const lost = told.gaps.reduce((sum, gap) => sum + (gap.lost ?? NaN), 0);
    // Exits on different processors are not delivered in their order.
    const times = (exits: readonly ExitEvent[]) => exits.flatMap(({ exitedNs }) => exitedNs ?? []);
    const until_ = Math.max(...times(told.exits));
    const since = Math.min(...times(all.exits.filter(isOfThem)));
    const ids = new Set(told.exits.map(({ id }) => id));
    // The recorder and the stream of the large one may both have had an exit when it began.
    const missing = new Set(
      all.exits
        .filter(({ exitedNs }) => (exitedNs ?? NaN) >= since && (exitedNs ?? NaN) <= until_)
        .map(({ id }) => id)
        .filter((id) => !ids.has(id)),
    );
    expect({ lost, reasons: told.gaps.map(({ reason }) => reason) }).toEqual({
      lost: missing.size,
      reasons: told.gaps.map(() => 'recorder-full'),
    });
    await told.monitor.close({ forget: true });
    await all.monitor.close({ forget: true });
  },
);

itAsRecorder('what the live stream has delivered is not lost, even if it did not fit', async () => {
  using memory = new MemoryFolder();
  const first = await open(memory, RING_BYTES);
  const storm = new LineProcess(program('storm'), ['3000']);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
  const isOfStorm = isOfStorms([storm.pid], await storm.rest());
  await until('the storm', () => first.exits.filter(isOfStorm).length === 3000);
  await first.monitor.close();
  expect(first.gaps).toEqual([]);

  const next = await open(memory, RING_BYTES);
  const { pid } = new LineProcess('true', []);
  await until('an exit', () => next.exits.some((event) => event.pid === pid));
  expect(next.exits.filter(isOfStorm)).toEqual([]);
  // Strangers may exit between the two monitors, while it is still full.
  const lost = next.gaps.reduce((sum, gap) => sum + (gap.lost ?? NaN), 0);
  expect(lost).toBeLessThan(100);
  await next.monitor.close({ forget: true });
});
