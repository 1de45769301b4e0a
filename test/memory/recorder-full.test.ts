import { setTimeout } from 'node:timers/promises';

import { ExitMonitor, type ExitEvent, type Gap } from '../../src';

import { MemoryFolder } from '../support/bpffs';
import { Crowd } from '../support/crowd';
import { exitsOf } from '../support/ends';
import { itAsRootOfHost } from '../support/privilege';
import { LineProcess, program, run } from '../support/programs';
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

itAsRootOfHost(
  'ES-15: exits that do not fit are counted, with the first and the last time',
  async () => {
    using small = new MemoryFolder();
    using large = new MemoryFolder();
    await (await open(large, 4 * 1024 * 1024)).monitor.close();
    await (await open(small, RING_BYTES)).monitor.close();
    const since = Date.now();
    const storm = new LineProcess(program('storm'), ['2000']);
    const pids = (await storm.rest()).map((line) => Number(line.split(' ')[0]));
    expect(await storm.ended).toBe(0);

    const told = await open(small, RING_BYTES);
    const all = await open(large, 4 * 1024 * 1024);
    const isOfStorm = ({ parentPid, exitedAt }: ExitEvent) =>
      parentPid === storm.pid && exitedAt.getTime() >= since - 1;
    await until('the storm', () => all.exits.filter(isOfStorm).length === pids.length);
    expect(all.gaps).toEqual([]);
    await until('a gap', () => told.gaps.length > 0);
    const ids = new Set(told.exits.map(({ id }) => id));
    // The ring may still have been full when the stream began: then there is another gap for strangers.
    const [gap] = told.gaps;
    const until_ = gap?.to.getTime() ?? 0;
    const missing = all.exits.filter(
      ({ id, exitedAt }) =>
        !ids.has(id) && exitedAt.getTime() >= since && exitedAt.getTime() <= until_ + 1,
    );
    expect(missing.length).toBeGreaterThan(1000);
    expect(gap).toMatchObject({ reason: 'recorder-full', lost: missing.length, recovered: 0 });
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

itAsRootOfHost(
  'ES-15: of what does not fit while the live stream begins, only what it has not delivered is lost',
  async () => {
    using small = new MemoryFolder();
    using large = new MemoryFolder();
    const all = await open(large, 4 * 1024 * 1024);
    await (await open(small, RING_BYTES)).monitor.close();
    const filling = new LineProcess(program('storm'), ['1000']);
    await filling.rest();
    const storm = new LineProcess(program('storm'), ['4000', '2000']);
    const told = await open(small, RING_BYTES);
    await storm.rest();
    const pids = new Set([filling.pid, storm.pid]);
    const isOfStorms = ({ parentPid }: ExitEvent) => parentPid !== null && pids.has(parentPid);
    await until('the storms', () => all.exits.filter(isOfStorms).length === 5000);
    const isAfter = (exits: readonly ExitEvent[], last: ExitEvent | undefined) =>
      exits.some(({ id }) => id === last?.id);
    await until('the last exit', () => isAfter(told.exits, all.exits.findLast(isOfStorms)));
    // It tells what was lost meanwhile, if anything was, within a few seconds.
    await setTimeout(5000);

    const lost = told.gaps.reduce((sum, gap) => sum + (gap.lost ?? NaN), 0);
    const until_ = told.exits.at(-1)?.exitedNs ?? NaN;
    const since = all.exits.find(isOfStorms)?.exitedNs ?? NaN;
    const ids = new Set(told.exits.map(({ id }) => id));
    const missing = all.exits.filter(
      ({ id, exitedNs }) =>
        !ids.has(id) && (exitedNs ?? NaN) >= since && (exitedNs ?? NaN) <= until_,
    );
    expect({ lost, reasons: told.gaps.map(({ reason }) => reason) }).toEqual({
      lost: missing.length,
      reasons: told.gaps.map(() => 'recorder-full'),
    });
    await told.monitor.close({ forget: true });
    await all.monitor.close({ forget: true });
  },
);

itAsRootOfHost(
  'what the live stream has delivered is not lost, even if it did not fit',
  async () => {
    using memory = new MemoryFolder();
    const first = await open(memory, RING_BYTES);
    const storm = new LineProcess(program('storm'), ['3000']);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
    await storm.rest();
    const isOfStorm = ({ parentPid }: ExitEvent) => parentPid === storm.pid;
    await until('the storm', () => first.exits.filter(isOfStorm).length === 3000);
    await first.monitor.close();
    expect(first.gaps).toEqual([]);

    const next = await open(memory, RING_BYTES);
    const { pid } = new LineProcess('true', []);
    await until('an exit', () => next.exits.some((event) => event.pid === pid));
    expect(next.exits.filter(isOfStorm)).toEqual([]);
    expect(next.gaps).toEqual([]);
    await next.monitor.close({ forget: true });
  },
);

itAsRootOfHost.each(['watched', 'all'] as const)(
  'scope %s: floods of signals and of exits take nothing from what is watched',
  async (scope) => {
    using memory = new MemoryFolder();
    await using crowd = await Crowd.of(500);
    const { stateDir, recorder } = memory.options;
    const options = {
      ...{ scope, stateDir },
      recorder: { ...recorder, ringBytes: RING_BYTES, signalBytes: RING_BYTES },
    };
    const monitor = new ExitMonitor(options);
    await monitor.start();
    for (const pid of crowd.pids) monitor.watch(pid);
    await monitor.close();
    const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups', '--bounding-set=-all'];
    await run('setpriv', [...nobody, program('flood'), '1000000']);
    const storm = new LineProcess(program('storm'), ['5000']);
    await storm.rest();
    const killer = new LineProcess('sh', ['-c', `kill -TERM ${crowd.pids.join(' ')}`]);
    expect(await killer.ended).toBe(0);
    crowd.end();
    await crowd.reaped();

    const next = new ExitMonitor(options);
    const { restored } = await next.start();
    const ends = await exitsOf(restored);
    expect(ends.map(({ pid }) => pid)).toEqual(crowd.pids);
    const wrong = ends.filter(
      ({ signal, sender }) => signal !== 'SIGTERM' || sender?.pid !== killer.pid,
    );
    expect(wrong).toEqual([]);
    if (scope === 'watched') expect(ends.filter(({ traced }) => !traced)).toEqual([]);
    await next.close({ forget: true });
  },
);
