import { ExitMonitor, type ExitEvent } from '../src';

import { LineProcess, program } from './support/programs';

const EXITS = 50_000;

/** How much later than waitpid's return the kernel may stamp an exit, if it was preempted. */
const LATE_STAMP_NS = 100e6;

test('50,000 exits in a storm, with the main thread blocked for 3 s, are all told, each with its status', async () => {
  await using monitor = new ExitMonitor({ scope: 'all' });
  const gaps: unknown[] = [];
  const exits = new Map<number, ExitEvent[]>();
  monitor.on('gap', (gap) => gaps.push(gap));
  const stormTold = new Promise<void>((resolve) => {
    monitor.on('exit', (event) => {
      if (event.pid === storm.pid && event.id === identity.id) resolve();
      const events = exits.get(event.pid);
      if (events === undefined) exits.set(event.pid, [event]);
      else events.push(event);
    });
  });
  await monitor.start();
  const storm = new LineProcess(program('storm'), [String(EXITS)]);
  const { identity } = monitor.watch(storm.pid);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
  const lines = await storm.rest();
  expect(await storm.ended).toBe(0);
  await stormTold;

  expect(lines).toHaveLength(EXITS);
  const wrong: unknown[] = [];
  let beforeNs = 0;
  for (const [i, line] of lines.entries()) {
    const [pid = 0, reapedNs = 0] = line.split(' ').map(Number);
    // Pids come round within the storm: which event is meant is told by its time.
    const events = (exits.get(pid) ?? []).filter(
      ({ exitedNs }) =>
        exitedNs !== null && exitedNs > beforeNs && exitedNs < reapedNs + LATE_STAMP_NS,
    );
    const [event] = events;
    const right = event?.how === 'exited' && event.exitCode === i % 128 && event.lossless;
    if (events.length !== 1 || !right) wrong.push({ i, pid, events });
    beforeNs = reapedNs;
  }
  expect(wrong).toEqual([]);
  expect(gaps).toEqual([]);
  expect(monitor.stats()).toMatchObject({ lost: 0, gaps: 0, rejected: 0 });
});
