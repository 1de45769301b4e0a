// Lane: patient

import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

import { KeeperHost } from '../support/keeper';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

const BINARY = require.resolve('../../build/Release/exitwatch-keeper');
const RUNS = 100 * ROUNDS;
const AT_ONCE = 20;

it(`upgraded again and again while ${RUNS} runs start and end: none lost, none twice`, async () => {
  await using host = await KeeperHost.open();
  const marks = host.path('marks');
  mkdirSync(host.path('package'));
  const binary = host.path('package', 'exitwatch-keeper');
  copyFileSync(BINARY, binary);
  const { pid } = await host.keeper.upgrade(binary);
  let upgrades = 0;
  const runs = { areOver: false };
  const upgrading = (async () => {
    while (!runs.areOver) {
      // The package's files are replaced underneath it.
      copyFileSync(BINARY, `${binary}.new`);
      renameSync(`${binary}.new`, binary);
      expect((await host.keeper.upgrade(binary)).pid).toBe(pid);
      upgrades++;
    }
  })();
  for (let i = 0; i < RUNS; i += AT_ONCE) {
    const ids = Array.from({ length: AT_ONCE }, (_, j) => `run${i + j}`);
    await Promise.all(
      ids.map((id, j) =>
        host.keeper.start({
          ...{ id, command: 'sh', args: ['-c', `echo ${id} >> ${marks}; exit ${j}`] },
          ...(j % 2 === 0 ? { cgroup: null } : {}),
        }),
      ),
    );
    for (const [j, id] of ids.entries()) {
      expect(await host.end(id)).toMatchObject({ how: 'exited', exitCode: j, source: 'keeper' });
      await until(`nothing to be left of ${id}`, () => host.keeper.run(id)?.hasMembers === false);
      await host.keeper.forget(id);
    }
  }
  runs.areOver = true;
  await upgrading;
  expect(upgrades).toBeGreaterThan(ROUNDS);
  const ran = readFileSync(marks, 'utf8').trimEnd().split('\n');
  expect(ran).toHaveLength(RUNS);
  expect(new Set(ran).size).toBe(RUNS);
  const repeated = [...host.ended].filter(([, ends]) => ends.length > 1);
  expect(repeated.map(([id, ends]) => [id, ends.map(({ isRepeated }) => isRepeated)])).toEqual([]);
});

it('a binary that cannot take over is refused, and the keeper goes on', async () => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
  const bad = host.path('bad');
  await expect(host.keeper.upgrade(bad)).rejects.toMatchObject({ code: 'ERR_EXITWATCH_SYSTEM' });
  for (const content of ['', 'garbage', '#!/bin/false\n', '#!/bin/sh\nkill -9 $$\n']) {
    rmSync(bad, { force: true });
    writeFileSync(bad, content, { mode: 0o755 });
    await expect(host.keeper.upgrade(bad)).rejects.toMatchObject({ code: 'ERR_EXITWATCH_SYSTEM' });
  }
  expect(host.keeper.run('stays')?.state).toBe('running');
  expect(await host.keeper.stop('stays')).toMatchObject({ isGone: true });
  expect(await host.end('stays')).toMatchObject({ how: 'killed', signal: 'SIGTERM' });
});
