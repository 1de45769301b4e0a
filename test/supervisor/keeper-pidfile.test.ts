// Lane: patient

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';

import { identify } from '../../src/index.js';
import { isAlive, readPidfile } from '../../src/process/index.js';
import { CGROUP2, itWithCgroup } from '../support/cgroup2';
import { KeeperHost } from '../support/keeper';
import { sleeper, SupervisorHost } from '../support/supervisor';
import { until } from '../support/wait';

const IN_CGROUP = { cgroup: `${CGROUP2 ?? ''}/exitwatch-test-${process.pid}` };

describe.each([
  ['without a cgroup', it, { cgroup: null }],
  ['in a cgroup', itWithCgroup, IN_CGROUP],
] as const)('the pidfile of a run %s', (_, itHere, mode) => {
  itHere('is there before its command is, with the identity that we would give it', async () => {
    await using host = await KeeperHost.open();
    const [pidfile, seen] = [host.path('pid'), host.path('seen')];
    const script = `{ cat ${pidfile}; echo " $$"; } > ${seen}; exec sleep 1000`;
    const run = await host.keeper.start({
      ...{ id: 'run', command: 'sh', args: ['-c', script], umask: 0o277, pidfile, ...mode },
    });
    const said = await until('the command to look', () => {
      const text = existsSync(seen) ? readFileSync(seen, 'utf8') : '';
      return text.endsWith('\n') && text.trim();
    });
    expect(said).toBe(`${run.pid} ${run.pid}`);
    const identity = identify(run.pid ?? 0);
    expect(identity).not.toBeNull();
    expect(await readPidfile(pidfile)).toEqual({ path: pidfile, pid: run.pid, identity });
    expect(JSON.parse(readFileSync(`${pidfile}.id`, 'utf8'))).toEqual(identity);
    expect(statSync(pidfile).mode & 0o777).toBe(0o600);
  });

  itHere('is not left by a start that fails', async () => {
    await using host = await KeeperHost.open();
    const pidfile = host.path('pid');
    const start = host.keeper.start({ id: 'run', command: '/nosuch', pidfile, ...mode });
    await expect(start).rejects.toMatchObject({ code: 'ERR_EXITWATCH_START_FAILED' });
    expect([existsSync(pidfile), existsSync(`${pidfile}.id`)]).toEqual([false, false]);
  });

  itHere('does not keep it from starting', async () => {
    await using host = await KeeperHost.open();
    const pidfile = host.path('nosuch', 'pid');
    const { state } = await host.keeper.start({
      ...{ id: 'run', command: 'sleep', args: ['1000'], pidfile, ...mode },
    });
    expect(state).toBe('running');
  });
});

it('names what was started, though the supervisor dies before it hears of it', async () => {
  await using host = await SupervisorHost.open();
  const [envFile, pidfile] = [host.path('secrets'), host.path('pid')];
  execFileSync('mkfifo', [envFile]);
  await host.apply(sleeper('web', { envFile, pidfile }));
  await host.supervisor.close();
  writeFileSync(envFile, '');
  const { pid, identity } = await until('the pidfile', () =>
    readPidfile(pidfile).catch(() => null),
  );
  expect(identity !== null && isAlive(identity)).toBe('alive');
  await host.reopen();
  expect(await host.phase('web', 'running')).toMatchObject({ pid, identity });
  await host.supervisor.service('web').stop();
  expect(existsSync(pidfile)).toBe(false);
});

it('CS-16 that cannot be written is a warning, and the next run has one', async () => {
  await using host = await SupervisorHost.open();
  const pidfile = host.path('run', 'pid');
  await host.apply(sleeper('web', { pidfile }));
  expect(await host.event('warning')).toMatchObject({
    ...{ service: 'web', error: { code: 'ERR_EXITWATCH_NO_PIDFILE' } },
  });
  mkdirSync(host.path('run'));
  await host.supervisor.service('web').restart();
  const { pid } = await host.phase('web', 'running');
  expect((await readPidfile(pidfile)).pid).toBe(pid);
});
