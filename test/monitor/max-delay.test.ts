// Lane: storm

import { setTimeout } from 'node:timers/promises';

import { ExitMonitor, type ExitEvent, type ExitMonitorOptions } from '../../src';

import { MemoryFolder } from '../support/bpffs';
import { exitOf } from '../support/ends';
import { EventLog } from '../support/event-log';
import { describeForEachFilter } from '../support/filters';
import { itAsListener, itAsRecorder, itAsRootOfHost } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { isOfStorms } from '../support/storms';

/** Longer than any of these tests may take. */
const FOR_EVER_MS = 10_000;
const SOON_MS = FOR_EVER_MS / 2;

const MOST_ATTEMPTS = 10;

const monitorOf = (options: ExitMonitorOptions) => new ExitMonitor({ scope: 'all', ...options });

/** Runs a storm, and waits for all of its exits. */
async function storm(log: EventLog, count: number, rate: number) {
  const process = new LineProcess(program('storm'), [String(count), String(rate)]);
  const report = await process.rest();
  const isOurs = isOfStorms([process.pid], report);
  const ours = () => [...log.exits.values()].flat().filter(isOurs);
  await log.until(`${count} exits`, () => log.count >= count && ours().length >= count);
  return { report, exits: ours() };
}

describeForEachFilter(() => {
  itAsListener(
    'maxDelayMs delivers each exit once, with its status, for few wake-ups',
    async () => {
      await using monitor = monitorOf({ maxDelayMs: 100 });
      const log = new EventLog(monitor);
      await monitor.start();
      // Signals of others wake the reader, too: then it is tried again.
      for (let attempts = 1, isSeldom = false; !isSeldom; attempts++) {
        const began = performance.now();
        const { wakeups } = monitor.stats();
        const { report, exits } = await storm(log, 1000, 1000);
        // With the cBPF filter they wait for 50 ms at most.
        const most = (2 * (performance.now() - began)) / 50 + 20;
        const times = monitor.stats().wakeups - wakeups;
        isSeldom = times < most;
        if (attempts === MOST_ATTEMPTS) expect(times).toBeLessThan(most);
        const statusOf = new Map(report.map((line, i) => [Number(line.split(' ')[0]), i % 128]));
        expect(exits.map(({ pid, exitCode }) => [pid, exitCode])).toEqual(
          exits.map(({ pid }) => [pid, statusOf.get(pid)]),
        );
        expect(exits).toHaveLength(1000);
        expect(exits.filter(({ lossless }) => !lossless)).toEqual([]);
      }
    },
  );

  itAsListener('maxDelayMs does not delay a process that is watched', async () => {
    await using monitor = monitorOf({ maxDelayMs: FOR_EVER_MS });
    await monitor.start();
    const process = new LineProcess('sleep', ['1000']);
    const watch = monitor.watch(process.pid);
    const killedAt = performance.now();
    process.child.kill('SIGKILL');
    expect(await exitOf(watch)).toMatchObject({ signal: 'SIGKILL' });
    expect(performance.now() - killedAt).toBeLessThan(SOON_MS);
  });

  itAsListener(
    'maxDelayMs does not delay watched processes that may have dumped core',
    async () => {
      await using monitor = monitorOf({ maxDelayMs: FOR_EVER_MS });
      await monitor.start();
      // While others end, the kernel may report a core after a pidfd has reported the end.
      const others = new LineProcess(program('storm'), ['1000', '1000']);
      for (let i = 0; i < 20; i++) {
        const process = new LineProcess('sh', ['-c', 'ulimit -c 0; echo up; exec sleep 1000']);
        await process.line();
        const watch = monitor.watch(process.pid);
        const killedAt = performance.now();
        process.child.kill('SIGQUIT');
        expect(await exitOf(watch)).toMatchObject({ signal: 'SIGQUIT' });
        expect(performance.now() - killedAt).toBeLessThan(SOON_MS);
      }
      await others.rest();
    },
  );

  itAsListener('maxDelayMs does not delay close()', async () => {
    const monitor = monitorOf({ maxDelayMs: FOR_EVER_MS });
    await monitor.start();
    await new LineProcess('true', []).ended; // others wait for it
    const began = performance.now();
    await monitor.close();
    expect(performance.now() - began).toBeLessThan(SOON_MS);
  });
});

itAsRootOfHost('maxDelayMs does not delay a watch that only the connector guards', async () => {
  await using monitor = monitorOf({ maxDelayMs: FOR_EVER_MS, source: 'connector' });
  await monitor.start();
  const process = new LineProcess('sleep', ['1000']);
  const watch = monitor.watch(process.pid);
  const killedAt = performance.now();
  process.child.kill('SIGKILL');
  await watch.exited;
  expect(performance.now() - killedAt).toBeLessThan(SOON_MS);
});

itAsRootOfHost('maxDelayMs does not delay signals for those who listen', async () => {
  await using monitor = monitorOf({ maxDelayMs: FOR_EVER_MS });
  await monitor.start();
  const signals: number[] = [];
  monitor.on('signal', ({ pid }) => signals.push(pid));
  const process = new LineProcess('sleep', ['1000']);
  const killedAt = performance.now();
  process.child.kill('SIGKILL');
  while (!signals.includes(process.pid)) await setTimeout(5);
  expect(performance.now() - killedAt).toBeLessThan(SOON_MS);
});

itAsRootOfHost('maxDelayMs loses nothing, even if the buffer is soon full', async () => {
  await using monitor = monitorOf({ maxDelayMs: FOR_EVER_MS, receiveBufferBytes: 256 * 1024 });
  const log = new EventLog(monitor);
  await monitor.start();
  // 64 KiB hold some 300 exits.
  const { exits } = await storm(log, 2000, 2000);
  expect(exits).toHaveLength(2000);
  expect(log.gaps).toEqual([]);
});

itAsRecorder(
  'maxDelayMs delays what a recorder has as well, which knows less of an exit',
  async () => {
    using memory = new MemoryFolder();
    const monitor = monitorOf({ maxDelayMs: SOON_MS, ...memory.options });
    const { filter } = await monitor.start();
    const exits: ExitEvent[] = [];
    monitor.on('exit', (event) => exits.push(event));
    const { pid, ended } = new LineProcess('true', []);
    await ended;
    while (!exits.some((event) => event.pid === pid)) await setTimeout(50);
    // Without the eBPF filter the recorder tells all of them.
    const source = filter === 'ebpf' ? 'connector' : 'recorder';
    expect(exits.filter((event) => event.pid === pid)).toMatchObject([{ source }]);
    await monitor.close({ forget: true });
  },
);

test.each([-1, 0.5, 10_001, NaN, '100', null])('maxDelayMs %p is refused', (value) => {
  const options = { maxDelayMs: value } as ExitMonitorOptions;
  expect(() => new ExitMonitor(options)).toThrow(
    expect.objectContaining({ code: 'ERR_EXITWATCH_INVALID_OPTION' }) as Error,
  );
});
