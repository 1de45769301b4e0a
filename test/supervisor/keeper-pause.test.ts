// Lane: patient

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';

import { encodeMessage } from '../../src/supervisor/keeper/message.js';
import { CGROUP2, itWithCgroup } from '../support/cgroup2';
import { childrenOf, KeeperHost, processesWith, rawClient } from '../support/keeper';
import { kill } from '../support/kill';
import { until } from '../support/wait';

const IN_CGROUP = { cgroup: `${CGROUP2 ?? ''}/exitwatch-test-${process.pid}` };

/** A run that writes a line again and again. */
async function startCounting(host: KeeperHost, mode: object): Promise<string> {
  const count = host.path('count');
  // Without a child: the parent of a vfork(2) that was paused in between would look as if it ran.
  const script = `import time
while True:
  open(${JSON.stringify(count)}, "a").write("\\n")
  time.sleep(0.01)`;
  await host.keeper.start({ id: 'counts', command: 'python3', args: ['-c', script], ...mode });
  await until('it to count', () => existsSync(count));
  return count;
}

const goesOn = (path: string) => {
  const { size } = statSync(path);
  return until('it to go on', () => statSync(path).size > size + 5);
};

/** Frozen by a client that keeps its connection: as rotateLog() does. */
async function hold(host: KeeperHost) {
  const client = await rawClient(host);
  const pause = [
    ...([
      ['seq', '1'],
      ['op', 'pause'],
      ['run', 'counts'],
    ] as const),
    ['whileConnected', '1'],
  ] as const;
  client.write(encodeMessage(pause));
  await until('the run to be held', () => isStopped(host));
  return client;
}

async function isStopped(host: KeeperHost): Promise<boolean> {
  const members = await host.keeper.members('counts');
  const cgroup = host.keeper.run('counts')?.cgroup ?? null;
  if (cgroup !== null)
    return readFileSync(`${cgroup}/cgroup.events`, 'latin1').includes('frozen 1');
  return members.length > 0 && members.every(({ state }) => state === 'T');
}

describe.each([
  ['without a cgroup', it, { cgroup: null }],
  ['in a cgroup', itWithCgroup, IN_CGROUP],
] as const)('a run %s', (_, itHere, mode) => {
  itHere('that was held by a client goes on, though that and the keeper were killed', async () => {
    await using host = await KeeperHost.open();
    const count = await startCounting(host, mode);
    const client = await hold(host);
    const { restarts, keeperPid } = host;
    kill(keeperPid, 'SIGKILL');
    client.destroy();
    await until('another keeper', () => host.restarts > restarts);
    await goesOn(count);
  });

  itHere(
    'that somebody has paused stays paused, whoever is killed or rotates its log',
    async () => {
      await using host = await KeeperHost.open();
      const count = await startCounting(host, mode);
      await host.keeper.pause('counts');
      await until('the run to be paused', () => isStopped(host));
      (await hold(host)).destroy();
      await host.keeper.rotateLog('counts', count);
      const { restarts, keeperPid } = host;
      kill(keeperPid, 'SIGKILL');
      await until('another keeper', () => host.restarts > restarts);
      await host.keeper.upgrade();
      await host.keeper.rotateLog('counts', count);
      expect(await isStopped(host)).toBe(true);
      await host.keeper.resume('counts');
      writeFileSync(count, '');
      await goesOn(count);
    },
  );
});

it('the log of a shell that forks all the time is rotated', async () => {
  await using host = await KeeperHost.open();
  const log = host.path('log');
  const args = ['-c', 'while :; do echo x; /bin/true; done'];
  const options = { id: 'forks', command: 'sh', args, cgroup: null, logs: { stdout: log } };
  await host.keeper.start(options);
  for (let i = 0; i < 100; i++) {
    await until('the log to grow', () => statSync(log).size > 0);
    await host.keeper.rotateLog('forks', log, 1);
  }
});

it('a keeper is not upgraded while a run is held', async () => {
  await using host = await KeeperHost.open();
  await startCounting(host, { cgroup: null });
  const client = await hold(host);
  await expect(host.keeper.upgrade()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_BUSY' });
  client.destroy();
  await until('the run to go on', async () => !(await isStopped(host)));
  await host.keeper.upgrade();
});

it('the keeper is killed while it rotates logs: no line is lost', async () => {
  await using host = await KeeperHost.open();
  const log = host.path('log');
  const script = `i=0; while [ ! -e ${host.path('go')} ]; do echo $i; i=$((i + 1)); done`;
  await host.keeper.start({
    id: 'counts',
    command: 'sh',
    args: ['-c', script],
    logs: { stdout: log },
  });
  let failures = 0;
  for (let i = 0; i < 10; i++) {
    await until('the log to grow', () => statSync(log).size > 0);
    const rotated = host.keeper.rotateLog('counts', log, 100).catch(() => failures++);
    kill(host.keeperPid, 'SIGKILL');
    await rotated;
    const { restarts } = host;
    await until('the keeper to be there', () => host.restarts > restarts || host.keeperPid > 0);
  }
  writeFileSync(host.path('go'), '');
  await host.end('counts');
  const files = [log, ...Array.from({ length: 100 }, (_, i) => `${log}.${i + 1}`)].reverse();
  const lines = files
    .filter((path) => existsSync(path))
    .flatMap((path) => {
      return readFileSync(path, 'latin1')
        .trimEnd()
        .split('\n')
        .filter((line) => line !== '');
    });
  expect(lines.map(Number)).toEqual(lines.map((_, i) => i));
  expect(failures).toBeLessThan(10);
});

it('an upgrade knows that the shim of a run was killed', async () => {
  await using host = await KeeperHost.open();
  const word = `stray-${process.pid}-${Math.random()}`;
  const script = `(setsid sh -c 'sleep 1000; :' ${word} &); exec sleep 1001`;
  await host.keeper.start({ id: 'alone', command: 'sh', args: ['-c', script], cgroup: null });
  await until('the descendant to run', () => processesWith(word).length === 1);
  const [shim] = childrenOf(host.keeperPid, 'exitwatch-shim');
  kill(shim, 'SIGKILL');
  const main = host.keeper.run('alone')?.pid ?? 0;
  await until('the keeper to be its parent', () => childrenOf(host.keeperPid).includes(main));
  await host.keeper.upgrade();
  await host.keeper.signal('alone', 'SIGUSR1');
  expect(await host.end('alone')).toMatchObject({ how: 'killed', signal: 'SIGUSR1' });
  expect(host.keeper.run('alone')?.hasMembers).toBe(true);
  expect(await host.keeper.stop('alone')).toMatchObject({ isGone: true });
  expect(processesWith(word)).toEqual([]);
});
