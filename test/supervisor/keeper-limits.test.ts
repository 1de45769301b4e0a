// Lane: patient

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { compileKeeper } from '../../src/cli/compile-keeper.js';
import { KeeperHost, processesWith } from '../support/keeper';
import { itAsRootIf } from '../support/privilege';
import { LineProcess, REPOSITORY } from '../support/programs';
import { until } from '../support/wait';

/** What a process has used of a CPU, in hundredths of a second. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

/** A client, and whether the keeper has said hello to it. */
function newClient(host: KeeperHost): { socket: Socket; isServed: () => boolean } {
  let isServed = false;
  const socket = connect(host.path('keeper', 'socket'));
  socket.on('error', () => undefined).on('data', () => (isServed = true));
  return { socket, isServed: () => isServed };
}

it('without descriptors it starts nothing, declares nothing gone, and does not spin', async () => {
  await using host = await KeeperHost.open();
  execFileSync('prlimit', [`--pid=${host.keeperPid}`, '--nofile=64:64']);
  const ids: string[] = [];
  const word = `limits-${process.pid}`;
  const start = () => {
    const id = `run-${ids.length}`;
    const args = ['-c', 'sleep 1000; :', word];
    return host.keeper.start({ id, command: 'sh', args, cgroup: null }).then(() => ids.push(id));
  };
  const failed = { code: 'ERR_EXITWATCH_START_FAILED', syscall: 'pipe', errno: 24 };
  await expect(
    (async () => {
      for (let i = 0; i < 64; i++) await start();
    })(),
  ).rejects.toMatchObject(failed);
  expect(ids.length).toBeGreaterThan(5);
  // A start takes more descriptors than a client.
  const clients = Array.from({ length: 12 }, () => newClient(host));
  await until('the clients to be connected', () =>
    clients.every(({ socket }) => !socket.connecting),
  );
  const before = cpuOf(host.keeperPid);
  await sleep(1000); // what is measured
  expect(cpuOf(host.keeperPid) - before).toBeLessThan(30);
  expect(clients.every(({ isServed }) => isServed())).toBe(false);
  // A shell's child has the arguments of the shell until it becomes another program.
  await until('one shell of each run, each with its child', async () => {
    const { length } = await host.keeper.members('run-0');
    return length === 2 && processesWith(word).length === ids.length;
  });
  for (const id of ids) expect(host.keeper.run(id)).toMatchObject({ state: 'running' });
  for (const id of ids.slice(0, 12)) await host.keeper.stop(id);
  await until('the clients to be served', () => clients.every(({ isServed }) => isServed()));
  for (const { socket } of clients) socket.destroy();
});

it('without room in epoll it serves as before', async () => {
  await using host = await KeeperHost.open();
  const binary = host.path('few-watches-keeper');
  const header = `${REPOSITORY}/test/programs/few-watches.h`;
  expect(compileKeeper(REPOSITORY, binary, { flags: ['-include', header] })).toBe(true);
  await host.keeper.start({ id: 'before', command: 'sleep', args: ['1000'] });
  await host.keeper.upgrade(binary);
  writeFileSync(host.path('keeper', 'few-watches'), '');
  const go = host.path('go');
  const script = `while [ ! -e ${go} ]; do sleep 0.05; done; exit 7`;
  await host.keeper.start({ id: 'shim', command: 'sh', args: ['-c', script], cgroup: null });
  await expect(host.keeper.start({ id: 'none', command: '/nosuch' })).rejects.toMatchObject({
    ...{ code: 'ERR_EXITWATCH_START_FAILED', errno: 2 },
  });
  const { keeperPid } = host;
  // Also without room for its own socket, and for its signals.
  await host.keeper.upgrade(binary);
  await host.reopen();
  writeFileSync(go, '');
  expect(await host.end('shim')).toMatchObject({ how: 'exited', exitCode: 7 });
  expect(await host.keeper.stop('before')).toMatchObject({ isGone: true });
  expect(await host.end('before')).toMatchObject({ signal: 'SIGTERM' });
  expect((await host.reopen()).pid).toBe(keeperPid);
}, 60_000);

const itWithFuse = itAsRootIf(existsSync('/dev/fuse'), 'needs FUSE');

/** Has a folder whose file system never answers. */
async function withDeadDisk(
  host: KeeperHost,
  work: (folder: string) => Promise<void>,
  name = 'dead',
) {
  const dead = host.path(name);
  mkdirSync(dead);
  const disk = new LineProcess('python3', [`${REPOSITORY}/test/programs/dead-disk.py`, dead]);
  expect(await disk.line()).toBe('mounted');
  try {
    await work(dead);
  } finally {
    disk.child.stdin.end('\n');
    expect(await disk.ended).toBe(0);
  }
}

itWithFuse(
  'a log on a disk that does not answer keeps its run waiting, and nobody else',
  async () => {
    await using host = await KeeperHost.open();
    await withDeadDisk(host, async (dead) => {
      const logs = { stdout: `${dead}/log`, maxBytes: 1 };
      host.keeper.start({ id: 'hung', command: 'true', logs }).catch(() => null);
      await until('the child to wait for the disk', async () => {
        return (await host.keeper.members('hung'))[0]?.state === 'D';
      });
      // One disk for each: who waits for another's look into a folder cannot be killed.
      const pipe = async (other: string) => {
        const piped = { id: 'piped', command: 'sh', args: ['-c', 'echo x; exit 3'] };
        await host.keeper.start({ ...piped, logs: { file: `${other}/log` } });
        expect(await host.end('piped')).toMatchObject({ exitCode: 3 });
      };
      await withDeadDisk(host, pipe, 'other-dead');
      await host.keeper.start({ id: 'other', command: 'sh', args: ['-c', 'exit 4'] });
      expect(await host.end('other')).toMatchObject({ exitCode: 4 });
      expect(await host.keeper.stop('hung')).toMatchObject({ isGone: true, wasKilled: false });
    });
  },
);

itWithFuse('it does not become a binary on a disk that does not answer, and goes on', async () => {
  await using host = await KeeperHost.open();
  const { keeperPid } = host;
  await withDeadDisk(host, async (dead) => {
    await expect(host.keeper.upgrade(`${dead}/keeper`)).rejects.toMatchObject({
      ...{ code: 'ERR_EXITWATCH_SYSTEM', errno: 110 },
    });
    await host.keeper.start({ id: 'other', command: 'sh', args: ['-c', 'exit 4'] });
    expect(await host.end('other')).toMatchObject({ exitCode: 4 });
  });
  expect((await host.reopen()).pid).toBe(keeperPid);
});
