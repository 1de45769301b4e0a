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

/**
 * A monitor in a process of its own, which can be stopped. Takes all that it prints as it comes: other
 * processes of the host may end faster than a test asks for the next event.
 */
class Reader {
  readonly process: LineProcess;
  readonly exits: ExitEvent[] = [];
  readonly gaps: Gap[] = [];
  readonly #said = new Set<string>();

  /** It watches the `PID…` on its stdin. */
  constructor(filter: Filter, options: object) {
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
    this.process = new LineProcess(process.execPath, ['-e', script], {
      env: environmentFor(filter),
    });
    void this.#read();
  }

  async #read(): Promise<void> {
    for await (const line of this.process.lines) {
      if (!line.startsWith('{')) {
        this.#said.add(line);
        continue;
      }
      const event = JSON.parse(line) as ExitEvent | Gap;
      if (event.event === 'exit') this.exits.push(event);
      // A host with many signals may also overflow the trace's buffer.
      else if (event.reason !== 'trace-buffer') this.gaps.push(event);
    }
  }

  said(line: string): Promise<true> {
    return this.until(line, () => this.#said.has(line));
  }

  until<T>(what: string, look: () => T | Promise<T>) {
    const known = () => `gaps: ${JSON.stringify(this.gaps)}\n${this.process.told()}`;
    return until(what, look, known);
  }

  /** How many it has reported as lost. */
  get lost(): number {
    return this.gaps.reduce((sum, { lost }) => sum + (lost ?? 0), 0);
  }

  async end(): Promise<void> {
    this.process.child.kill();
    await this.process.ended;
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
    monitor.on('gap', ({ reason }) => order.push(reason));
    await monitor.start();
    const storm = new LineProcess(program('storm'), ['20000']);
    const watch = monitor.watch(storm.pid);
    // The main thread is blocked the whole time. The kernel may drop some if the receive buffer has its usual size.
    blockUntil('all but 1000 of 20,000 exits to be lost', () => monitor.stats().lost >= 19_000);
    const report = storm.rest();
    const event = await exitOf(watch);
    await log.until('20,001 exits, delivered or lost', () => log.count >= 20_001);

    expect(event).toMatchObject({ how: 'exited', exitCode: 0, lossless: false });
    const gapsOf = (reason: Gap['reason']) => log.gaps.filter((gap) => gap.reason === reason);
    for (const gap of gapsOf('queue-limit')) expect(gap).toMatchObject({ recovered: 0 });
    expect(order.indexOf('queue-limit')).toBeGreaterThanOrEqual(1000);
    const dropped = gapsOf('receive-buffer');
    expect(gapsOf('queue-limit').length).toBe(log.gaps.length - dropped.length);
    expect(await report).toHaveLength(20_000);
    const stats = monitor.stats();
    const lost = stats.lost - dropped.reduce((sum, gap) => sum + (gap.lost ?? 0), 0);
    expect(stats.received).toBe(stats.delivered + lost + stats.queueDepth);
    expect(stats.delivered).toBeLessThanOrEqual(order.length);
    expect(stats.gaps).toBe(log.gaps.length);
  },
);

describeForEachFilter((filter) => {
  test('events that the kernel drops while the reader is stopped become one gap with the kernel’s own count, and the stream goes on', async () => {
    const reader = new Reader(filter, { scope: 'all', receiveBufferBytes: 65536 });
    await reader.said(filter);
    await reader.process.stop();
    const storm = new LineProcess(program('storm'), ['5000']);
    const children = (await storm.rest()).map((line) => Number(line.split(' ')[0]));
    const order = new Map(children.map((pid, i) => [pid, i]));
    expect(order.size).toBe(5000);
    reader.process.child.kill('SIGCONT');
    const allAreCounted = async () => {
      const dropped = await droppedByTheKernel(reader.process.pid);
      return dropped > 0 && reader.lost === dropped;
    };
    await reader.until('the kernel’s own count', allAreCounted);

    // Exits of others may have filled the buffer at other times, too.
    for (const gap of reader.gaps) expect(gap).toMatchObject({ reason: 'receive-buffer' });
    // Those that are reported have the right status, and nothing but the last ones is missing. None is
    // reported if others had filled the buffer before.
    const all = reader.exits.filter(
      ({ pid, parentPid }) => order.has(pid) && parentPid === storm.pid,
    );
    // Where others fork all the time, the classic filter may not know which process of a pid it was.
    const ours = filter === 'ebpf' ? all : all.filter(({ how }) => how !== 'unknown');
    expect(all.length - ours.length).toBeLessThan(10);
    const places = ours.map(({ pid }) => order.get(pid) ?? NaN);
    expect(ours.map(({ exitCode }) => exitCode)).toEqual(places.map((place) => place % 128));
    expect(new Set(places).size).toBe(ours.length);
    // A process that was preempted before its message comes after later ones, and perhaps too late.
    expect(Math.max(-1, ...places) + 1 - ours.length).toBeLessThan(10);
    if (filter === 'ebpf') expect(reader.lost).toBeGreaterThanOrEqual(5000 - ours.length);

    // The next one is reported, unless it falls into a gap that others have caused.
    const exitOfNext = async () => {
      const gapCount = reader.gaps.length;
      const next = new LineProcess('sh', ['-c', 'exit 7']);
      const isOfNext = ({ pid, parentPid }: ExitEvent) =>
        pid === next.pid && parentPid === process.pid;
      const found = await reader.until(
        `the exit of process ${next.pid}`,
        () => reader.exits.find(isOfNext) ?? reader.gaps.length > gapCount,
      );
      return found === true ? null : found;
    };
    expect(await reader.until('an exit after the gap', exitOfNext)).toMatchObject({ exitCode: 7 });
    await reader.end();
  });

  test.each([
    ['connector', 3000, 32_768],
    ['auto', 2000, 212_992],
  ] as const)(
    'with source %s, watched processes that ended in a gap are recovered',
    async (source, most, bufferBytes) => {
      const count = roomForProcesses(most);
      const receiveBufferBytes = Math.min(bufferBytes, 100 * count);
      const reader = new Reader(filter, { scope: 'watched', source, receiveBufferBytes });
      await reader.said(filter);
      // Their parent reaps them: only the kernel's stream or a pidfd can supply their statuses.
      await using crowd = await Crowd.of(count);
      const { pids } = crowd;
      const survivor = new LineProcess('sleep', ['1000']);
      reader.process.child.stdin.write(`${[...pids, survivor.pid].join(' ')}\n`);
      await reader.said('watching');

      await reader.process.stop();
      crowd.end();
      await crowd.reaped();
      reader.process.child.kill('SIGCONT');

      await reader.until(
        `${count} exits and a gap`,
        () => reader.exits.length >= count && reader.gaps.length > 0,
      );
      const exits = new Map(reader.exits.map((event) => [event.pid, event]));
      const gaps = [...reader.gaps];
      expect(reader.exits).toHaveLength(count);
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
      // With the classic filter, exits of others may cause gaps, too. If the reader was stopped while it
      // looked at a process after one of these, it knew how that one ended.
      const isOnlyGap = filter === 'ebpf' || gaps.length === 1;
      const lookedAt = source === 'connector' && !isOnlyGap ? unheard - unknown : 0;
      expect([0, 1]).toContain(lookedAt);
      expect(unknown).toBe(source === 'connector' ? unheard - lookedAt : 0);
      for (const { reason } of gaps) expect(reason).toBe('receive-buffer');
      const recovered = gaps.reduce((sum, gap) => sum + gap.recovered, 0);
      // A pidfd may have reported some of them before the gap arrived.
      if (source === 'connector') expect(recovered).toBeGreaterThanOrEqual(unheard - lookedAt);
      // A gap that is not the only one may precede messages of those that it has counted.
      expect(recovered).toBeLessThanOrEqual(isOnlyGap ? unheard : count * gaps.length);
      // The eBPF filter passes no other process's exit. With the cBPF filter other processes may
      // have caused a gap of their own.
      if (filter === 'ebpf') expect(gaps.map(({ lost }) => lost)).toEqual([unheard]);

      survivor.child.kill('SIGTERM');
      const end = await reader.until('the exit of the survivor', () =>
        reader.exits.find(({ pid }) => pid === survivor.pid),
      );
      expect(end).toMatchObject({ how: 'killed', signal: 'SIGTERM', lossless: false });
      await reader.end();
    },
  );
});
