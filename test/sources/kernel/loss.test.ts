// Lane: storm

import { ExitMonitor, type ExitEvent, type Filter, type Gap } from '../../../src';

import { Crowd } from '../../support/crowd';
import { exitOf } from '../../support/ends';
import { EventLog } from '../../support/event-log';
import { describeForEachFilter, environmentFor } from '../../support/filters';
import { isLeftOpen } from '../../support/kernel';
import { itAsListener } from '../../support/privilege';
import { LineProcess, program, REPOSITORY, run } from '../../support/programs';
import { roomForProcesses } from '../../support/room';
import { blockUntil, until } from '../../support/wait';

/** Runs a monitor that prints its events. It watches the `PID…` on its stdin. */
function startReader(filter: Filter, options: object): LineProcess {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor(${JSON.stringify(options)});
    const print = (event) => console.log(JSON.stringify(event));
    monitor.on('exit', print).on('gap', print);
    process.stdin.on('data', (chunk) => {
      for (const pid of String(chunk).trim().split(' ')) monitor.watch(Number(pid));
      console.log('watching');
    });
    monitor.start().then((ready) => console.log(ready.filter));
  `;
  return new LineProcess(process.execPath, ['-e', script], { env: environmentFor(filter) });
}

async function next(reader: LineProcess): Promise<ExitEvent | Gap> {
  return JSON.parse((await reader.line()) ?? 'null') as ExitEvent | Gap;
}

/** Resolves when this line comes. Exits of other processes may come first. */
async function lineOf(reader: LineProcess, wanted: string): Promise<void> {
  for (let line = await reader.line(); line !== wanted; line = await reader.line()) {
    if (line === undefined) throw new Error(`ended before ${wanted}: ${reader.stderr}`);
  }
}

/** According to the kernel's own counts. */
async function droppedByTheKernel(pid: number): Promise<number> {
  return Number((await run(program('drops'), [String(pid)])).stdout);
}

itAsListener(
  'events that do not fit into the queue become one counted gap in their place; watched processes always fit',
  async () => {
    await using monitor = new ExitMonitor({ scope: 'all', queueLimit: 1000 });
    const log = new EventLog(monitor);
    const order: string[] = [];
    monitor.on('exit', () => order.push('exit'));
    monitor.on('gap', () => order.push('gap'));
    await monitor.start();
    const storm = new LineProcess(program('storm'), ['20000']);
    const watch = monitor.watch(storm.pid);
    // The main thread is blocked the whole time.
    blockUntil('20,000 exits to be received', () => monitor.stats().received >= 20_000);
    const report = storm.rest();
    const event = await exitOf(watch);
    await log.until('20,001 exits, delivered or lost', () => log.count >= 20_001);

    expect(event).toMatchObject({ how: 'exited', exitCode: 0, lossless: false });
    expect(log.gaps.length).toBeGreaterThan(0);
    for (const gap of log.gaps) expect(gap).toMatchObject({ reason: 'queue-limit', recovered: 0 });
    expect(order.indexOf('gap')).toBeGreaterThanOrEqual(1000);
    expect(await report).toHaveLength(20_000);
    const stats = monitor.stats();
    expect(stats.received).toBe(stats.delivered + stats.lost + stats.queueDepth);
    expect(stats.delivered).toBeLessThanOrEqual(order.length);
    expect(stats.gaps).toBe(log.gaps.length);
  },
);

describeForEachFilter((filter) => {
  test('events that the kernel drops while the reader is stopped become one gap with the kernel’s own count, and the stream goes on', async () => {
    const reader = startReader(filter, { scope: 'all', receiveBufferBytes: 65536 });
    await lineOf(reader, filter);
    await reader.stop();
    const storm = new LineProcess(program('storm'), ['5000']);
    const children = (await storm.rest()).map((line) => Number(line.split(' ')[0]));
    const order = new Map(children.map((pid, i) => [pid, i]));
    expect(order.size).toBe(5000);
    reader.child.kill('SIGCONT');

    const told: ExitEvent[] = [];
    let event = await next(reader);
    for (; event.event === 'exit'; event = await next(reader)) told.push(event);
    expect(event).toMatchObject({ reason: 'receive-buffer', recovered: 0 });
    // Everything before the gap was reported with the right status, and nothing else is missing.
    const all = told.filter(({ pid }) => order.has(pid));
    // Where others fork all the time, the classic filter may not know which process of a pid it was.
    const ours = filter === 'ebpf' ? all : all.filter(({ how }) => how !== 'unknown');
    expect(all.length - ours.length).toBeLessThan(10);
    const places = ours.map(({ pid }) => order.get(pid) ?? NaN);
    expect(ours.map(({ exitCode }) => exitCode)).toEqual(places.map((place) => place % 128));
    expect(new Set(places).size).toBe(ours.length);
    // A process that was preempted before its message comes after later ones, and perhaps too late.
    expect(Math.max(...places) + 1 - ours.length).toBeLessThan(10);
    if (filter === 'ebpf') expect(event.lost).toBeGreaterThanOrEqual(5000 - ours.length);

    const last = new LineProcess('sh', ['-c', 'exit 7']);
    const itsExit = async () => {
      const after = await next(reader);
      expect(after.event).toBe('exit');
      return after.event === 'exit' && after.pid === last.pid && after;
    };
    const after = await until(`the exit of process ${last.pid}`, itsExit, reader.told);
    expect(after).toMatchObject({ exitCode: 7 });
    // Other processes may have caused another gap since.
    let lost = event.lost ?? 0;
    const allAreCounted = async () => {
      if (lost === (await droppedByTheKernel(reader.pid))) return true;
      const later = await next(reader);
      if (later.event === 'gap') lost += later.lost ?? 0;
      return false;
    };
    await until('the kernel’s own count', allAreCounted, () => `told: ${lost}`);
    reader.child.kill();
    await reader.ended;
  });

  test.each([
    ['connector', 3000, 32_768],
    ['auto', 2000, 212_992],
  ] as const)(
    'with source %s, watched processes that ended in a gap are recovered',
    async (source, most, bufferBytes) => {
      const count = roomForProcesses(most);
      const receiveBufferBytes = Math.min(bufferBytes, 100 * count);
      const reader = startReader(filter, { scope: 'watched', source, receiveBufferBytes });
      await lineOf(reader, filter);
      // Their parent reaps them: only the kernel's stream or a pidfd can supply their statuses.
      await using crowd = await Crowd.of(count);
      const { pids } = crowd;
      const survivor = new LineProcess('sleep', ['1000']);
      reader.child.stdin.write(`${[...pids, survivor.pid].join(' ')}\n`);
      await lineOf(reader, 'watching');

      await reader.stop();
      crowd.end();
      await crowd.reaped();
      reader.child.kill('SIGCONT');

      const exits = new Map<number, ExitEvent>();
      const gaps: Gap[] = [];
      while (exits.size < count || gaps.length === 0) {
        const event = await next(reader);
        if (event.event === 'exit') exits.set(event.pid, event);
        else gaps.push(event);
      }
      const wrong = pids.filter((pid, i) => {
        const event = exits.get(pid);
        if (event === undefined || (source === 'auto' && isLeftOpen(event))) return false;
        const { how, exitCode, unknownReason } = event;
        return !(how === 'exited' && exitCode === i % 128) && unknownReason !== 'lost';
      });
      expect(wrong).toEqual([]);
      const unknown = [...exits.values()].filter(
        (exit) => exit.how === 'unknown' && !(source === 'auto' && isLeftOpen(exit)),
      ).length;
      const unheard = [...exits.values()].filter((exit) => exit.source === 'pidfd').length;
      expect(unheard).toBeGreaterThan(0);
      expect(unknown).toBe(source === 'connector' ? unheard : 0);
      for (const { reason } of gaps) expect(reason).toBe('receive-buffer');
      const recovered = gaps.reduce((sum, gap) => sum + gap.recovered, 0);
      // A pidfd may have reported some of them before the gap arrived.
      expect(recovered).toBeLessThanOrEqual(unheard);
      if (source === 'connector') expect(recovered).toBe(unheard);
      // The eBPF filter passes no other process's exit. With the cBPF filter other processes may
      // have caused a gap of their own.
      if (filter === 'ebpf') expect(gaps.map(({ lost }) => lost)).toEqual([unheard]);

      survivor.child.kill('SIGTERM');
      const endEvent = async () => {
        const event = await next(reader);
        return event.event === 'exit' && event;
      };
      expect(await until('the exit of the survivor', endEvent, reader.told)).toMatchObject({
        ...{ pid: survivor.pid, how: 'killed', signal: 'SIGTERM', lossless: false },
      });
      reader.child.kill();
      await reader.ended;
    },
  );
});
