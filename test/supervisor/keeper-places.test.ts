// Lane: patient

import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';

import { Keeper } from '../../src/supervisor/index.js';
import { childrenOf, KeeperHost } from '../support/keeper';
import { until } from '../support/wait';
import { kill } from '../support/kill';

it('a state directory has the same keeper by each of its names', async () => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
  const link = `${host.stateDir}.link`;
  symlinkSync(host.stateDir, link);
  const second = new Keeper({ stateDir: link });
  await expect(second.open()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_IN_USE' });
  await host.keeper.close();
  const other = new Keeper({ stateDir: link });
  expect(await other.open()).toMatchObject({ pid: host.keeperPid });
  expect(other.run('stays')).toMatchObject({ state: 'running' });
  await other.close();
  rmSync(link);
  await host.reopen();
});

it('a state directory may be renamed, with the keeper alive or dead', async () => {
  await using host = await KeeperHost.open();
  const { keeper, keeperPid, stateDir } = host;
  const [log, go] = [`${stateDir}.log`, `${stateDir}.go`];
  const script = `echo x; while [ ! -e ${go} ]; do sleep 0.05; done; echo y; exit 5`;
  await keeper.start({ id: 'logs', command: 'sh', args: ['-c', script], logs: { file: log } });
  const { pid } = await keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
  await keeper.close();
  renameSync(stateDir, `${stateDir}.renamed`);
  const there = await KeeperHost.open({}, `${stateDir}.renamed`);
  try {
    expect(there.keeperPid).toBe(keeperPid);
    expect(there.keeper.run('stays')).toMatchObject({ state: 'running', pid, isLost: false });
    await there.keeper.start({ id: 'new', command: 'true' });
    await there.end('new');
    const { restarts } = there;
    const logProcess = await until(
      'its log process',
      () => childrenOf(keeperPid, 'exitwatch-log')[0],
    );
    kill(keeperPid, 'SIGKILL');
    kill(logProcess, 'SIGKILL');
    await until('another keeper', () => there.restarts > restarts);
    expect(there.keeper.run('stays')).toMatchObject({ state: 'running', pid, isLost: true });
    mkdirSync(go);
    await there.end('logs');
    await until('the log to be whole', () => readFileSync(log, 'latin1') === 'x\ny\n');
  } finally {
    await there.keeper.close();
    renameSync(`${stateDir}.renamed`, stateDir); // for the end of the test
    await host.reopen();
  }
  for (const path of [go, log]) rmSync(path, { recursive: true });
});
