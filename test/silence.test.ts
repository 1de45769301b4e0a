import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import type { ExitEvent, Gap } from '../src';

import { describeForEachFilter, environmentFor } from './support/filters';
import { itAsRoot } from './support/privilege';
import { LineProcess, program, PROGRAMS, REPOSITORY, run } from './support/programs';

const INTERVAL_MS = 1000;

/** Watches the processes given as arguments. */
const READER = `
  const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
  const monitor = new ExitMonitor({ source: 'connector', canaryIntervalMs: ${INTERVAL_MS} });
  const print = (event) => console.log(JSON.stringify(event));
  monitor.on('exit', print).on('gap', print);
  monitor.on('error', ({ code }) => print({ event: 'error', code }));
  monitor.on('close', () => print({ event: 'close', healthy: monitor.stats().healthy }));
  for (const pid of process.argv.slice(1)) monitor.watch(Number(pid));
  monitor.start().then(print);
`;

type Told = ExitEvent | Gap | { event: 'ready' | 'close' } | { event: 'error'; code: string };

async function next(reader: LineProcess): Promise<Told> {
  return JSON.parse((await reader.line()) ?? 'null') as Told;
}

describeForEachFilter((filter) => {
  itAsRoot('a stream that goes silent is a gap, and comes back', async () => {
    const during = new LineProcess('sleep', ['1000']);
    const after = new LineProcess('sleep', ['1000']);
    const pids = [String(during.pid), String(after.pid)];
    const reader = new LineProcess(process.execPath, ['-e', READER, ...pids], {
      env: environmentFor(filter),
    });
    expect(await next(reader)).toMatchObject({ event: 'ready', filter });
    const silencedAt = Date.now();
    expect((await run(program('silence'), [String(reader.pid)])).stdout).toBe('1\n');
    during.child.kill('SIGTERM');

    const gap = (await next(reader)) as Gap;
    expect(gap).toMatchObject({ event: 'gap', reason: 'silenced', lost: null, recovered: 1 });
    const [from, to] = [new Date(gap.from).getTime(), new Date(gap.to).getTime()];
    expect(from).toBeLessThanOrEqual(silencedAt + 100);
    expect(to - silencedAt).toBeLessThanOrEqual(2 * INTERVAL_MS);
    // It was reaped by us in the silence: only a zombie's status could have been read.
    const found = (await next(reader)) as ExitEvent;
    expect(found).toMatchObject({ event: 'exit', pid: during.pid, lossless: false });
    // It ended soon after the silence had begun, and what is told of its time allows for that.
    const earliest = new Date(found.exitedAt).getTime() - found.uncertaintyMs;
    expect(earliest).toBeLessThanOrEqual(silencedAt + 100);

    after.child.kill('SIGKILL');
    expect(await next(reader)).toMatchObject({
      ...{ event: 'exit', pid: after.pid, how: 'killed', signal: 'SIGKILL' },
    });
    reader.child.kill();
    await reader.ended;
  });

  itAsRoot('it comes back also while watches come and go', async () => {
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
      // Long enough for the reader to be in the middle of subscribing, which answers nothing.
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
});

itAsRoot('a canary for which there is no thread proves nothing, and ends nothing', async () => {
  const asNobody = ['--reuid=65534', '--regid=65534', '--clear-groups'];
  const reader = new LineProcess('setpriv', [...asNobody, process.execPath, '-e', READER]);
  expect(await next(reader)).toMatchObject({ event: 'ready' });
  // The soft limit alone, as the user himself may.
  await run('setpriv', [...asNobody, 'prlimit', '--pid', String(reader.pid), '--nproc=1:']);
  await setTimeout(3 * INTERVAL_MS);
  expect(reader.child.exitCode).toBeNull();
  reader.child.kill();
  expect(await reader.rest()).toEqual([]);
});

itAsRoot('a quiet host is not taken for a silent one', async () => {
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
