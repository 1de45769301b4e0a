// Lane: patient

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';

import { ExitMonitor, waitForExit, type ExitEvent } from '../../src';

import { exitsOf } from '../support/ends';
import { itAsRoot, itAsRootOfHost } from '../support/privilege';
import { ROUNDS } from '../support/rounds';
import { arrives, until } from '../support/wait';
import { kill } from '../support/kill';

const REPEATS = 2 * ROUNDS;

/** Starts a process that exits with 0 when it has caught SIGTERM and `end()` was called. */
async function catcher(): Promise<{ pid: number; end: () => void }> {
  const script =
    "process.on('SIGTERM', () => process.stdin.once('data', () => process.exit(0))); console.log('ready'); setInterval(() => {}, 1e6)";
  const { pid = 0, stdin, stdout } = spawn(process.execPath, ['-e', script]);
  await arrives('the first line of a child', once(stdout, 'data'));
  return { pid, end: () => stdin.write('end\n') };
}

const isSeen = ({ signalsReceived }: ExitEvent) =>
  signalsReceived.some(({ signal, pid }) => signal === 'SIGTERM' && pid === process.pid);

/** The signal was not seen, and the event claims nothing else. */
const isLeftOpen = (event: ExitEvent, sentAt: Date) =>
  !isSeen(event) && (event.tracedSince === null || event.tracedSince > sentAt);

itAsRoot('waitForExit() has armed the signal trace when it returns', async () => {
  for (let round = 0; round < REPEATS; round++) {
    const { pid, end } = await catcher();
    const exited = waitForExit(pid);
    kill(pid, 'SIGTERM');
    end();
    const event = await arrives(`the exit of process ${pid}`, exited);
    expect(event).toMatchObject({ exitCode: 0, traced: true });
    expect(isSeen(event)).toBe(true);
  }
});

itAsRoot('watch() has armed it, too, on a monitor that is starting or started', async () => {
  for (let round = 0; round < REPEATS; round++) {
    await using monitor = new ExitMonitor();
    const [first, second] = [await catcher(), await catcher()];
    const ready = monitor.start();
    const during = monitor.watch(first.pid);
    kill(first.pid, 'SIGTERM');
    await ready;
    const after = monitor.watch(second.pid);
    kill(second.pid, 'SIGTERM');
    first.end();
    second.end();
    for (const event of await exitsOf([during, after])) {
      expect(event).toMatchObject({ exitCode: 0, traced: true });
      expect(isSeen(event)).toBe(true);
    }
  }
});

itAsRoot('a signal sent before the trace was running is left open', async () => {
  for (let round = 0; round < REPEATS; round++) {
    await using monitor = new ExitMonitor();
    const catchers = [await catcher(), await catcher(), await catcher()] as const;
    const pids = catchers.map(({ pid }) => pid) as [number, number, number];
    const sentAt: Date[] = [];
    const terminate = (pid: number) => {
      sentAt.push(new Date());
      kill(pid, 'SIGTERM');
    };
    const watches = [monitor.watch(pids[0]), monitor.watch(pids[1])];
    terminate(pids[0]);
    const ready = monitor.start();
    await setTimeout(round);
    terminate(pids[1]);
    await ready;
    terminate(pids[2]);
    await setTimeout(50);
    watches.push(monitor.watch(pids[2]));
    for (const { end } of catchers) end();
    const ends = await exitsOf(watches);
    ends.forEach((event, i) => {
      expect(event).toMatchObject({ exitCode: 0 });
      expect(isSeen(event) || isLeftOpen(event, sentAt[i] ?? new Date(0))).toBe(true);
    });
  }
});

itAsRootOfHost('a process that began after the trace is traced from its start', async () => {
  await using monitor = new ExitMonitor({ scope: 'all', trace: 'on' });
  const begun = new Date();
  await monitor.start();
  const ended = new Map<number, ExitEvent>();
  monitor.on('exit', (event) => ended.set(event.pid, event));
  const child = spawn('sleep', ['0.05']);
  const pid = child.pid ?? 0;
  await until(`the exit of process ${pid}`, () => ended.has(pid));
  const { startedAt, tracedSince } = ended.get(pid) ?? {};
  expect(tracedSince?.getTime()).toBeGreaterThanOrEqual(startedAt?.getTime() ?? Infinity);
  expect(tracedSince?.getTime()).toBeLessThanOrEqual((startedAt?.getTime() ?? 0) + 10);
  expect(tracedSince?.getTime()).toBeGreaterThan(begun.getTime());
});

test('without the trace tracedSince is null', async () => {
  const { pid } = spawn('sleep', ['0.05']);
  const event = await arrives('the exit of sleep', waitForExit(pid ?? 0, { source: 'poll' }));
  expect(event).toMatchObject({ traced: false, tracedSince: null, raisedAfter: null });
});
