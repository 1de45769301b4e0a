// Lane: patient

import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ExitMonitor, type Ready } from '../../src';
import { loadAddon } from '../../src/native/load-addon';

import { folderOfController, itAsRootWith } from '../support/controllers';
import { EventLog } from '../support/event-log';
import { itAsRoot, itAsRootOfHost } from '../support/privilege';
import { LineProcess, PROGRAMS, program, REPOSITORY } from '../support/programs';

const NAME = 'exitwatch-trial';

/** Starts a monitor of each scope, and prints the event of a child that a shell has killed. */
const WATCHER = `
  const { spawn } = require('node:child_process');
  const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
  (async () => {
    for (const scope of ['watched', 'all']) {
      const monitor = new ExitMonitor({ scope });
      const signals = [];
      monitor.on('signal', ({ name }) => signals.push(name));
      const { traced, traceDowngrade } = await monitor.start();
      const child = spawn('sleep', ['1000']);
      const { exited } = monitor.watch(child.pid);
      spawn('sh', ['-c', 'kill ' + child.pid + '; :']);
      const event = await exited;
      await monitor.close();
      console.log(JSON.stringify({ traced, traceDowngrade, event, signals }));
    }
  })();
`;

interface Told {
  traced: boolean;
  traceDowngrade: Ready['traceDowngrade'];
  event: object;
  signals: string[];
}

async function watch(spoil: string): Promise<Told[]> {
  const env = { ...process.env, EXITWATCH_SPOIL_TRACE: spoil };
  const watcher = new LineProcess(process.execPath, ['-e', WATCHER], { env });
  const lines = await watcher.rest();
  expect(watcher.stderr).toBe('');
  return lines.map((line) => JSON.parse(line) as Told);
}

const UNTRACED = {
  traced: false,
  signals: [],
  event: {
    ...{
      signal: 'SIGTERM',
      traced: false,
      tracedSince: null,
      requestsSince: null,
      sender: null,
      signalsReceived: [],
    },
    ...{ oom: null, raisedAfter: null },
  },
};

/**
 * The finding of the self-test for each way to misread the kernel, including kernels where kill(2)
 * has no siginfo.
 */
const SPOILT: [string, RegExp][] = [
  ['pid', /kill\(2\) was seen from another process/],
  ['uid', /kill\(2\) was seen from another process/],
  ['signal', /SIGTERM from kill\(2\) was not seen/],
  ['arguments', /SIGTERM from kill\(2\) was not seen/],
  ['no-info', /PR_SET_PDEATHSIG was seen as kill$|kill\(2\) was seen with a different siginfo$/],
  ['kernel-thread', /kill\(2\) was seen as kernel$/],
  ['group', /kill\(2\) was seen (with the wrong scope|as kernel)/],
  ['direction', /kill\(2\) was not seen/],
  ['code', /tgkill\(2\) was seen as kill$/],
  ['value', /kill\(2\) was seen with a different siginfo/],
  ['exit', /PR_SET_PDEATHSIG (was seen as kill|cannot be distinguished from other signals)$/],
  ['start', /kill\(2\) was seen at another process/],
  ['name', /kill\(2\) was seen at another process/],
  [
    'stack',
    /rt_sigqueueinfo\(2\) was seen as kernel$|kill\(2\) cannot be distinguished from other signals$/,
  ],
  ['parent', /kill\(2\) was seen from another process/],
  ['thread', /kill\(2\) was seen from another process/],
];

test('every way to spoil the trace is tested here', () => {
  expect(SPOILT.map(([spoil]) => spoil)).toEqual(loadAddon().spoils);
});

itAsRootOfHost.each(SPOILT)('a trace that misreads "%s" claims nothing', async (spoil, detail) => {
  const told = await watch(spoil);
  const traceDowngrade = {
    code: 'trial-failed',
    detail: expect.stringMatching(detail) as string,
    remedy: expect.any(String) as string,
  };
  expect(told).toMatchObject([
    { ...UNTRACED, traceDowngrade },
    { ...UNTRACED, traceDowngrade },
  ]);
});

/**
 * Watches the process of its first argument while its cgroup, the second one, has no room for a
 * child.
 */
const POOR = `
  const { readFileSync, writeFileSync } = require('node:fs');
  const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
  const [pid, pids] = process.argv.slice(1);
  (async () => {
    const monitor = new ExitMonitor();
    const { exited } = monitor.watch(Number(pid));
    // Room for the reader's thread and that of the self-test.
    if (pids) writeFileSync(pids + '/pids.max', String(Number(readFileSync(pids + '/pids.current')) + 2));
    const { traced, traceDowngrade } = await monitor.start();
    console.log('ready');
    const event = await exited;
    if (pids) writeFileSync(pids + '/pids.max', 'max');
    console.log(JSON.stringify({ traced, traceDowngrade, event, signals: [] }));
    await monitor.close();
  })();
`;

async function watchPoorly(before: readonly string[], pids: readonly string[]): Promise<Told> {
  const sleep = new LineProcess('sleep', ['1000']);
  const [command, ...args] = [...before, process.execPath, '-e', POOR];
  const watcher = new LineProcess(command, [...args, String(sleep.pid), ...pids]);
  expect(await watcher.line()).toBe('ready');
  sleep.child.kill();
  const told = JSON.parse((await watcher.line()) ?? '') as Told;
  await watcher.ended;
  return told;
}

describe('if no child process can be created, nothing is claimed, and the reason is reported', () => {
  const because = (failure: RegExp) => ({
    ...UNTRACED,
    traceDowngrade: {
      code: 'no-trial',
      detail: expect.stringMatching(failure) as string,
      remedy: expect.stringContaining('pids.max') as string,
    },
  });

  itAsRoot('because of a seccomp filter', async () => {
    const told = await watchPoorly([program('without'), 'fork', 'errno'], []);
    expect(told).toMatchObject(because(/\(clone: EPERM\)/));
  });

  itAsRootWith('pids')('because of pids.max', async () => {
    const cgroup = join(folderOfController('pids') ?? '', `exitwatch-trial-${process.pid}`);
    mkdirSync(cgroup);
    try {
      const join = `echo $$ > ${cgroup}/cgroup.procs; exec "$@"`;
      const told = await watchPoorly(['sh', '-c', join, 'sh'], [cgroup]);
      // A thread that is just ending leaves room for the trial's own, or not.
      expect(told).toMatchObject(because(/\((clone|pthread_create): EAGAIN\)/));
    } finally {
      rmdirSync(cgroup);
    }
  });
});

describe('the child of the self-test', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'exitwatch-trial-'));
  });

  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  itAsRootOfHost(
    'is shared by all monitors and Workers, and is hidden from them but not from other processes',
    async () => {
      await using monitor = new ExitMonitor({ scope: 'all', trace: 'off' });
      const log = new EventLog(monitor);
      await monitor.start();
      const host = new LineProcess(process.execPath, ['-e', HOST], {
        env: {
          ...process.env,
          REAPED: join(folder, 'reaped'),
          LD_PRELOAD: join(PROGRAMS, 'reap.so'),
        },
      });
      const [line = ''] = await host.rest();
      expect(host.stderr).toBe('');
      const { kernelSignalled, ...result } = JSON.parse(line) as { kernelSignalled: number[] };
      expect(result).toEqual({
        ...{ traced: Array(9).fill(true), told: [], childSignals: 0, threads: 0 },
      });
      await log.untilAllOf([host.pid]);
      const ends = [...log.exits.values()].flat().filter(({ name }) => name === NAME);
      const own = ends.filter(({ parentPid }) => parentPid === host.pid);
      // If a process is reaped before its message is made, the kernel names no parent. It may also be
      // that of another program, which tries its trace at the same time.
      const others = ends.filter(({ parentPid }) => parentPid === null);
      // The other child tests what /proc shows of a zombie.
      const most = 2;
      expect(own.length).toBeLessThanOrEqual(most);
      expect(own.length + others.length).toBeGreaterThanOrEqual(most);
      for (const end of own) expect(end).toMatchObject({ how: 'exited', exitCode: 0 });
      const signalled = own.filter(({ pid }) => kernelSignalled.includes(pid));
      expect(signalled).toEqual([]);
      expect(readFileSync(join(folder, 'reaped'), 'utf8')).toBe('');
    },
  );
});

/** Starts monitors in Workers all at once, beside monitors that exist already. */
const HOST = `
  const { Worker } = require('node:worker_threads');
  const { readdirSync, readFileSync } = require('node:fs');
  const { setTimeout: sleep } = require("node:timers/promises");
  const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
  const worker = \`
    const { parentPort } = require('node:worker_threads');
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor();
    monitor.start().then(({ traced }) => {
      parentPort.postMessage(traced);
      void monitor.close();
    });
  \`;
  (async () => {
    let childSignals = 0;
    process.on('SIGCHLD', () => childSignals++);
    const told = [];
    const kernelSignalled = [];
    const before = [
      new ExitMonitor({ scope: 'all', trace: 'off' }),
      new ExitMonitor({ scope: 'all', source: 'poll', pollIntervalMs: 10 }),
    ];
    // Another program may try its trace at the same time.
    const isChild = ({ parentPid }) => parentPid === process.pid;
    const noteSignal = (event) => {
      const { pid, name, sender } = event;
      if (name !== '${NAME}') return;
      // What the kernel sends has no sender that shows whose child this is: the test knows by its pid.
      if (sender.pid === null) kernelSignalled.push(pid);
      else if ([sender, ...sender.ancestors].some(({ pid }) => pid === process.pid)) told.push(event);
    };
    for (const monitor of before) {
      monitor.on('exit', (event) => isChild(event) && told.push(event));
      monitor.on('signal', noteSignal);
      await monitor.start();
    }
    const workers = Array.from({ length: 8 }, () => new Worker(worker, { eval: true }));
    const ended = workers.map((each) => new Promise((resolve) => each.once('exit', resolve)));
    const traced = await Promise.all(
      workers.map((each) => new Promise((resolve) => each.once('message', resolve))),
    );
    const last = new ExitMonitor({ scope: 'all' });
    last.on('signal', noteSignal);
    last.on('exit', (event) => isChild(event) && told.push(event));
    traced.push((await last.start()).traced);
    await sleep(100); // by now every event about the child has arrived
    for (const monitor of [...before, last]) await monitor.close();
    await Promise.all(ended);
    const threads = readdirSync('/proc/self/task').filter((thread) => {
      try {
        return readFileSync('/proc/self/task/' + thread + '/comm', 'utf8').startsWith('exitwatch');
      } catch {
        return false; // it is gone
      }
    }).length;
    console.log(JSON.stringify({ traced, told, kernelSignalled, childSignals, threads }));
    process.exit();
  })();
`;
