// Lane: patient

import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';

import { compileKeeper } from '../../src/cli/compile-keeper.js';
import { CGROUP2, cgroupName, itWithCgroup } from '../support/cgroup2';
import { KeeperHost, processesWith } from '../support/keeper';
import { REPOSITORY } from '../support/programs';
import { until } from '../support/wait';

const IN_CGROUP = { cgroup: `${CGROUP2 ?? ''}/exitwatch-test-${process.pid}` };

async function removeEmpty(cgroup: string): Promise<void> {
  await until('the cgroup to be empty', () =>
    readFileSync(`${cgroup}/cgroup.events`, 'latin1').includes('populated 0'),
  );
  rmdirSync(cgroup);
}

itWithCgroup('a run that has left its cgroup is stopped', async () => {
  await using host = await KeeperHost.open();
  const other = cgroupName();
  mkdirSync(other);
  const word = `left-${process.pid}-${Math.random()}`;
  const script = `trap '' TERM; echo $$ > ${other}/cgroup.procs
    sh -c 'sleep 1000; :' ${word} & echo > ${host.path('up')}; wait; sleep 1000`;
  await host.keeper.start({ id: 'left', command: 'sh', args: ['-c', script], ...IN_CGROUP });
  await until('it to have left', () => existsSync(host.path('up')));
  await until('its child and grandchild to be known', async () => {
    return processesWith(word).length === 1 && (await host.keeper.members('left')).length === 3;
  });
  expect(await host.keeper.stop('left', { graceMs: 50 })).toMatchObject({
    ...{ isGone: true, wasKilled: true },
  });
  expect(processesWith(word)).toEqual([]);
  expect(await host.end('left')).toMatchObject({ how: 'killed', signal: 'SIGKILL' });
  await removeEmpty(other);
});

itWithCgroup(
  'what a run that has left its cgroup leaves behind is known, and stopped',
  async () => {
    await using host = await KeeperHost.open();
    const other = cgroupName();
    mkdirSync(other);
    const word = `left-${process.pid}-${Math.random()}`;
    const script = `echo $$ > ${other}/cgroup.procs; sh -c 'sleep 1000; :' ${word} & exit 3`;
    await host.keeper.start({ id: 'left', command: 'sh', args: ['-c', script], ...IN_CGROUP });
    expect(await host.end('left')).toMatchObject({ exitCode: 3 });
    await until('its child and grandchild to be there', async () => {
      return processesWith(word).length === 1 && (await host.keeper.members('left')).length === 2;
    });
    await host.keeper.upgrade();
    expect(await host.keeper.members('left')).toHaveLength(2);
    expect(host.keeper.run('left')?.hasMembers).toBe(true);
    expect(await host.keeper.stop('left')).toMatchObject({ isGone: true, wasKilled: false });
    expect(processesWith(word)).toEqual([]);
    await removeEmpty(other);
  },
);

itWithCgroup(
  'a run is killed where the kernel has no cgroup.kill',
  async () => {
    await using host = await KeeperHost.open();
    const binary = host.path('no-cgroup-kill-keeper');
    const header = `${REPOSITORY}/test/programs/no-cgroup-kill.h`;
    expect(compileKeeper(REPOSITORY, binary, { flags: ['-include', header] })).toBe(true);
    await host.keeper.upgrade(binary);
    for (let round = 0; round < 5; round++) {
      const [id, word] = [`forks-${round}`, `forks-${process.pid}-${Math.random()}`];
      // Forks while it is killed, and what it forks is of a session of its own.
      const script = `trap '' TERM; while :; do setsid sh -c 'sleep 1000; :' ${word} & sleep 0.01; done`;
      await host.keeper.start({ id, command: 'sh', args: ['-c', script], ...IN_CGROUP });
      await until('it to fork', () => processesWith(word).length > 3);
      if (round % 2 === 1) await host.keeper.pause(id);
      const stopped = await host.keeper.stop(id, { signal: 'SIGKILL' });
      expect(stopped).toEqual({ id, isGone: true, wasKilled: true, left: [] });
      expect(processesWith(word)).toEqual([]);
      expect(await host.end(id)).toMatchObject({ how: 'killed', signal: 'SIGKILL' });
    }
  },
  60_000,
);
