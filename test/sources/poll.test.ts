// Lane: storm

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import { ExitMonitor, type ExitEvent } from '../../src';
import { ProcTable, parseStat } from '../../src/identity/proc-table';
import { parsePs, PsTable } from '../../src/identity/ps-table';

import { Crowd } from '../support/crowd';
import { itAsRoot, itIf } from '../support/privilege';
import { carelessParent, LineProcess, program, REPOSITORY, run } from '../support/programs';
import { roomForProcesses } from '../support/room';
import { exitOf, exitsOf } from '../support/ends';
import { until } from '../support/wait';

const NOW_MS = Date.UTC(2026, 10, 21, 12);

/** Output of ps on these systems, with LC_ALL=C and TZ=UTC0. */
const RECORDED = {
  macOS: {
    form: ['pid', 'ppid', 'uid', 'stat', 'lstart', 'comm'],
    output: `    1     0     0 Ss   Fri Nov 20 08:15:02 2026     /sbin/launchd
  613     1   501 S    Sat Nov 21 11:30:00 2026     /Applications/Safari.app/Contents/MacOS/Safari
  700     1    -2 Z    Sat Nov  1 01:02:03 2026     (mdworker shared)
`,
    rows: [
      { pid: 1, name: 'launchd', startTicks: Date.UTC(2026, 10, 20, 8, 15, 2) / 10 },
      { pid: 613, uid: 501, parentPid: 1, name: 'Safari', isDead: false },
      { pid: 700, uid: -2, name: '(mdworker shared)', isDead: true },
    ],
  },
  FreeBSD: {
    form: ['pid', 'ppid', 'uid', 'stat', 'lstart', 'comm'],
    output: `  0    0    0 DLs  Fri Nov 20 08:15:02 2026 kernel
811  790 1001 Is+  Sat Nov 21 11:59:58 2026 sh
`,
    rows: [
      { pid: 0, name: 'kernel' },
      { pid: 811, parentPid: 790, startTicks: Date.UTC(2026, 10, 21, 11, 59, 58) / 10 },
    ],
  },
  procps: {
    form: ['pid', 'ppid', 'uid', 'stat', 'lstart', 'comm'],
    output: `      7       1     0 Zl   Sat Nov 21 11:59:00 2026 leader gone <defunct>
      8       1     0 Z    Sat Nov 21 11:59:00 2026 dead <defunct>
`,
    rows: [
      { pid: 7, isDead: false },
      { pid: 8, isDead: true },
    ],
  },
  toybox: {
    form: ['pid', 'ppid', 'uid', 'stat', 'etime', 'comm'],
    output: `    9     1     0 S        01:30 sh
   10     1     0 Ss   2-03:00:05 init
`,
    rows: [
      { pid: 9, startTicks: (NOW_MS - 90_000) / 10 },
      { pid: 10, startTicks: (NOW_MS - (51 * 3600 + 5) * 1000) / 10 },
    ],
  },
  busybox: {
    form: ['pid', 'ppid', 'stat', 'comm'],
    output: `    1     0 S    init
   20     1 Z    sh
`,
    rows: [
      { pid: 1, startTicks: null, uid: null, name: 'init' },
      { pid: 20, isDead: true },
    ],
  },
} as const;

test.each(Object.entries(RECORDED))('parses the output of ps on %s', (_, recorded) => {
  const table = parsePs(recorded.output, recorded.form, NOW_MS);
  expect(table.size).toBe(recorded.rows.length);
  for (const row of recorded.rows) expect(table.get(row.pid)).toMatchObject(row);
});

test('a process that ps lists twice, or without a start time, does not count as ended', () => {
  const output =
    ' 77 1 0 S Sat Nov 21 11:59:00 2026 a\n77 1 0 Z Sat Nov 21 11:59:00 2026 b\n78 1 0 Z - (sh)\n';
  const table = parsePs(output, RECORDED.macOS.form, NOW_MS);
  expect(table.get(77)).toBe('unknown');
  expect(table.get(78)).toMatchObject({ startTicks: null, isDead: true });
});

test('a name with line breaks hides no process, and makes none of them seem gone', () => {
  const output = '20 1 S a\n>x\n\n21 b\n22 1 S c\n1 0 S init\n23 1 S d\n1 0 Z init\n';
  const table = parsePs(output, RECORDED.busybox.form, NOW_MS);
  expect(table.get(20)).toMatchObject({ parentPid: 1, name: null });
  expect(table.get(22)).toMatchObject({ parentPid: 1, name: 'c' });
  expect(table.get(23)).toMatchObject({ name: 'd' });
  // Nobody can tell a row from a line of a name that looks like one.
  expect([table.get(1), table.get(21)]).toEqual(['unknown', 'unknown']);
  expect(table.size).toBe(5);
});

test.each([
  '',
  '\n',
  'ps: bad -o argument\n',
  '1 0 0 S Sat Nov 21 sh\n',
  '1 0 0 S Sat Foo 21 1:2:3 2026 x',
])('rejects output that is not a table: %j', (output) => {
  expect(() => parsePs(output, RECORDED.macOS.form, NOW_MS)).toThrow();
});

test.each(['', '1', '1 (a) S', 'x (a) S 1'])('rejects text that is not a stat file: %j', (text) => {
  expect(parseStat(text, null)).toBeNull();
});

describe.each(['ps', 'toybox ps', 'busybox ps'])('%s, live', (words) => {
  const [program = ''] = words.split(' ');
  const isThere = spawnSync(program, ['--version']).error === undefined;
  const { TZ } = process.env;

  beforeAll(() => {
    process.env['TZ'] = 'JST-9';
  });

  afterAll(() => {
    if (TZ === undefined) delete process.env['TZ'];
    else process.env['TZ'] = TZ;
  });

  itIf(isThere, `needs ${program}`)(
    'lists processes and zombies with their start times, in any time zone',
    async () => {
      const table = new PsTable(words.split(' '));
      const parent = carelessParent('exec sleep 0.1');
      const zombie = Number(await parent.line());
      while (new ProcTable().lookNow(zombie) === null) await setTimeout(5);
      const isDead = () => {
        const lookup = new ProcTable().lookNow(zombie);
        return lookup !== null && lookup !== 'unknown' && lookup.isDead;
      };
      while (!isDead()) await setTimeout(5);
      const seen = await table.list();
      expect(seen.get(parent.pid)).toMatchObject({ parentPid: process.pid, isDead: false });
      expect(seen.get(zombie)).toMatchObject({ isDead: true });
      const row = seen.get(parent.pid);
      if (typeof row === 'object' && row.startTicks !== null) {
        const agoMs = Date.now() - table.startTime(row.startTicks).getTime();
        expect(Math.abs(agoMs)).toBeLessThan(10_000);
      } else {
        expect(words).toBe('busybox ps');
      }
      parent.child.kill();
    },
  );

  itIf(isThere, `needs ${program}`)(
    'lists processes beside one with a line break in its name',
    async () => {
      const script = `require('node:fs').writeFileSync('/proc/self/comm', 'a\\n>x\\n21 b'); console.log(); setInterval(() => {}, 1000)`;
      const hostile = new LineProcess(process.execPath, ['-e', script]);
      expect(await hostile.line()).toBe('');
      const table = new PsTable(words.split(' '));
      expect(table.lookNow(hostile.pid)).toMatchObject({ parentPid: process.pid });
      expect((await table.list()).get(process.pid)).toMatchObject({ parentPid: process.ppid });
      hostile.child.kill();
    },
  );
});

test('a process that is gone, or whose pid another one has, ended in an unknown way', async () => {
  const child = new LineProcess('sh', ['-c', 'read line; exit 3']);
  await using monitor = new ExitMonitor({ source: 'poll', pollIntervalMs: 50 });
  expect(await monitor.start()).toMatchObject({ source: 'poll', filter: null, downgrade: null });
  const watch = monitor.watch(child.pid);
  expect(watch.hasPidfd).toBe(false);
  const { wakeups } = monitor.stats();
  while (monitor.stats().wakeups === wakeups) await setTimeout(5);
  child.child.stdin.write('\n');
  const event = await exitOf(watch);
  expect(event).toMatchObject({
    ...{ id: watch.identity.id, how: 'unknown', unknownReason: 'polled', source: 'poll' },
    ...{ exitCode: null, signal: null, coreDumped: null, exitedNs: null, name: 'sh' },
  });
  // It lived at one look, and was gone at the next.
  expect(event.uncertaintyMs).toBeGreaterThanOrEqual(49);
  expect(monitor.stats()).toMatchObject({ received: 1, healthy: true, watches: 0 });
});

test('the uncertainty of an end is the time since the last look, however long the process was watched', async () => {
  const child = new LineProcess('sh', ['-c', 'read line']);
  await using monitor = new ExitMonitor({ source: 'poll', pollIntervalMs: 10 });
  await monitor.start();
  const watch = monitor.watch(child.pid);
  const looks = async (count: number) => {
    const { wakeups } = monitor.stats();
    await until(`${count} looks`, () => monitor.stats().wakeups >= wakeups + count);
  };
  await looks(5);
  const livedMs = Date.now();
  await looks(2); // the first may have begun before
  child.child.stdin.write('\n');
  const { exitedAt, uncertaintyMs } = await exitOf(watch);
  // Both are rounded.
  expect(exitedAt.getTime() - uncertaintyMs).toBeGreaterThanOrEqual(livedMs - 2);
});

test('a process whose first thread has left exists until the others end', async () => {
  const child = new LineProcess(program('first-left'), []);
  expect(await child.line()).toBe('left');
  await using monitor = new ExitMonitor({ source: 'poll', pollIntervalMs: 50 });
  await monitor.start();
  const { exited } = monitor.watch(child.pid);
  const { wakeups } = monitor.stats();
  while (monitor.stats().wakeups < wakeups + 2) await setTimeout(5);
  expect(monitor.stats().watches).toBe(1);
  child.child.stdin.write('\n');
  expect(await exited).toMatchObject({ pid: child.pid, unknownReason: 'polled' });
});

test('with scope all, a process that vanishes between two looks is reported', async () => {
  await using monitor = new ExitMonitor({ source: 'poll', scope: 'all', pollIntervalMs: 50 });
  const told: ExitEvent[] = [];
  monitor.on('exit', (event) => told.push(event));
  const before = new LineProcess('sleep', ['1000']);
  await monitor.start();
  const after = new LineProcess('sleep', ['1000']);
  const watched = monitor.watch(after.pid);
  await setTimeout(150);
  before.child.kill();
  after.child.kill();
  await exitOf(watched);
  const isReported = () => told.some(({ pid }) => pid === before.pid);
  await until(`the exit of process ${before.pid}`, isReported);
  await setTimeout(150);
  for (const { pid } of [before, after]) {
    expect(told.filter((event) => event.pid === pid)).toMatchObject([
      { how: 'unknown', unknownReason: 'polled', name: 'sleep' },
    ]);
  }
  expect(told.find(({ pid }) => pid === after.pid)?.id).toBe(watched.identity.id);
});

/** Runs a script in a Node.js that claims to be on another platform. */
async function on(platform: string, script: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const prefix = `
    Object.defineProperty(process, 'platform', { value: ${JSON.stringify(platform)} });
    const { ExitMonitor, identify, probe, waitForExit } = require(${JSON.stringify(REPOSITORY)});
    const { spawn } = require('node:child_process');
  `;
  const { stdout } = await run(process.execPath, ['-e', prefix + script], {
    env: { ...process.env, ...env },
  });
  return stdout.trim();
}

const WAIT = `
  const child = spawn('sleep', ['0.2']);
  const monitor = new ExitMonitor({ pollIntervalMs: 50 });
  const watch = monitor.watch(child.pid);
  monitor.start().then(async ({ source, downgrade }) => {
    const { pid, how, unknownReason } = await watch.exited;
    console.log(JSON.stringify({ source, code: downgrade.code, same: pid === child.pid, how, unknownReason }));
    await monitor.close();
  }, ({ code }) => console.log(code));
`;

test.each(['darwin', 'freebsd', 'win32'])('on %s monitors poll', async (platform) => {
  expect(JSON.parse(await on(platform, WAIT))).toEqual({
    ...{ source: 'poll', code: 'ERR_EXITWATCH_NO_ADDON', same: true },
    ...{ how: 'unknown', unknownReason: 'polled' },
  });
});

itAsRoot('after a fall-back to polling, an unref()ed monitor lets the process end', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor({ scope: 'all' }).unref();
    const alive = setTimeout(() => {}, 3_600_000);
    monitor.start().then(({ source, downgrade }) => {
      console.log(source, downgrade.code);
      clearTimeout(alive);
    });
  `;
  const { stdout } = await run('unshare', ['-n', process.execPath, '-e', script]);
  expect(stdout.trim()).toBe('poll ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE');
});

test('without ps there is one clear error', async () => {
  const script = `
    try { new ExitMonitor().watch(process.ppid); } catch ({ code, remedy }) { console.log(code, remedy); }
    new ExitMonitor({ scope: 'all' }).start().catch(({ code }) => console.log(code));
  `;
  expect(await on('darwin', script, { PATH: '/nowhere' })).toBe(
    'ERR_EXITWATCH_NO_PS install ps (procps on Linux), and make sure that it is in PATH\nERR_EXITWATCH_NO_PS',
  );
});

itAsRoot('a process that /proc hides (hidepid=2) is not reported as gone', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const { readFileSync } = require('node:fs');
    const monitor = new ExitMonitor({ source: 'poll', scope: 'all', pollIntervalMs: 50 });
    const told = [];
    monitor.on('exit', ({ pid }) => told.push(pid));
    monitor.start().then(() => {
      console.log('started');
      const check = () => {
        if (!readFileSync('/proc/self/mounts', 'utf8').includes('hidepid=')) return setTimeout(check, 10);
        const child = require('node:child_process').spawn('sleep', ['1000']);
        const { pid } = child;
        const { wakeups } = monitor.stats();
        const seen = () => {
          if (monitor.stats().wakeups < wakeups + 2) return setTimeout(seen, 10);
          child.kill();
        };
        seen();
        monitor.on('exit', (event) => {
          if (event.pid !== pid) return;
          console.log(JSON.stringify({ told, pid, healthy: monitor.stats().healthy }));
          process.exit();
        });
      };
      check();
    });
  `;
  const hide = 'read line; mount -o remount,hidepid=2 /proc';
  const shell = `mount -t proc proc /proc; "$@" </dev/null & ${hide}; wait`;
  const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const reader = [...asNobody, process.execPath, '-e', script];
  const alive = new LineProcess('sleep', ['1000']);
  const outer = new LineProcess('unshare', ['-m', 'sh', '-c', shell, 'sh', ...reader]);
  expect(await outer.line()).toBe('started');
  outer.child.stdin.write('hide\n');
  const { told, pid, healthy } = JSON.parse((await outer.line()) ?? 'null') as {
    told: number[];
    pid: number;
    healthy: boolean;
  };
  expect(told).toContain(pid);
  expect(told).not.toContain(alive.pid);
  const lives = (other: number) => {
    const lookup = new ProcTable().lookNow(other);
    return lookup !== null && lookup !== 'unknown' && !lookup.isDead;
  };
  expect(told.filter(lives)).toEqual([]);
  expect(healthy).toBe(true);
  alive.child.kill();
  await outer.ended;
  expect(readFileSync('/proc/mounts', 'utf8')).not.toMatch('hidepid=2');
});

itAsRoot('without a working connector, scope all polls', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor({ scope: 'all', pollIntervalMs: 50 });
    const child = require('node:child_process').spawn('cat');
    monitor.on('exit', ({ pid, source, how }) => {
      if (pid !== child.pid) return;
      console.log(source, how);
      void monitor.close();
    });
    monitor.start().then(({ source, downgrade }) => {
      console.log(source, downgrade.code);
      child.stdin.end();
    });
  `;
  const { stdout } = await run('unshare', ['-n', process.execPath, '-e', script]);
  expect(stdout).toBe('poll ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE\npoll unknown\n');
});

test('without pidfds, watches poll', async () => {
  const script = `
    const { waitForExit, probe } = require(${JSON.stringify(REPOSITORY)});
    const { pid } = require('node:child_process').spawn('sleep', ['0.2']);
    waitForExit(pid).then(async ({ source, unknownReason }) => {
      const { sources, pidfd } = await probe();
      console.log(source, unknownReason, sources.watched, pidfd.obstacle.code);
    });
  `;
  const args = ['pidfd_open', 'errno', process.execPath, '-e', script];
  const { stdout } = await run(program('without'), args);
  expect(stdout).toBe('poll polled poll ERR_EXITWATCH_NO_PIDFD\n');
});

test('many watches are each reported once', async () => {
  await using crowd = await Crowd.of(roomForProcesses(2000));
  const { pids } = crowd;
  await using monitor = new ExitMonitor({ source: 'poll', pollIntervalMs: 100 });
  const watches = pids.map((pid) => monitor.watch(pid));
  await monitor.start();
  crowd.end();
  const ends = await exitsOf(watches);
  expect(ends.map(({ pid }) => pid)).toEqual(pids);
});
