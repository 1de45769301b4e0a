// Lane: alone

// `npm test` runs this file after all others: it makes the kernel reuse a pid at once.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

import { CGROUP2, itWithCgroup } from '../support/cgroup2';
import { childrenOf, KeeperHost, processesWith } from '../support/keeper';
import { kill } from '../support/kill';
import { itAsRootOfHost } from '../support/privilege';
import { program } from '../support/programs';
import { reusedPid } from '../support/reused-pid';
import { until } from '../support/wait';

const IN_CGROUP = { cgroup: `${CGROUP2 ?? ''}/exitwatch-test-${process.pid}` };

/** Starts a run with a descendant that has a session of its own, and kills its shim. */
async function loseShim(host: KeeperHost, id: string, word: string): Promise<number> {
  const before = childrenOf(host.keeperPid, 'exitwatch-shim');
  const script = `(setsid sh -c 'sleep 1000; :' ${word} &); exec sleep 1001`;
  await host.keeper.start({ id, command: 'sh', args: ['-c', script], cgroup: null });
  await until('the descendant to run', () => processesWith(word).length === 1);
  const shims = childrenOf(host.keeperPid, 'exitwatch-shim');
  const shim = shims.find((pid) => !before.includes(pid)) ?? 0;
  kill(shim, 'SIGKILL');
  const main = host.keeper.run(id)?.pid ?? 0;
  await until('the keeper to be its parent', () => childrenOf(host.keeperPid).includes(main));
  return shim;
}

/** Another run may have the id then. */
async function remove(host: KeeperHost, id: string): Promise<void> {
  await host.keeper.stop(id);
  await host.end(id);
  await host.keeper.forget(id);
  host.ended.delete(id);
}

it('a run whose shim was killed has its status, and is stopped with all that it has started', async () => {
  await using host = await KeeperHost.open();
  const word = `stray-${process.pid}-${Math.random()}`;
  await host.keeper.start({ id: 'other', command: 'sleep', args: ['1000'], cgroup: null });
  await loseShim(host, 'alone', word);
  expect(await host.keeper.stop('alone')).toMatchObject({ isGone: true, wasKilled: false });
  expect(processesWith(word)).toEqual([]);
  expect(await host.end('alone')).toMatchObject({ how: 'killed', signal: 'SIGTERM' });
  await host.keeper.forget('alone');
  expect(host.keeper.run('other')?.state).toBe('running');
});

it('a run whose shim was killed goes on after its first thread has left', async () => {
  await using host = await KeeperHost.open();
  const [lines, log] = [host.path('lines'), host.path('log')];
  execFileSync('mkfifo', [lines]);
  const args = ['-c', `exec ${program('first-left')} <> ${lines}`];
  await host.keeper.start({ id: 'web', command: 'sh', args, logs: { stdout: log }, cgroup: null });
  await until('the other thread', () => readFileSync(log, 'utf8') === 'left\n');
  const [shim = 0] = childrenOf(host.keeperPid, 'exitwatch-shim');
  const main = host.keeper.run('web')?.pid ?? 0;
  kill(shim, 'SIGKILL');
  await until('the keeper to be its parent', () => childrenOf(host.keeperPid).includes(main));
  await host.keeper.members('web');
  await host.keeper.members('web');
  expect([host.keeper.run('web')?.state, host.ended.size]).toEqual(['running', 0]);
  writeFileSync(lines, 'go\n');
  expect(await host.end('web')).toMatchObject({ how: 'exited', exitCode: 7 });
});

it('what a run has left behind is known, though its shim was killed', async () => {
  await using host = await KeeperHost.open();
  const word = `stray-${process.pid}-${Math.random()}`;
  await loseShim(host, 'alone', word);
  await host.keeper.signal('alone', 'SIGUSR1');
  expect(await host.end('alone')).toMatchObject({ how: 'killed', signal: 'SIGUSR1' });
  expect(host.keeper.run('alone')?.hasMembers).toBe(true);
  expect(await host.keeper.stop('alone')).toMatchObject({ isGone: true });
  expect(processesWith(word)).toEqual([]);
});

itWithCgroup('what a run in a cgroup has left behind is not stopped with such a run', async () => {
  await using host = await KeeperHost.open();
  const word = `stray-${process.pid}-${Math.random()}`;
  const script = `(setsid sh -c 'sleep 1000; :' ${word}-other &)`;
  await host.keeper.start({ id: 'other', command: 'sh', args: ['-c', script], ...IN_CGROUP });
  await host.end('other');
  await until('what it left behind to run', () => processesWith(`${word}-other`).length === 1);
  await loseShim(host, 'alone', `${word}-own`);
  await host.keeper.stop('alone');
  expect(processesWith(`${word}-own`)).toEqual([]);
  expect(processesWith(`${word}-other`)).not.toEqual([]);
  expect(await host.keeper.stop('other')).toMatchObject({ isGone: true });
});

for (const [first, last] of [
  ['lost', 'other'],
  ['other', 'lost'],
] as const) {
  itAsRootOfHost(
    `a run whose shim was killed is not taken for another whose shim gets its pid: ${first} ends first`,
    async () => {
      await using host = await KeeperHost.open();
      const words = { lost: `lost-${process.pid}`, other: `other-${process.pid}` };
      await reusedPid(
        async () => {
          if (host.keeper.run('lost') !== null) await remove(host, 'lost');
          return loseShim(host, 'lost', words.lost);
        },
        async (pid) => {
          const args = ['-c', 'sleep 1000; :', words.other];
          await host.keeper.start({ id: 'other', command: 'sh', args, cgroup: null });
          if (childrenOf(host.keeperPid, 'exitwatch-shim').includes(pid)) return true;
          await remove(host, 'other');
          return false;
        },
      );
      expect(await host.keeper.stop(first)).toMatchObject({ isGone: true });
      expect(processesWith(words[first])).toEqual([]);
      expect(processesWith(words[last])).not.toEqual([]); // and its child, before that calls exec
      expect(host.keeper.run(last)?.state).toBe('running');
      expect(await host.keeper.stop(last)).toMatchObject({ isGone: true });
      expect(processesWith(words[last])).toEqual([]);
    },
  );
}

it('of two runs whose shims were killed, each is stopped without the other', async () => {
  await using host = await KeeperHost.open();
  const word = `stray-${process.pid}-${Math.random()}`;
  await loseShim(host, 'one', `${word}-1`);
  await loseShim(host, 'two', `${word}-2`);
  await host.keeper.stop('one');
  expect(host.keeper.run('two')?.state).toBe('running');
  expect(processesWith(`${word}-2`)).not.toEqual([]); // and its child, before that calls exec
  // Whose the other one was, nobody knows any more, until only one run can have it.
  await host.keeper.stop('two');
  expect(processesWith(`${word}-1`)).toEqual([]);
  expect(processesWith(`${word}-2`)).toEqual([]);
});
