// Lane: patient

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';

import { compileKeeper } from '../../src/cli/compile-keeper.js';
import type { KeeperRun } from '../../src/supervisor/index.js';
import { cgroupName, itWithCgroup, CGROUP2 } from '../support/cgroup2';
import { childrenOf, KeeperHost } from '../support/keeper';
import { KERNEL } from '../support/kernel';
import { itAsRoot } from '../support/privilege';
import { LineProcess, program, REPOSITORY } from '../support/programs';
import { roomForProcesses } from '../support/room';
import { until } from '../support/wait';
import { kill } from '../support/kill';

describe.each([
  // The parent of these is a process of the keeper, which survives it.
  ['without cgroups', it, { cgroup: null }, true],
  // The kernel keeps the status of a reaped process in its pidfd since Linux 6.15.
  [
    'in cgroups',
    itWithCgroup,
    { cgroup: `${CGROUP2 ?? ''}/exitwatch-test-${process.pid}` },
    KERNEL.pidfdStatus,
  ],
] as const)(
  'SV-14: the keeper is killed while runs %s live and others end',
  (_, itHere, more, isKnown) => {
    itHere('the ends are true or unknown, and the others go on', async () => {
      await using host = await KeeperHost.open();
      const go = host.path('go');
      // At most 50 and 20, each with a process of the keeper; and those that end sleep in another.
      const room = roomForProcesses(160) / 160;
      const live = Array.from({ length: Math.ceil(50 * room) }, (__, i) => `lives${i}`);
      const end = Array.from({ length: Math.ceil(20 * room) }, (__, i) => `ends${i}`);
      for (const id of live) {
        await host.keeper.start({ id, command: 'sleep', args: ['1000'], ...more });
      }
      for (const [i, id] of end.entries()) {
        const script = `while [ ! -e ${go} ]; do sleep 0.05; done; exit ${100 + i}`;
        await host.keeper.start({ id, command: 'sh', args: ['-c', script], ...more });
      }
      const pids = new Map(host.keeper.runs().map(({ id, pid }) => [id, pid]));
      await host.keeper.close();
      kill(host.keeperPid, 'SIGKILL');
      writeFileSync(go, '');
      const ready = await host.reopen();
      expect(ready.lost.length).toBeGreaterThanOrEqual(live.length);
      for (const [i, id] of end.entries()) {
        const { how, exitCode, uncertaintyMs } = await host.end(id);
        // Only the kernel's own stamp is certain.
        expect(uncertaintyMs).toBeGreaterThan(0);
        const isTrue = how === 'exited' && exitCode === 100 + i;
        expect({ id, isHonest: isTrue || how === 'unknown' }).toEqual({ id, isHonest: true });
      }
      const known = end.filter((id) => host.ended.get(id)?.[0]?.how === 'exited');
      if (isKnown && more.cgroup === null) expect(known).toHaveLength(end.length);
      for (const id of live) {
        expect(host.keeper.run(id)).toMatchObject({
          state: 'running',
          isLost: true,
          pid: pids.get(id),
        });
      }
      kill(pids.get('lives0') ?? 0, 'SIGKILL');
      const first = await host.end('lives0');
      expect(isKnown ? [first.signal] : ['SIGKILL', null]).toContain(first.signal);
      const stopped = await Promise.all(live.slice(1).map((id) => host.keeper.stop(id)));
      expect(stopped.every(({ isGone }) => isGone)).toBe(true);
      for (const id of live) await host.end(id);
    });
  },
);

describe.each([
  ['a process of the keeper, as it reaps a run without a cgroup,', it, false, 'exitwatch-shim'],
  ['the keeper, as it reaps a run in a cgroup,', itWithCgroup, true, 'exitwatch-keepr'],
])('%s is killed', (_, itHere, hasCgroup, name) => {
  itHere('the end is known', async () => {
    await using host = await KeeperHost.open();
    const binary = host.path('dying-keeper');
    const header = `${REPOSITORY}/test/programs/dies-reaping.h`;
    expect(compileKeeper(REPOSITORY, binary, { flags: ['-include', header] })).toBe(true);
    await host.keeper.upgrade(binary);
    const go = host.path('go');
    const script = `while [ ! -e ${go} ]; do sleep 0.05; done; exit 7`;
    const cgroup = hasCgroup ? cgroupName() : null;
    await host.keeper.start({ id: 'ends', command: 'sh', args: ['-c', script], cgroup });
    const { keeperPid } = host;
    const [dying = keeperPid] = hasCgroup ? [] : childrenOf(keeperPid);
    expect(readFileSync(`/proc/${dying}/comm`, 'utf8')).toBe(`${name}\n`);
    const dies = host.path('keeper', `dies.${name}`);
    writeFileSync(dies, '');
    writeFileSync(go, '');
    await until(`${name} to be killed`, () => !existsSync(`/proc/${dying}/exe`));
    unlinkSync(dies);
    if (hasCgroup) await host.reopen();
    expect(await host.end('ends')).toMatchObject({ how: 'exited', exitCode: 7 });
  });
});

it('SV-03: a run of an earlier boot is over, its end unknown, and its pid is nobody’s', async () => {
  await using host = await KeeperHost.open();
  const stranger = spawn(program('mortal'), ['--stranger']);
  await host.keeper.start({ id: 'old', command: 'sleep', args: ['1000'], cgroup: null });
  const pid = host.keeper.run('old')?.pid ?? 0;
  await host.keeper.close();
  kill(host.keeperPid, 'SIGKILL');
  kill(pid, 'SIGKILL');
  // The same state, as if it were of another boot, with the pid of a stranger.
  const path = host.path('keeper', 'runs');
  const text = readFileSync(path, 'utf8')
    .replace(/^K .*/m, 'K 00000000-0000-0000-0000-000000000000')
    .replaceAll(` ${pid} `, ` ${stranger.pid} `);
  writeFileSync(path, text);
  await host.reopen();
  expect(host.keeper.run('old')).toMatchObject({
    state: 'ended',
    waitStatus: null,
    hasMembers: false,
  });
  await host.untilEmpty('old');
  expect(host.ended.has('old')).toBe(false);
  expect(await host.keeper.stop('old')).toMatchObject({ isGone: true, wasKilled: false });
  stranger.stdin.end();
  expect(await once(stranger, 'close')).toEqual([0, null]);
});

it('runs that are over are told by the next keeper, too, each as its own', async () => {
  await using host = await KeeperHost.open();
  // Two ids whose hashes are the same (FNV-1a), and some between them.
  const codes = new Map([
    ['costarring', 3],
    ['between-1', 4],
    ['liquid', 5],
    ['between-2', 6],
  ]);
  for (const [id, code] of codes) {
    await host.keeper.start({ id, command: 'sh', args: ['-c', `exit ${code}`] });
    await host.end(id);
    await host.untilEmpty(id);
  }
  const before = host.keeper.runs();
  const isSame = () => {
    const facts = (run: KeeperRun) => ({ ...run, identity: run.identity?.startTicks });
    expect(host.keeper.runs().map(facts)).toEqual(before.map(facts));
    for (const [id, code] of codes) expect(host.keeper.run(id)?.waitStatus).toBe(code << 8);
  };
  const killAndReopen = async (change = (text: string) => text) => {
    await host.keeper.close();
    kill(host.keeperPid, 'SIGKILL');
    await until('the keeper to be gone', () => !existsSync(`/proc/${host.keeperPid}/exe`));
    const path = host.path('keeper', 'runs');
    writeFileSync(path, change(readFileSync(path, 'utf8')));
    await host.reopen();
  };
  await host.reopen();
  isSame();
  await killAndReopen();
  isSame();
  await host.keeper.upgrade();
  await host.reopen();
  isSame();
  // An id starts once, and what is over can be asked for, but not signalled.
  expect(await host.keeper.start({ id: 'liquid', command: 'true' })).toMatchObject({
    waitStatus: 5 << 8,
  });
  expect(await host.keeper.members('liquid')).toEqual([]);
  expect(await host.keeper.signal('liquid', 'SIGTERM', true)).toBe(false);
  expect(await host.keeper.stop('liquid')).toMatchObject({ isGone: true });
  await host.keeper.forget('costarring');
  codes.delete('costarring');
  before.shift();
  await host.reopen();
  isSame();
  await killAndReopen((text) => text.replace(/^K .*/m, 'K 00000000-0000-0000-0000-000000000000'));
  expect(host.keeper.runs()).toMatchObject([
    { id: 'between-1', waitStatus: 4 << 8, identity: null },
    { id: 'liquid', waitStatus: 5 << 8, identity: null },
    { id: 'between-2', waitStatus: 6 << 8, identity: null },
  ]);
}, 60_000);

it('a state that was torn or filled with garbage does not keep it from starting', async () => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'kept', command: 'sh', args: ['-c', 'exit 4'], cgroup: null });
  await host.end('kept');
  await until('nothing to be left', () => host.keeper.run('kept')?.hasMembers === false);
  await host.keeper.close();
  kill(host.keeperPid, 'SIGKILL');
  const path = host.path('keeper', 'runs');
  const text = readFileSync(path, 'latin1');
  const garbage = `B\nS x\nE kept\nZ zz\nB ../evil 1 2\nS nosuch 1 1 1 1 1 1 1\t\t\t\n\x00\xff\n${'a'.repeat(20_000)}\n`;
  writeFileSync(path, `${text}${garbage}E kept 9 1 1`, 'latin1');
  host.ended.clear();
  await host.reopen();
  expect(await host.end('kept')).toMatchObject({ how: 'exited', exitCode: 4, isRepeated: true });
});

itAsRoot(
  'as PID 1 it reaps strangers, passes signals on, and ends as its command does',
  async () => {
    await using host = await KeeperHost.open();
    const folder = host.path('init');
    const binary = require.resolve('../../build/Release/exitwatch-keeper');
    const script = `trap 'echo caught; exit 9' USR1
    for i in 1 2 3 4 5; do (setsid sh -c 'exit 0' &); done
    while ls /proc/*/stat | xargs cat 2>/dev/null | grep -q ' Z '; do sleep 0.05; done
    echo "clean $$"; while :; do sleep 0.05; done`;
    const namespace = ['--pid', '--fork', '--mount-proc', '--kill-child'];
    const init = new LineProcess('sh', [
      ...['-c', 'mkdir -m 700 "$1" && shift && exec "$@"', 'sh', folder, 'unshare', ...namespace],
      ...[binary, 'init', folder, 'sh', '-c', script],
    ]);
    expect(await init.line()).toMatch(/^clean \d+$/);
    const [pid1 = ''] = readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, 'latin1').split(
      ' ',
    );
    kill(Number(pid1), 'SIGUSR1');
    expect(await init.line()).toBe('caught');
    expect(await init.ended).toBe(9);
  },
);

itAsRoot(
  'as PID 1 it gives its command our umask, and no signal is blocked or ignored',
  async () => {
    await using host = await KeeperHost.open();
    const folder = host.path('init');
    const binary = require.resolve('../../build/Release/exitwatch-keeper');
    const script = `umask; grep -E '^Sig(Blk|Ign)' /proc/self/status; trap 'exit 3' TERM
    echo ready; while :; do sleep 0.05; done`;
    const namespace = ['--pid', '--fork', '--mount-proc', '--kill-child'];
    const init = new LineProcess('sh', [
      ...['-c', 'mkdir -m 700 "$1" && shift && umask 027 && exec "$@"', 'sh', folder, 'unshare'],
      ...[...namespace, binary, 'init', folder, 'sh', '-c', script],
    ]);
    expect(await init.line()).toBe('0027');
    // Of `grep`, which is a child of the shell: real-time signals are of the C library.
    expect(await init.line()).toMatch(/^SigBlk:\s+0+$/);
    expect(await init.line()).toMatch(/^SigIgn:\s+0+$/);
    expect(await init.line()).toBe('ready');
    const [pid1 = ''] = readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, 'latin1').split(
      ' ',
    );
    kill(Number(pid1), 'SIGTERM'); // which PID 1 would ignore without a handler
    expect(await init.ended).toBe(3);
  },
);

describe('a keeper that was told to end', () => {
  it('ends when its last run has, and nobody is connected', async () => {
    await using host = await KeeperHost.open();
    await host.keeper.start({ id: 'last', command: 'sleep', args: ['1000'] });
    const { keeperPid } = host;
    const { pid } = host.keeper.run('last') ?? {};
    kill(keeperPid, 'SIGTERM');
    await host.keeper.ping();
    await host.keeper.close();
    expect(existsSync(`/proc/${keeperPid}/exe`)).toBe(true);
    kill(pid ?? 0, 'SIGKILL');
    await until('the keeper to end', () => !existsSync(`/proc/${keeperPid}/exe`));
    await host.reopen();
    await host.end('last');
  });

  it('starts what it is asked for, and then stays', async () => {
    await using host = await KeeperHost.open();
    await host.keeper.start({ id: 'first', command: 'sleep', args: ['1000'] });
    const { keeperPid } = host;
    kill(keeperPid, 'SIGTERM');
    await host.keeper.ping();
    await host.keeper.stop('first');
    await host.keeper.start({ id: 'second', command: 'true' });
    await host.end('second');
    await host.reopen();
    expect(host).toMatchObject({ keeperPid, restarts: 0 });
  });

  it('forgets that in an upgrade', async () => {
    await using host = await KeeperHost.open();
    await host.keeper.start({ id: 'only', command: 'sleep', args: ['1000'] });
    kill(host.keeperPid, 'SIGTERM');
    await host.keeper.ping();
    await host.keeper.upgrade();
    const { keeperPid } = host;
    await host.keeper.stop('only');
    await host.reopen();
    expect(host.keeperPid).toBe(keeperPid);
  });
});
