// Lane: storm

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import type { ExitEvent, Gap, SourceChange } from '../../src';

import { Crowd } from '../support/crowd';
import { describeForEachFilter, environmentFor } from '../support/filters';
import { isLeftOpen, KERNEL } from '../support/kernel';
import { itAsRoot } from '../support/privilege';
import { LineProcess, program, PROGRAMS, REPOSITORY, run } from '../support/programs';
import { roomForProcesses } from '../support/room';
import { until } from '../support/wait';

const INTERVAL_MS = process.env['EXITWATCH_EMULATED'] === undefined ? 500 : 1000;

/** Watches the processes given as arguments with the source $SOURCE and the scope $SCOPE. */
const READER = `
  const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
  const { SOURCE: source = 'connector', SCOPE: scope = 'watched' } = process.env;
  const monitor = new ExitMonitor({ source, scope, canaryIntervalMs: ${INTERVAL_MS} });
  const print = (event) => console.log(JSON.stringify(event));
  monitor.on('exit', print).on('gap', print).on('source', print);
  monitor.on('error', ({ code }) => print({ event: 'error', code }));
  monitor.on('close', () => print({ event: 'close', healthy: monitor.stats().healthy }));
  for (const pid of process.argv.slice(1)) monitor.watch(Number(pid));
  monitor.start().then(print);
`;

type Told =
  ExitEvent | Gap | SourceChange | { event: 'ready' | 'close' } | { event: 'error'; code: string };

async function next(reader: LineProcess): Promise<Told> {
  return JSON.parse((await reader.line()) ?? 'null') as Told;
}

/** The pids with a wrong event. */
function wrongPids(pids: readonly string[], exits: ReadonlyMap<string, ExitEvent>): string[] {
  return pids.filter((pid, i) => {
    const event = exits.get(pid);
    return event === undefined || !(event.exitCode === i % 128 || isLeftOpen(event));
  });
}

/** As many processes as there is room for, up to `most`. */
async function heldOf(most: number): Promise<{ crowd: Crowd; pids: string[] }> {
  const crowd = await Crowd.of(roomForProcesses(most));
  return { crowd, pids: crowd.pids.map(String) };
}

async function endAll({ crowd }: { crowd: Crowd }): Promise<void> {
  crowd.end();
  await crowd.reaped();
}

describeForEachFilter((filter) => {
  itAsRoot('a stream that goes silent causes a gap, and recovers', async () => {
    const during = new LineProcess('sleep', ['1000']);
    const after = new LineProcess('sleep', ['1000']);
    const pids = [String(during.pid), String(after.pid)];
    const reader = new LineProcess(process.execPath, ['-e', READER, ...pids], {
      env: environmentFor(filter),
    });
    expect(await next(reader)).toMatchObject({ event: 'ready', filter });
    const silencedAt = Date.now();
    expect((await run(program('silence'), [String(reader.pid)])).stdout).toBe('1\n');
    const silentAt = Date.now();
    during.child.kill('SIGTERM');

    const gap = (await next(reader)) as Gap;
    expect(gap).toMatchObject({ event: 'gap', reason: 'silenced', lost: null, recovered: 1 });
    const [from, to] = [new Date(gap.from).getTime(), new Date(gap.to).getTime()];
    expect(from).toBeLessThanOrEqual(silentAt + 100);
    expect(to - silencedAt).toBeLessThanOrEqual(2 * INTERVAL_MS + 500);
    // The test reaped it during the silence: only a zombie's status could have been read.
    const found = (await next(reader)) as ExitEvent;
    expect(found).toMatchObject({ event: 'exit', pid: during.pid, lossless: false });
    // It ended soon after the silence began, and the reported uncertainty allows for that.
    const earliest = new Date(found.exitedAt).getTime() - found.uncertaintyMs;
    expect(earliest).toBeLessThanOrEqual(silentAt + 100);

    after.child.kill('SIGKILL');
    expect(await next(reader)).toMatchObject({
      ...{ event: 'exit', pid: after.pid, how: 'killed', signal: 'SIGKILL' },
    });
    reader.child.kill();
    await reader.ended;
  });

  itAsRoot('with scope all, processes that vanish in a silence are reported lost', async () => {
    const held = await heldOf(3);
    const reader = new LineProcess(process.execPath, ['-e', READER], {
      env: { ...environmentFor(filter), SCOPE: 'all' },
    });
    const readyEvent = async () => {
      const event = await next(reader); // other processes may end first
      return event.event === 'ready' && event;
    };
    expect(await until('the reader to be ready', readyEvent, reader.told)).toMatchObject({
      filter,
    });
    await run(program('silence'), [String(reader.pid)]);
    await endAll(held);
    const told: Told[] = [];
    const ofHeld = () => told.filter((event) => event.event === 'exit' && isHeld(event));
    const isHeld = ({ pid }: ExitEvent) => held.pids.includes(String(pid));
    const areReported = async () => {
      told.push(await next(reader));
      return ofHeld().length >= 3;
    };
    await until('the exits of the held processes', areReported, reader.told);
    expect(told.map(({ event }) => event)).toContain('gap');
    for (const event of ofHeld()) {
      expect(event).toMatchObject({ how: 'unknown', unknownReason: 'lost', name: 'hold' });
    }
    reader.child.kill();
    await reader.ended;
  });

  itAsRoot('a stream recovers even while watches come and go', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-deaf-'));
    const deafWhile = join(folder, 'deaf');
    const env = {
      ...environmentFor(filter),
      LD_PRELOAD: join(PROGRAMS, 'deafen.so'),
      DEAF_WHILE: deafWhile,
      DEAF_TO_ALL: '1',
    };
    const churn = 'setInterval(() => monitor.watch(process.ppid).close(), 5);';
    const reader = new LineProcess(process.execPath, ['-e', READER + churn], { env });
    try {
      expect(await next(reader)).toMatchObject({ event: 'ready', filter });
      writeFileSync(deafWhile, '');
      await run(program('silence'), [String(reader.pid)]);
      // Long enough for the reader to be in the middle of subscribing, which gets no answer.
      await setTimeout(1.5 * INTERVAL_MS + 200);
      rmSync(deafWhile);
      expect(await next(reader)).toMatchObject({ event: 'gap', reason: 'silenced' });
      reader.child.kill();
      await reader.ended;
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  itAsRoot('a stream that stays silent ends in an error', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-deaf-'));
    const deafWhile = join(folder, 'deaf');
    const env = {
      ...environmentFor(filter),
      LD_PRELOAD: join(PROGRAMS, 'deafen.so'),
      DEAF_WHILE: deafWhile,
    };
    const reader = new LineProcess(process.execPath, ['-e', READER], { env });
    try {
      expect(await next(reader)).toMatchObject({ event: 'ready', filter });
      writeFileSync(deafWhile, '');
      await run(program('silence'), [String(reader.pid)]);
      expect(await next(reader)).toEqual({ event: 'error', code: 'ERR_EXITWATCH_SILENT' });
      expect(await next(reader)).toEqual({ event: 'close', healthy: false });
      expect(await reader.ended).toBe(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  itAsRoot('a stream that stays silent does not affect watches with pidfds', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-deaf-'));
    const deafWhile = join(folder, 'deaf');
    const [during, after, again] = [await heldOf(1000), await heldOf(100), await heldOf(10)];
    const env = {
      ...environmentFor(filter),
      SOURCE: 'auto',
      LD_PRELOAD: join(PROGRAMS, 'deafen.so'),
      DEAF_WHILE: deafWhile,
    };
    const pids = [during, after, again].flatMap((held) => held.pids);
    const reader = new LineProcess(process.execPath, ['-e', READER, ...pids], { env });
    const exits = new Map<string, ExitEvent>();
    const others: Told[] = [];
    const untilToldOf = async (wanted: readonly string[]) => {
      while (!wanted.every((pid) => exits.has(pid))) {
        const event = await next(reader);
        if (event.event === 'exit') exits.set(String(event.pid), event);
        else others.push(event);
      }
      expect(wrongPids(wanted, exits)).toEqual([]);
    };
    try {
      expect(await next(reader)).toMatchObject({ event: 'ready', source: 'connector', filter });
      writeFileSync(deafWhile, '');
      await run(program('silence'), [String(reader.pid)]);
      await endAll(during);
      await untilToldOf(during.pids);
      while (others.length < 2) others.push(await next(reader));
      expect(others).toMatchObject([
        { event: 'gap', reason: 'silenced', lost: null },
        {
          ...{ event: 'source', source: 'pidfd', previous: 'connector', filter: null },
          downgrade: { code: 'ERR_EXITWATCH_SILENT' },
        },
      ]);
      await endAll(after);
      await untilToldOf(after.pids);
      expect(after.pids.map((pid) => exits.get(pid)?.source)).toEqual(
        after.pids.map(() => 'pidfd'),
      );

      // When the stream can be heard again, the reader uses it.
      rmSync(deafWhile);
      expect(await next(reader)).toMatchObject({
        ...{ event: 'source', source: 'connector', previous: 'pidfd', filter },
      });
      await endAll(again);
      await untilToldOf(again.pids);
      expect(again.pids.map((pid) => exits.get(pid)?.source)).toContain('connector');
      expect(exits.size).toBe(pids.length);
      reader.child.kill();
      await reader.ended;
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  itAsRoot('a socket that breaks does not affect watches with pidfds, either', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-broken-'));
    const held = await heldOf(1000);
    const last = new LineProcess('sleep', ['1000']);
    const env = {
      ...environmentFor(filter),
      SOURCE: 'auto',
      LD_PRELOAD: join(PROGRAMS, 'break.so'),
      BREAK_WHEN: join(folder, 'break'),
    };
    const args = ['-e', READER, ...held.pids, String(last.pid)];
    const reader = new LineProcess(process.execPath, args, { env });
    expect(await next(reader)).toMatchObject({ event: 'ready', source: 'connector', filter });
    writeFileSync(env.BREAK_WHEN, '');
    await setTimeout(100);
    await endAll(held);
    const exits = new Map<string, ExitEvent>();
    const gaps: Told[] = [];
    while (exits.size < held.pids.length || gaps.length < 1) {
      const event = await next(reader);
      if (event.event === 'exit') exits.set(String(event.pid), event);
      else gaps.push(event);
    }
    expect(wrongPids(held.pids, exits)).toEqual([]);
    expect(gaps).toMatchObject([{ event: 'gap', reason: 'silenced' }]);
    // The reader has reopened the socket.
    last.child.kill('SIGKILL');
    expect(await next(reader)).toMatchObject({ pid: last.pid, signal: 'SIGKILL' });
    reader.child.kill();
    await reader.ended;
    rmSync(folder, { recursive: true });
  });

  itAsRoot('a busy event loop does not make a stream silent', async () => {
    const script = `
      const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
      const { setTimeout } = require('node:timers/promises');
      const monitor = new ExitMonitor({ source: 'connector', canaryIntervalMs: 300 });
      const gaps = [];
      monitor.on('gap', (gap) => gaps.push(gap));
      const { exited } = monitor.watch(${process.pid});
      exited.catch(() => undefined);
      monitor.start().then(async ({ filter }) => {
        for (let i = 0; i < 2; i++) {
          await setTimeout(400); // the idle loop reads the stream
          for (const until = Date.now() + 1000; Date.now() < until; );
        }
        await setTimeout(400);
        console.log(JSON.stringify({ filter, gaps, healthy: monitor.stats().healthy }));
        monitor.close();
      });
    `;
    const reader = new LineProcess(process.execPath, ['-e', script], {
      env: environmentFor(filter),
    });
    const [told = 'null'] = await reader.rest();
    expect(JSON.parse(told)).toEqual({ filter, gaps: [], healthy: true });
  });
});

itAsRoot('a canary that cannot be created proves nothing and ends nothing', async () => {
  const asNobody = ['--reuid=65534', '--regid=65534', '--clear-groups'];
  // Before Linux 6.6 listening requires a capability.
  const listener = KERNEL.ordinaryListeners
    ? asNobody
    : [...asNobody, '--inh-caps=+net_admin', '--ambient-caps=+net_admin'];
  const reader = new LineProcess('setpriv', [...listener, process.execPath, '-e', READER]);
  expect(await next(reader)).toMatchObject({ event: 'ready' });
  // Only the soft limit, which the user could also lower.
  await run('setpriv', [...asNobody, 'prlimit', '--pid', String(reader.pid), '--nproc=1:']);
  const limits = readFileSync(`/proc/${reader.pid}/limits`, 'latin1');
  expect(limits).toMatch(/^Max processes +1 /m);
  await setTimeout(3 * INTERVAL_MS);
  expect(reader.child.exitCode).toBeNull();
  reader.child.kill();
  expect(await reader.rest()).toEqual([]);
});

itAsRoot('a quiet host does not count as silent', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitors = [1, 2, 3].map(() => new ExitMonitor({ canaryIntervalMs: 100 }));
    for (const monitor of monitors) monitor.on('gap', (gap) => console.log(JSON.stringify(gap)));
    Promise.all(monitors.map((monitor) => monitor.start())).then(() => {
      setTimeout(() => {
        for (const monitor of monitors) {
          const { canaryAgeMs, healthy, gaps } = monitor.stats();
          console.log(JSON.stringify({ isYoung: canaryAgeMs < 1000, healthy, gaps }));
          monitor.close();
        }
      }, 1500);
    });
  `;
  const reader = new LineProcess(process.execPath, ['-e', script]);
  const well = JSON.stringify({ isYoung: true, healthy: true, gaps: 0 });
  expect(await reader.rest()).toEqual([well, well, well]);
});
