import { isRunning, shell, sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';

const withoutKeeper = true;

describe('a supervisor without a keeper', () => {
  it('says so', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    expect(host.ready).toMatchObject({
      keeperPid: null,
      downgrade: { code: 'ERR_EXITWATCH_NO_KEEPER' },
    });
  });

  it('starts, restarts and stops, and knows how its children end', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    await host.apply(sleeper('web'), shell('job', 'exit 3', { restart: 'never' }));
    const { pid } = await host.phase('web', 'running');
    process.kill(pid ?? 0, 'SIGUSR1');
    await host.event('started', 3);
    await host.phase('job', 'ended');
    expect(host.status('job').lastEnd).toMatchObject({ how: 'exited', exitCode: 3 });
    expect(host.status('web').lastEnd).toMatchObject({ how: 'killed', signal: 'SIGUSR1' });
    const { pid: next } = await host.phase('web', 'running');
    await host.supervisor.service('web').stop();
    expect(isRunning(next)).toBe(false);
  });

  it('CS-07 counts a start that fails', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    await host.apply({ name: 'web', command: '/nowhere/web' });
    const { lastError } = await host.phase('web', 'backoff');
    expect(lastError).toMatch(/no such file/);
  });

  it('CS-19 adopts what runs, and does not guess how it ends', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    expect(await host.reopen()).toMatchObject({ adopted: ['web'] });
    expect(host.status('web').pid).toBe(pid);
    process.kill(pid ?? 0, 'SIGKILL');
    const exit = await host.event('exit');
    expect(exit.exitCode).toBeNull();
    await host.event('started', 2);
  });

  it('SV-02 starts again what has died in the meantime', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    await host.reopen(async () => {
      process.kill(pid ?? 0, 'SIGKILL');
      await until('its death', () => !isRunning(pid));
    });
    expect(await host.event('exit')).toMatchObject({ how: 'unknown' });
    await host.event('started', 2);
  });

  it('refuses what only a keeper can do', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    await host.apply(sleeper('web', { umask: 0o077 }));
    const { lastError } = await host.phase('web', 'backoff');
    expect(lastError).toBe('umask requires a keeper');
  });
});
