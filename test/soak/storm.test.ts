// Lane: storm

import { ExitMonitor, type ExitEvent } from '../../src';

import { LATE_STAMP_NS } from '../support/deaths';
import { describeForEachFilter } from '../support/filters';
import { LineProcess, program } from '../support/programs';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

const EXITS = 10_000 * ROUNDS;

function nanoseconds(event: ExitEvent): number {
  return event.exitedNs ?? NaN;
}

/** The differences from the storm's report, child by child: `PID REAPED_NS`. */
function compare(report: readonly string[], exits: readonly ExitEvent[], stormPid: number) {
  const byPid = new Map<number, ExitEvent[]>();
  for (const event of exits.toSorted((a, b) => nanoseconds(a) - nanoseconds(b))) {
    const events = byPid.get(event.pid);
    if (events === undefined) byPid.set(event.pid, [event]);
    else events.push(event);
  }
  const missing: unknown[] = [];
  const wrong: unknown[] = [];
  let beforeNs = 0;
  for (const [i, line] of report.entries()) {
    const [pid = 0, reapedNs = 0] = line.split(' ').map(Number);
    // Pids repeat, within the storm and among other processes: the right event is the first one
    // after the previous child was reaped.
    const events = byPid.get(pid) ?? [];
    const index = events.findIndex((event) => nanoseconds(event) > beforeNs);
    const [event] = index < 0 ? [] : events.splice(index, 1);
    if (event === undefined || nanoseconds(event) > reapedNs + LATE_STAMP_NS) {
      missing.push({ i, pid, event });
    } else if (event.how !== 'exited' || event.exitCode !== i % 128 || !event.lossless) {
      wrong.push({ i, pid, event });
    }
    beforeNs = reapedNs;
  }
  const twice = [...byPid.values()].flat().filter(({ parentPid }) => parentPid === stormPid);
  return { missing, wrong, twice };
}

describeForEachFilter((filter) => {
  test(`reports every exit in a storm of ${EXITS} with its status, with the main thread blocked for 3 s`, async () => {
    await using monitor = new ExitMonitor({ scope: 'all' });
    const gaps: unknown[] = [];
    const exits: ExitEvent[] = [];
    monitor.on('gap', (gap) => gaps.push(gap));
    monitor.on('exit', (event) => exits.push(event));
    expect(await monitor.start()).toMatchObject({ filter });
    const storm = new LineProcess(program('storm'), [String(EXITS)]);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
    const report = await storm.rest();
    expect(await storm.ended).toBe(0);
    expect(report).toHaveLength(EXITS);

    let compared = 0;
    let result = compare(report, [], storm.pid);
    const areReported = () => {
      if (exits.length > compared) result = compare(report, exits, storm.pid);
      compared = exits.length;
      return result.missing.length === 0;
    };
    const missing = () => `missing: ${JSON.stringify(result.missing.slice(0, 20))}`;
    await until('the exits of the storm', areReported, missing);
    expect(result).toEqual({ missing: [], wrong: [], twice: [] });
    expect(gaps).toEqual([]);
    expect(monitor.stats()).toMatchObject({ lost: 0, gaps: 0, rejected: 0 });
  });
});
