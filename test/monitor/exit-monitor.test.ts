// Lane: alone

import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';

import { ExitMonitor, identify, type ExitEvent, type MonitorEvent } from '../../src';

import { exitOf } from '../support/ends';
import { EventLog } from '../support/event-log';
import { describeForEachFilter } from '../support/filters';
import { itAsRoot } from '../support/privilege';
import { KERNEL } from '../support/kernel';
import { LineProcess, program, REPOSITORY, run } from '../support/programs';
import { reusedPid } from '../support/reused-pid';
import { arrives, until } from '../support/wait';

const FOREVER = ['sleep', ['1000']] as const;

describeForEachFilter((filter) => {
  describe('watch()', () => {
    test('before start() reports the status of a process that dies before the start', async () => {
      await using monitor = new ExitMonitor();
      const child = new LineProcess('sh', ['-c', 'read line; exit 7']);
      const watch = monitor.watch(child.pid);
      child.child.stdin.end('go\n');
      await child.ended;
      await monitor.start();
      expect(await exitOf(watch)).toMatchObject({
        id: watch.identity.id,
        pid: child.pid,
        how: 'exited',
        exitCode: 7,
        lossless: true,
      });
    });

    test('reports the status of a zombie', async () => {
      await using monitor = new ExitMonitor();
      await monitor.start();
      // The parent does not wait for its child until a line comes.
      const script =
        'import os,sys\np=os.fork()\nif p==0: os._exit(9)\nprint(p,flush=True)\ninput()';
      const parent = new LineProcess('python3', ['-c', script]);
      const pid = Number(await parent.line());
      await until(`process ${pid} to be a zombie`, () => isZombie(pid), parent.told);
      const watch = monitor.watch(pid);
      expect(await exitOf(watch)).toMatchObject({ how: 'exited', exitCode: 9 });
      parent.child.stdin.end('\n');
      await parent.ended;
    });

    test('can be called several times for one process: each watch resolves with the same event', async () => {
      await using monitor = new ExitMonitor();
      const log = new EventLog(monitor);
      await monitor.start();
      const child = new LineProcess(...FOREVER);
      const watches = [
        monitor.watch(child.pid),
        monitor.watch(child.pid),
        monitor.watch(child.pid),
      ];
      watches[1]?.close();
      expect(monitor.stats().watches).toBe(1);
      child.child.kill('SIGKILL');
      const [first, second, third] = await Promise.allSettled(watches.map(({ exited }) => exited));
      expect(second).toMatchObject({ reason: { code: 'ERR_EXITWATCH_CLOSED' } });
      expect(first).toMatchObject({ value: { how: 'killed', signal: 'SIGKILL' } });
      expect(third).toEqual(first);
      expect(log.of(child.pid)).toHaveLength(1);
      expect(monitor.stats().watches).toBe(0);
    });

    test('reports nothing about a process whose watch was closed, nor about other processes', async () => {
      await using monitor = new ExitMonitor();
      const log = new EventLog(monitor);
      await monitor.start();
      const closed = new LineProcess(...FOREVER);
      const kept = new LineProcess(...FOREVER);
      const stranger = new LineProcess(...FOREVER);
      monitor.watch(closed.pid).close();
      const watch = monitor.watch(kept.pid);
      for (const { child } of [closed, stranger, kept]) child.kill();
      await exitOf(watch);
      expect([...log.exits.keys()]).toEqual([kept.pid]);
    });

    test('of an identity whose process is gone resolves with unknown, gone-before-watch', async () => {
      await using monitor = new ExitMonitor();
      const child = new LineProcess(...FOREVER);
      const identity = identify(child.pid);
      child.child.kill();
      await child.ended;
      const stored: unknown = JSON.parse(JSON.stringify(identity));
      const watch = monitor.watch(stored as NonNullable<typeof identity>);
      await monitor.start();
      const event = await exitOf(watch);
      expect(event).toMatchObject({
        id: identity?.id,
        how: 'unknown',
        exitCode: null,
        unknownReason: 'gone-before-watch',
      });
      expect(event.exitedAt.getTime() - event.uncertaintyMs).toBe(event.startedAt?.getTime());
    });

    test('of an identity whose end was already reported resolves only the watch', async () => {
      await using monitor = new ExitMonitor({ scope: 'all' });
      const log = new EventLog(monitor);
      await monitor.start();
      const child = new LineProcess(...FOREVER);
      const watch = monitor.watch(child.pid);
      const { identity } = watch;
      child.child.kill();
      await exitOf(watch);
      await child.ended;
      const again = await exitOf(monitor.watch(identity));
      expect(again).toMatchObject({ id: identity.id, unknownReason: 'gone-before-watch' });
      expect(log.of(child.pid)).toHaveLength(1);
    });

    test('of an identity from an earlier boot resolves with unknown, whatever the pid', async () => {
      await using monitor = new ExitMonitor();
      await monitor.start();
      const boot = '00000000-1111-2222-3333-444444444444';
      const stored = {
        pid: 4_194_303,
        startTicks: 7,
        bootId: boot,
        inode: null,
        pidNamespace: null,
      };
      const identity = { ...stored, id: '000000001111-4194303-t7' };
      expect(await exitOf(monitor.watch(identity))).toMatchObject({
        how: 'unknown',
        unknownReason: 'gone-before-watch',
        uncertaintyMs: Number.MAX_SAFE_INTEGER,
      });
    });

    test('leaves nothing open if the monitor is closed before start()', async () => {
      const monitor = new ExitMonitor();
      const before = readdirSync('/proc/self/fd').length;
      for (let i = 0; i < 50; i++) monitor.watch(process.ppid).close();
      await monitor.close();
      expect(readdirSync('/proc/self/fd').length).toBe(before);
    });

    test('reports name and owner even if the process is reaped at once', async () => {
      await using monitor = new ExitMonitor();
      await monitor.start();
      const child = new LineProcess('sh', ['-c', 'exec sleep 1000']);
      await sleeps(child);
      const identity = identify(child.pid);
      const watch = monitor.watch(child.pid);
      child.child.kill();
      expect(await exitOf(watch)).toMatchObject({
        id: identity?.id,
        name: 'sleep',
        uid: process.geteuid?.(),
        parentPid: process.pid,
        signal: 'SIGTERM',
      });
    });
  });

  describe('start()', () => {
    test('returns what the monitor uses, and emits ready', async () => {
      await using monitor = new ExitMonitor({
        scope: 'all',
        trace: 'off',
        receiveBufferBytes: 1024 * 1024,
      });
      const emitted: unknown[] = [];
      monitor.on('ready', (ready) => emitted.push(ready));
      const ready = await monitor.start();
      expect(ready).toEqual({
        event: 'ready',
        scope: 'all',
        source: 'connector',
        filter,
        downgrade:
          filter === 'ebpf'
            ? null
            : {
                code: 'cbpf-requested',
                detail: expect.any(String) as string,
                remedy: expect.any(String) as string,
              },
        namesPrograms: filter === 'ebpf' && KERNEL.tellsPrograms,
        receiveBufferBytes: filter === 'ebpf' ? 256 * 1024 : 1024 * 1024,
        traced: false,
        traceDowngrade: null,
        memory: 'none',
        memoryDowngrade: null,
        restored: [],
      });
      expect(emitted).toEqual([ready]);
      expect(monitor.stats()).toMatchObject({ filter, watchedSet: null, healthy: true });
    });

    for (const scope of ['all', 'watched'] as const) {
      test(`finds a process whose first thread has already left (scope ${scope})`, async () => {
        const child = new LineProcess(program('first-left'), []);
        expect(await child.line()).toBe('left');
        await using monitor = new ExitMonitor({ scope });
        const log = new EventLog(monitor);
        if (scope === 'watched') monitor.watch(child.pid);
        await monitor.start();
        child.child.stdin.write('\n');
        expect(await child.ended).toBe(7);
        await log.untilAllOf([child.pid]);
        expect(log.of(child.pid)).toEqual([
          expect.objectContaining({
            how: 'exited',
            exitCode: 7,
            name: 'first-left',
            lossless: true,
          }),
        ]);
      });
    }

    test('finds existing processes with their name, owner and start time', async () => {
      const child = new LineProcess(...FOREVER);
      await sleeps(child);
      const identity = identify(child.pid);
      await using monitor = new ExitMonitor({ scope: 'all' });
      const log = new EventLog(monitor);
      await monitor.start();
      child.child.kill();
      await log.untilAllOf([child.pid]);
      const [event] = log.of(child.pid);
      expect(event).toMatchObject({ id: identity?.id, name: 'sleep', uid: process.geteuid?.() });
      expect(Math.abs((event?.startedAt?.getTime() ?? 0) - Date.now())).toBeLessThan(60_000);
    });

    itAsRoot('a new process with a reused pid does not get the old process’s name', async () => {
      // One after the other, until no stranger takes the pid of one first, and keeps it.
      const olds = Array.from({ length: 5 }, () => new LineProcess(...FOREVER));
      for (const old of olds) await sleeps(old);
      await using monitor = new ExitMonitor({ scope: 'all' });
      const log = new EventLog(monitor);
      await monitor.start();
      const endNext = async () => {
        const old = olds.shift();
        if (old === undefined) throw new Error('strangers keep all the pids');
        old.child.kill();
        await old.ended;
        return old.pid;
      };
      const pid = await reusedPid(endNext, async (wanted) => {
        const reused = new LineProcess('sh', ['-c', 'exit 5']);
        await reused.ended;
        return reused.pid === wanted;
      });
      for (const old of olds) old.child.kill();
      await log.until(`the exit of process ${pid} with 5`, () =>
        log.of(pid).some(({ exitCode }) => exitCode === 5),
      );
      const [first, ...later] = log.of(pid);
      expect(first?.name).toBe('sleep');
      // With the cBPF filter, what a busy host runs may contest the pid; then nobody knows the status.
      const isContested = filter === 'cbpf' && first?.how === 'unknown';
      if (!isContested) expect(first?.signal).toBe('SIGTERM');
      // A stranger with that pid, too, may be a sleep.
      for (const event of later.filter(({ exitCode }) => exitCode === 5)) {
        expect(event.name).not.toBe('sleep');
        expect(event.id).not.toBe(first?.id);
      }
    });
  });

  describe('listeners and loops', () => {
    test('a listener that throws loses no events for the others, and its error surfaces', async () => {
      const script = `
      const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
      const monitor = new ExitMonitor({ scope: 'all' });
      process.on('uncaughtException', (error) => { console.log('uncaught', error.message); });
      monitor.start().then(() => {
        const child = require('node:child_process').spawn('sh', ['-c', 'exit 3']);
        monitor.on('exit', (event) => { if (event.pid === child.pid) throw new Error('first'); });
        monitor.on('exit', (event) => { if (event.pid === child.pid) console.log('second', event.exitCode); });
        monitor.watch(child.pid).exited.then(() => setTimeout(() => monitor.close(), 10));
      });
    `;
      const { stdout } = await run(process.execPath, ['-e', script]);
      expect(stdout.trim().split('\n').sort()).toEqual(['second 3', 'uncaught first']);
    });

    test('a loop starts the monitor and yields exits, and the monitor keeps running after the loop', async () => {
      await using monitor = new ExitMonitor({ scope: 'all' });
      const child = new LineProcess('sh', ['-c', 'read line; exit 3']);
      monitor.once('ready', () => child.child.stdin.end('go\n'));
      const itsExit = async () => {
        for await (const event of monitor) {
          if (event.event === 'exit' && event.pid === child.pid) return event;
        }
        return undefined;
      };
      const seen = await arrives(`the exit of process ${child.pid}`, itsExit());
      expect(seen).toMatchObject({ event: 'exit', exitCode: 3 });
      const other = new LineProcess(...FOREVER);
      const watch = monitor.watch(other.pid);
      other.child.kill();
      expect(await exitOf(watch)).toMatchObject({ signal: 'SIGTERM' });
    });

    for (const way of ['closed', 'aborted'] as const) {
      test(`a loop ends after the pending events when the monitor is ${way}`, async () => {
        const aborter = new AbortController();
        const monitor = new ExitMonitor({ scope: 'all', signal: aborter.signal });
        const loop = monitor[Symbol.asyncIterator]();
        await new Promise((resolve) => monitor.once('ready', resolve));
        const child = new LineProcess(...FOREVER);
        const watch = monitor.watch(child.pid);
        child.child.kill();
        await watch.exited;
        if (way === 'closed') await monitor.close();
        else aborter.abort();
        const told: MonitorEvent[] = [];
        for await (const event of loop) told.push(event);
        const ends = told.filter((event) => event.event === 'exit' && event.pid === child.pid);
        expect(ends).toMatchObject([{ signal: 'SIGTERM' }]);
        await expect(monitor.start()).rejects.toMatchObject({
          code: way === 'closed' ? 'ERR_EXITWATCH_CLOSED' : 'ERR_EXITWATCH_ABORTED',
        });
      });

      test(`an idle loop ends when the monitor is ${way}`, async () => {
        const aborter = new AbortController();
        const monitor = new ExitMonitor({ signal: aborter.signal });
        monitor.once('ready', () => {
          if (way === 'closed') void monitor.close();
          else aborter.abort();
        });
        const told: MonitorEvent[] = [];
        for await (const event of monitor) told.push(event);
        expect(told).toEqual([]);
      });
    }

    test('a slow loop gets a gap in place of the events that did not fit', async () => {
      await using monitor = new ExitMonitor({ scope: 'all', queueLimit: 10 });
      const loop = monitor[Symbol.asyncIterator]();
      const log = new EventLog(monitor);
      await arrives('the monitor to be ready', once(monitor, 'ready'));
      const exits = 200;
      const storm = new LineProcess(program('storm'), [String(exits)]);
      await storm.ended;
      await log.until(`more than ${exits} exits`, () => log.count > exits);
      await monitor.close();
      const told: MonitorEvent[] = [];
      const all = async () => {
        for await (const event of loop) told.push(event);
      };
      await arrives('the end of the loop', all());
      const gaps = told.filter((event) => event.event === 'gap' && event.reason === 'queue-limit');
      const yielded = told.filter((event) => event.event === 'exit').length;
      const lost = gaps.reduce((sum, gap) => sum + ('lost' in gap ? (gap.lost ?? 0) : 0), 0);
      // Every event that fit comes before the gap.
      expect(told.findIndex((event) => gaps.some((gap) => gap === event))).toBeGreaterThanOrEqual(
        10,
      );
      // A gap of the signal trace also takes a place.
      expect(yielded).toBeLessThanOrEqual(10);
      expect(told.length - gaps.length).toBeGreaterThanOrEqual(10);
      expect(yielded + lost).toBe(log.count);
    });

    test('close() rejects pending watches without an unhandled rejection', async () => {
      const script = `
      const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
      const monitor = new ExitMonitor();
      monitor.on('close', () => console.log('close'));
      monitor.start().then(() => {
        monitor.watch(process.ppid);
        return monitor.close();
      }).then(() => console.log('closed'));
    `;
      const { stdout } = await run(process.execPath, ['-e', script]);
      expect(stdout.split('\n').sort()).toEqual(['', 'close', 'closed']);
    });

    test('unref() lets a process end while its monitor runs', async () => {
      const script = `
      const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
      new ExitMonitor({ scope: 'all' }).start().then((ready) => console.log(ready.event));
      const other = new ExitMonitor({ scope: 'all' }).unref();
    `;
      const kept = new LineProcess(process.execPath, ['-e', script]);
      expect(await kept.line()).toBe('ready');
      kept.child.kill();
      expect(await kept.ended).toBeNull();
      const { stdout } = await run(process.execPath, [
        '-e',
        script.replace('.start()', '.unref().start()').replace('console.log', 'void '),
      ]);
      expect(stdout).toBe('');
    });
  });

  test('stats() reports when the last process ended, and how many ends were delivered', async () => {
    await using monitor = new ExitMonitor();
    await monitor.start();
    expect(monitor.stats()).toMatchObject({ received: 0, delivered: 0, lastEventAt: null });
    const child = new LineProcess(...FOREVER);
    const { exited } = monitor.watch(child.pid);
    child.child.kill();
    const { exitedAt } = await exited;
    expect(monitor.stats()).toMatchObject({ received: 1, delivered: 1, lastEventAt: exitedAt });
  });

  test('every event survives JSON', async () => {
    await using monitor = new ExitMonitor();
    await monitor.start();
    const child = new LineProcess(...FOREVER);
    const watch = monitor.watch(child.pid);
    child.child.kill();
    const event: ExitEvent = await exitOf(watch);
    const copy = JSON.parse(JSON.stringify(event)) as Record<string, unknown>;
    const received = event.signalsReceived.map((sent) => ({
      ...sent,
      sentAt: sent.sentAt.toISOString(),
      ...(sent.pid === null ? {} : { startedAt: sent.startedAt?.toISOString() ?? null }),
    }));
    const dates = {
      sender: received[0] ?? null,
      signalsReceived: received,
      exitedAt: event.exitedAt.toISOString(),
      startedAt: event.startedAt?.toISOString(),
      tracedSince: event.tracedSince?.toISOString() ?? null,
      requestsSince: event.requestsSince?.toISOString() ?? null,
    };
    expect(copy).toEqual({ ...event, ...dates });
  });

  /** Resolves when the process has started sleep(1). */
  async function sleeps({ pid, told }: LineProcess): Promise<void> {
    const isSleep = () => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n';
    await until(`process ${pid} to run sleep`, isSleep, told);
  }

  function isZombie(pid: number): boolean {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(' Z ');
  }
});
