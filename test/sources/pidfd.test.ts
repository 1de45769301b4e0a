// Lane: storm

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { ExitMonitor, identify, waitForExit, type ExitEvent, type ExitWatch } from '../../src';
import { isSameProcess } from '../../src/identity/process-identity';

import { callWith } from '../support/command';
import { Crowd } from '../support/crowd';
import { DyingProcesses, type DeathName } from '../support/deaths';
import { exitOf, exitsOf } from '../support/ends';
import { HAS_CONNECTOR, isLeftOpen, orLeftOpen } from '../support/kernel';
import { itAsRoot, itAsRootIf, itAsRootOfHost } from '../support/privilege';
import { LineProcess, program, REPOSITORY, run } from '../support/programs';
import { readerThreads } from '../support/readers';
import { roomForDescriptors, roomForProcesses } from '../support/room';
import { ROUNDS } from '../support/rounds';
import { arrives, until } from '../support/wait';
import { kill } from '../support/kill';

const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all'];
const POWERLESS = [...NOBODY, '--bounding-set=-all', '--no-new-privs'];

/** The event of each death. A pidfd reports a core dump only if there was one. */
const TOLD: [DeathName, object][] = [
  ['exit-7', { how: 'exited', exitCode: 7, coreDumped: false }],
  ['sigterm', { how: 'killed', signal: 'SIGTERM', coreDumped: false }],
  ['sigkill', { how: 'killed', signal: 'SIGKILL', coreDumped: false }],
  ['fault', { how: 'killed', signal: 'SIGSEGV' }],
  ['fault-core', { how: 'dumped', signal: 'SIGSEGV', coreDumped: true }],
];

describe.each(['auto', 'pidfd'])('by --source %s', (source) => {
  itAsRoot('a user without capabilities learns of the exits of root’s processes', async () => {
    for (const [name, told] of TOLD) {
      const dying = await DyingProcesses.spawn([name], 'now');
      const [pid = 0] = dying.pids;
      const waiting = callWith(POWERLESS, 'wait', String(pid), '--source', source, '--json');
      await isWatched(pid);
      await dying.die();
      const { lines } = await waiting;
      const event = JSON.parse(lines[0] ?? 'null') as ExitEvent;
      // It may have ended before the connector was heard.
      expect(event).toMatchObject({ pid, ...orLeftOpen(event, told) });
    }
  });
});

/** Resolves when a reader of another process holds a pidfd of it for longer than a look. */
async function isWatched(pid: number): Promise<void> {
  const others = () =>
    readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const watches = (other: string) => hasReader(other) && holdsPidfdOf(other, pid);
  await until(`a reader with a pidfd of process ${pid}`, () => others().some(watches));
}

function hasReader(holder: string): boolean {
  try {
    return readerThreads(Number(holder)) > 0;
  } catch {
    return false; // it has ended
  }
}

function holdsPidfdOf(holder: string, pid: number): boolean {
  try {
    return readdirSync(`/proc/${holder}/fdinfo`).some((fd) =>
      readFileSync(`/proc/${holder}/fdinfo/${fd}`, 'latin1').includes(`\nPid:\t${pid}\n`),
    );
  } catch {
    return false; // it has ended
  }
}

/** Watches children of a child that end in every way, and prints their events. */
const IN_A_NAMESPACE = `
  const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
  const { createInterface } = require('node:readline');
  const { spawn } = require('node:child_process');
  const [deaths, source, ...names] = process.argv.slice(1);
  const child = spawn(deaths, ['--hold', '--reap', 'now', ...names]);
  const monitor = new ExitMonitor({ source });
  const watches = [];
  createInterface(child.stdout).on('line', (line) => {
    const [word, pid] = line.split(' ');
    if (word !== 'spawned') return;
    watches.push(monitor.watch(Number(pid)));
    if (watches.length < names.length) return;
    monitor.start().then(async (ready) => {
      child.stdin.write('\\n');
      const ends = await Promise.all(watches.map((watch) => watch.exited));
      console.log(JSON.stringify({ ready, ends, namespace: watches[0].identity.pidNamespace }));
      await monitor.close();
    });
  });
`;

describe.each([
  [['unshare', '-n'], 'ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE'],
  [['unshare', '-pf', '--mount-proc'], 'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE'],
  // Before Linux 6.6 the privilege is missing, too.
  [['unshare', '-Urpf', '--mount-proc'], /ERR_EXITWATCH_(FOREIGN_|NOT_PERMITTED)/],
])('under %j', (command, code) => {
  for (const source of ['auto', 'pidfd'])
    itAsRoot(`reports processes of the namespace (by ${source})`, async () => {
      const names = TOLD.map(([name]) => name);
      const args = ['-e', IN_A_NAMESPACE, program('deaths'), source, ...names];
      const { stdout } = await run(command[0] ?? '', [
        ...command.slice(1),
        process.execPath,
        ...args,
      ]);
      const { ready, ends, namespace } = JSON.parse(stdout) as {
        ready: { source: string; downgrade: { code: string } | null };
        ends: ExitEvent[];
        namespace: number | null;
      };
      expect(ready.source).toBe('pidfd');
      const foreign = HAS_CONNECTOR ? code : 'ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE';
      if (source === 'auto') expect(ready.downgrade?.code).toMatch(foreign);
      expect(ends).toMatchObject(
        TOLD.map(([, told], i) => ({
          ...(ends[i] === undefined ? told : orLeftOpen(ends[i], told)),
          ...{ source: 'pidfd', lossless: true },
        })),
      );
      expect(namespace === null).toBe(command[1] === '-n');
    });
});

/**
 * These may be missing outside CI. In the container a dynamically linked busybox would lack its
 * libraries.
 */
const isStatic = spawnSync('ldd', ['/bin/busybox']).status !== 0;
const hasRunc = existsSync('/usr/sbin/runc') && existsSync('/bin/busybox') && isStatic;
const withRunc = itAsRootIf(hasRunc, 'needs runc and a static busybox');

for (const source of ['auto', 'pidfd'] as const) {
  withRunc(`the first process of a container is reported on the host (by ${source})`, async () => {
    const bundle = mkdtempSync(join(tmpdir(), 'exitwatch-bundle-'));
    const name = `exitwatch-${process.pid}-${source}`;
    try {
      mkdirSync(join(bundle, 'rootfs', 'bin'), { recursive: true });
      await copyFile('/bin/busybox', join(bundle, 'rootfs', 'bin', 'sh'));
      await run('runc', ['spec'], { cwd: bundle });
      const file = join(bundle, 'config.json');
      const config = JSON.parse(readFileSync(file, 'utf8')) as {
        process: { terminal: boolean; args: string[] };
      };
      config.process.terminal = false;
      config.process.args = ['sh', '-c', 'echo up; read line; exit 7'];
      writeFileSync(file, JSON.stringify(config));
      const container = new LineProcess('runc', ['run', '--bundle', bundle, name]);
      expect(await container.line()).toBe('up');
      const { pid } = JSON.parse((await run('runc', ['state', name])).stdout) as { pid: number };
      const end = waitForExit(pid, { source });
      container.child.stdin.write('\n');
      expect(await arrives(`the exit of process ${pid}`, end)).toMatchObject({
        ...{ pid, how: 'exited', exitCode: 7 },
      });
      expect(await container.ended).toBe(7);
    } finally {
      rmSync(bundle, { recursive: true });
    }
  });
}

describe('many watches', () => {
  /** Memory that the garbage collector may not have freed yet. */
  const OF_THE_HEAP = 4 * 1024 * 1024;

  /** The resident memory of this process, in bytes. */
  const residentBytes = () =>
    1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);

  itAsRoot(
    'take a descriptor each, little memory, and at most two wake-ups at the end',
    async () => {
      const COUNT = roomForDescriptors(roomForProcesses(2000 * ROUNDS));
      await using crowd = await Crowd.of(COUNT);
      const { pids } = crowd;
      await using monitor = new ExitMonitor({ source: 'pidfd' });
      await monitor.start();
      const descriptors = readdirSync('/proc/self/fd').length;
      const bytes = residentBytes();
      const watches = pids.map((pid) => monitor.watch(pid));
      expect(residentBytes() - bytes).toBeLessThan(6 * 1024 * COUNT + OF_THE_HEAP);
      expect(readdirSync('/proc/self/fd').length - descriptors).toBe(COUNT);
      expect(monitor.stats()).toMatchObject({ withoutPidfd: 0, watches: COUNT, source: 'pidfd' });

      const { wakeups } = monitor.stats();
      crowd.end();
      const ends = await exitsOf(watches);
      const isWrong = (event: ExitEvent, i: number) =>
        !event.lossless || !(event.exitCode === i % 128 || isLeftOpen(event));
      expect(ends.filter(isWrong)).toEqual([]);
      expect(monitor.stats().wakeups - wakeups).toBeLessThanOrEqual(2 * COUNT);
      expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(descriptors);
    },
  );

  itAsRoot('sleep while there are many zombies', async () => {
    const COUNT = roomForProcesses(1000);
    // Runs as a user who may not read the status of a zombie. The parent does not wait for its
    // children.
    const script = `
      const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
      const monitor = new ExitMonitor({ source: 'pidfd', statusTimeoutMs: 15_000 });
      let ends = 0;
      monitor.on('exit', (event) => {
        if (event.unknownReason === 'not-reaped' && ++ends === ${COUNT}) console.log('told');
      });
      for (const pid of process.argv.slice(1)) monitor.watch(Number(pid));
      monitor.start().then(() => console.log('started'));
    `;
    await using crowd = await Crowd.of(COUNT);
    const pids = crowd.pids.map(String);
    const [first = '', ...rest] = POWERLESS;
    const reader = new LineProcess(first, [...rest, process.execPath, '-e', script, ...pids]);
    expect(await reader.line()).toBe('started');
    await crowd.parent.stop();
    for (const pid of pids) kill(Number(pid), 'SIGKILL');
    await until('it to have seen them all', async () => {
      const before = cpuTicks(reader.pid);
      await setTimeout(200);
      return cpuTicks(reader.pid) === before;
    });
    const ticks = cpuTicks(reader.pid);
    await setTimeout(500);
    expect(cpuTicks(reader.pid) - ticks).toBeLessThanOrEqual(2);
    expect(await reader.line()).toBe('told');
    reader.child.kill();
    await reader.ended;
  });

  /** The CPU time of all threads, in hundredths of a second. */
  function cpuTicks(pid: number): number {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  }

  test('raise the soft limit of descriptors as far as permitted', async () => {
    const script = `
      const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
      const monitor = new ExitMonitor({ source: 'pidfd' });
      monitor.start().then(() => console.log('started'));
      process.stdin.once('data', () => {
        for (const pid of process.argv.slice(1)) monitor.watch(Number(pid));
        console.log(monitor.stats().watches);
        void monitor.close();
        process.exit();
      });
    `;
    const COUNT = roomForProcesses(300);
    await using crowd = await Crowd.of(COUNT);
    const reader = new LineProcess(process.execPath, ['-e', script, ...crowd.pids.map(String)]);
    expect(await reader.line()).toBe('started');
    // Node.js raises this limit at its start, and has some thirty descriptors of its own.
    await run('prlimit', ['--pid', String(reader.pid), `--nofile=${Math.max(50, COUNT)}:`]);
    reader.child.stdin.write('watch\n');
    expect(await reader.line()).toBe(String(COUNT));
  });

  itAsRootOfHost(
    'beyond the limit of descriptors use the connector alone, or are refused',
    async () => {
      const script = `
      const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
      const { spawn } = require('node:child_process');
      const [source, ...pids] = process.argv.slice(1);
      const monitor = new ExitMonitor({ source });
      monitor.start().then(async () => {
        let refused;
        const watches = [];
        for (const pid of pids) {
          try { watches.push(monitor.watch(Number(pid))); } catch (error) { refused ??= error; }
        }
        const { withoutPidfd } = monitor.stats();
        const hasPidfd = watches.filter((watch) => watch.hasPidfd).length;
        console.log(JSON.stringify({ withoutPidfd, hasPidfd, code: refused?.code, message: refused?.message }));
        const ends = await Promise.all(watches.map((watch) => watch.exited));
        console.log(JSON.stringify(ends));
        monitor.close();
      });
    `;
      // What a monitor leaves to the program, and what Node.js has opened at most.
      const [LEFT, OWN] = [128, 50];
      const COUNT = roomForProcesses(300);
      const limit = LEFT + OWN + Math.floor(COUNT / 2);
      for (const source of ['auto', 'pidfd']) {
        await using crowd = await Crowd.of(COUNT);
        const args = [`--nofile=${limit}`, process.execPath, '-e', script, source];
        const reader = new LineProcess('prlimit', [...args, ...crowd.pids.map(String)]);
        const told = JSON.parse((await reader.line()) ?? 'null') as Record<string, number | string>;
        const hasPidfd = Number(told['hasPidfd']);
        expect(hasPidfd).toBeGreaterThanOrEqual(limit - LEFT - OWN);
        expect(hasPidfd).toBeLessThan(limit - LEFT);
        if (source === 'auto') {
          expect(told).toEqual({ hasPidfd, withoutPidfd: COUNT - hasPidfd });
        } else {
          expect(told).toMatchObject({ withoutPidfd: 0, code: 'ERR_EXITWATCH_DESCRIPTOR_LIMIT' });
          expect(told['message']).toMatch(`RLIMIT_NOFILE is ${limit}`);
        }
        crowd.end();
        const ends = JSON.parse((await reader.line()) ?? 'null') as ExitEvent[];
        expect(ends).toHaveLength(source === 'auto' ? COUNT : hasPidfd);
        const isWrong = (event: ExitEvent, i: number) =>
          !(event.exitCode === i % 128 || (source === 'pidfd' && isLeftOpen(event)));
        expect(ends.filter(isWrong)).toEqual([]);
        await reader.ended;
      }
    },
  );
});

test('an end whose parent does not wait is reported when it is reaped, or after a timeout', async () => {
  const parent = new LineProcess('sh', ['-c', 'sleep 1000 & echo $!; exec sleep 1001']);
  const pid = Number(await parent.line());
  await using monitor = new ExitMonitor({ source: 'pidfd', statusTimeoutMs: 50 });
  await monitor.start();
  const watch: ExitWatch = monitor.watch(pid);
  kill(pid, 'SIGKILL');
  // Root, and a process of the same user, can read the status of the zombie.
  expect(await exitOf(watch)).toMatchObject({ how: 'killed', signal: 'SIGKILL', source: 'pidfd' });
  parent.child.kill();
});

test('a watch holds its process by a pidfd until it is closed', async () => {
  const child = new LineProcess('sleep', ['1000']);
  await using monitor = new ExitMonitor({ source: 'pidfd' });
  await monitor.start();
  const watch = monitor.watch(child.pid);
  expect(watch.hasPidfd).toBe(true);
  expect(holdsPidfdOf('self', child.pid)).toBe(true);
  watch.close();
  expect(holdsPidfdOf('self', child.pid)).toBe(false);
  child.child.kill();
});

test('an identity from another pid namespace is refused', () => {
  const identity = identify(process.ppid);
  if (identity === null) throw new Error('it has no identity');
  const namespace = (identity.pidNamespace ?? 4026531836) + 1;
  const [boot = '', pid = '', inode = ''] = identity.id.split('-');
  const foreign = {
    ...identity,
    pidNamespace: namespace,
    id: `${boot.slice(0, 12)}n${namespace}-${pid}-${inode}`,
  };
  const monitor = new ExitMonitor();
  expect(() => monitor.watch(foreign)).toThrow('belongs to another pid namespace');
  // Before Linux 6.9 everything else may be equal.
  const [ours, other] = [identity, foreign].map((each) => ({ ...each, inode: null }));
  if (ours === undefined || other === undefined) throw new Error('they are two');
  expect(isSameProcess(ours, ours)).toBe(true);
  expect(isSameProcess(ours, other)).toBe(false);
  void monitor.close();
});
