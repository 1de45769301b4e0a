import { ExitMonitor, type ExitEvent } from '../src';

import { EventLog } from './support/event-log';
import { LineProcess, program, REPOSITORY } from './support/programs';

test('what does not fit into the queue is one counted gap, in its place; what is watched always fits', async () => {
  await using monitor = new ExitMonitor({ scope: 'all', queueLimit: 100 });
  const log = new EventLog(monitor);
  const order: string[] = [];
  monitor.on('exit', () => order.push('exit'));
  monitor.on('gap', () => order.push('gap'));
  await monitor.start();
  const storm = new LineProcess(program('storm'), ['2000']);
  const watch = monitor.watch(storm.pid);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
  const event = await watch.exited;
  await log.until(() => log.count >= 2001);

  expect(event).toMatchObject({ how: 'exited', exitCode: 0, lossless: false });
  expect(log.gaps.length).toBeGreaterThan(0);
  for (const gap of log.gaps) expect(gap).toMatchObject({ reason: 'queue-limit', recovered: 0 });
  expect(order.indexOf('gap')).toBeGreaterThanOrEqual(100);
  const stats = monitor.stats();
  expect(stats.received).toBe(stats.delivered + stats.lost + stats.queueDepth);
  expect(stats.gaps).toBe(log.gaps.length);
});

test('when the kernel’s buffer overflows there is a gap, watched processes are found, and the stream goes on', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor({ receiveBufferBytes: 16384 });
    const print = (event) => console.log(JSON.stringify(event));
    monitor.on('exit', print).on('gap', print);
    process.stdin.on('data', (chunk) => {
      for (const pid of String(chunk).trim().split(' ')) monitor.watch(Number(pid));
      console.log('watching');
    });
    monitor.start().then(() => console.log('ready'));
  `;
  const reader = new LineProcess(process.execPath, ['-e', script]);
  expect(await reader.line()).toBe('ready');
  // Their parent reaps them: nobody but the kernel's stream could tell their statuses.
  const children = new LineProcess('sh', [
    '-c',
    'for i in 1 2 3; do sleep 1000 & echo $!; done; trap "kill $(jobs -p)" TERM; wait; wait; echo reaped',
  ]);
  const pids = [await children.line(), await children.line(), await children.line()].map(Number);
  reader.child.stdin.write(`${pids.join(' ')}\n`);
  expect(await reader.line()).toBe('watching');

  reader.child.kill('SIGSTOP');
  const storm = new LineProcess(program('storm'), ['5000']);
  expect((await storm.rest()).length).toBe(5000);
  for (const pid of pids.slice(0, 2)) process.kill(pid, 'SIGTERM');
  const second = new LineProcess(program('storm'), ['5000']);
  await second.rest();
  reader.child.kill('SIGCONT');

  const told = [await reader.line(), await reader.line(), await reader.line()].map(
    (line) => JSON.parse(line ?? '{}') as ExitEvent & { reason?: string; lost?: number },
  );
  const [gap, ...ends] = told;
  expect(gap).toMatchObject({ event: 'gap', reason: 'receive-buffer', recovered: 2 });
  expect(gap?.lost).toBeGreaterThan(9000);
  expect(ends.map(({ pid }) => pid).sort()).toEqual(pids.slice(0, 2).sort());
  for (const end of ends) {
    expect(end).toMatchObject({ how: 'unknown', unknownReason: 'lost', lossless: false });
  }

  process.kill(pids[2] ?? 0, 'SIGTERM');
  const last = JSON.parse((await reader.line()) ?? '{}') as ExitEvent;
  expect(last).toMatchObject({ pid: pids[2], how: 'killed', signal: 'SIGTERM', lossless: false });
  reader.child.kill();
  await reader.ended;
  children.child.kill('SIGKILL');
});
