// Lane: storm

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import { ExitMonitor, type ExitEvent } from '../../src';

import { itAsRootOfHost } from '../support/privilege';
import { LineProcess, program, REPOSITORY, run } from '../support/programs';
import { arrives, until, blockUntil } from '../support/wait';

/** How often the reader's thread has gone to sleep. */
function sleepsOfReader(): number {
  const tasks = '/proc/self/task';
  const reader = readdirSync(tasks).find(
    (task) => readFileSync(`${tasks}/${task}/comm`, 'latin1') === 'exitwatch\n',
  );
  const status = readFileSync(`${tasks}/${reader}/status`, 'latin1');
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]);
}

/** Ends this many processes, 200 a second. Returns their pids. */
async function paced(count: number): Promise<Set<number>> {
  const storm = new LineProcess(program('storm'), [String(count), '200']);
  return new Set((await storm.rest()).map((line) => Number(line.split(' ')[0])));
}

itAsRootOfHost(
  'while the event loop is free it reads events itself, and the reader’s thread sleeps',
  async () => {
    await using monitor = new ExitMonitor({ scope: 'all', canaryIntervalMs: 0 });
    const told = new Set<number>();
    monitor.on('exit', ({ pid }) => told.add(pid));
    const { filter } = await monitor.start();
    expect(filter).toBe('ebpf');
    await run('true', []);
    await setTimeout(200);
    // On a busy machine the loop of this test is not free, and the thread reads instead.
    const sleepsByRound: number[] = [];
    const isLeftAlone = async () => {
      const before = sleepsOfReader();
      const children = await paced(100);
      expect(children.size).toBe(100);
      await until('the exits of the storm', () => [...children].every((pid) => told.has(pid)));
      sleepsByRound.push(sleepsOfReader() - before);
      return (sleepsByRound.at(-1) ?? NaN) < 20;
    };
    const known = () => `the thread has slept ${sleepsByRound.join(', ')} times in 100 exits`;
    await until('a round in which the thread sleeps', isLeftAlone, known);
  },
);

itAsRootOfHost('while the event loop is busy, the reader’s thread reads', async () => {
  await using monitor = new ExitMonitor({ scope: 'all' });
  const told: ExitEvent[] = [];
  monitor.on('exit', (event) => told.push(event));
  await monitor.start();
  await run('true', []);
  await setTimeout(200);
  const storm = new LineProcess(program('storm'), ['50', '200']);
  const lines = storm.rest();
  // All but the events of the first few milliseconds and the last one.
  const before = monitor.stats().received;
  blockUntil('45 exits to be received', () => monitor.stats().received >= before + 45);
  expect(monitor.stats().queueDepth).toBeGreaterThan(40);
  const children = new Set((await lines).map((line) => Number(line.split(' ')[0])));
  const own = () => told.filter(({ pid }) => children.has(pid));
  await until('50 exits of the storm', () => own().length >= 50);
  expect(own().every(({ lossless, how }) => lossless && how === 'exited')).toBe(true);
  // Afterwards the loop reads again.
  const once = await paced(20);
  const isReported = (pid: number) => told.some((each) => each.pid === pid);
  await until('the exits of the second storm', () => [...once].every(isReported));
  expect(monitor.stats().lost).toBe(0);
});

itAsRootOfHost(
  'a listener that throws while the loop reads loses no events for the others',
  async () => {
    const throwing = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor({ scope: 'all' });
    process.on('uncaughtException', (error) => console.log(error.message));
    monitor.on('exit', ({ pid }) => { throw new Error(String(pid)); });
    monitor.start().then(() => console.log('ready'));
    process.stdin.resume().on('end', () => monitor.close());
  `;
    const reader = new LineProcess(process.execPath, ['-e', throwing]);
    const isReady = async () => (await reader.line()) === 'ready'; // others may exit first
    await until('the reader to be ready', isReady, reader.told);
    await setTimeout(200);
    const children = await paced(20);
    const left = new Set([...children].map(String));
    const areReported = async () => {
      for (const line of await reader.take(1)) left.delete(line);
      return left.size === 0;
    };
    await until('the exits of the storm', areReported, reader.told);
    reader.child.stdin.end();
    expect(await reader.ended).toBe(0);
  },
);

itAsRootOfHost('a listener may close the monitor while the loop reads', async () => {
  for (let round = 0; round < 20; round++) {
    const monitor = new ExitMonitor({ scope: 'all' });
    const closed = new Promise<void>((resolve) => monitor.once('close', resolve));
    await monitor.start();
    await run('true', []);
    await setTimeout(20);
    monitor.once('exit', () => void monitor.close());
    await run('true', []);
    await arrives('the monitor to close', closed);
  }
});
