// Lane: patient

import { existsSync, readFileSync } from 'node:fs';

import { isRunning, shell, sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';
import { kill } from '../../support/kill';

describe('a service', () => {
  it('CS-01 has one process however often it is started', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    const again = await Promise.all([service.start(), service.start()]);
    expect(again.map((each) => each.pid)).toEqual([pid, pid]);
    expect(host.of('started')).toHaveLength(1);
  });

  it('CS-02 that was stopped starts only by start(), as another run', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { run } = await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    await service.stop();
    await host.apply(sleeper('web'));
    expect(host.status('web')).toMatchObject({ phase: 'stopped', pid: null });
    const started = await service.start();
    expect(started.phase).toBe('running');
    expect(started.run).not.toBe(run);
  });

  it('CS-02 that was stopped before its first start does not start', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.supervisor.service('web').stop();
    expect(host.status('web').phase).toBe('stopped');
    const before = host.of('started').length;
    await host.apply(sleeper('web'), sleeper('other'));
    await host.phase('other', 'running');
    expect(host.of('started')).toHaveLength(before + 1);
  });

  it('CS-03 is restarted when its process dies, with its new pid in the pidfile', async () => {
    await using host = await SupervisorHost.open();
    const pidfile = host.path('web.pid');
    await host.apply(sleeper('web', { pidfile }));
    const { pid } = await host.event('started');
    await until('the pidfile', () => existsSync(pidfile));
    kill(pid, 'SIGKILL');
    const exit = await host.event('exit');
    expect(exit).toMatchObject({
      service: 'web',
      pid,
      how: 'killed',
      signal: 'SIGKILL',
      source: 'keeper',
      decision: { restart: true, reason: 'not-asked' },
    });
    const next = await host.event('started', 2);
    expect(next.pid).not.toBe(pid);
    await until(
      'the new pid',
      () => existsSync(pidfile) && readFileSync(pidfile, 'utf8') === `${next.pid}`,
    );
  });

  it('CS-09 gets the signal of its choice, and is gone when stop() resolves', async () => {
    await using host = await SupervisorHost.open();
    const caught = host.path('caught');
    const script = `trap 'echo int > ${caught}; exit 3' INT; echo up > ${caught}; while :; do sleep 0.05; done`;
    await host.apply(shell('web', script, { stop: { signal: 'SIGINT' } }));
    const { pid } = await host.wrote('caught');
    await host.supervisor.service('web').stop();
    expect(isRunning(pid)).toBe(false);
    expect(readFileSync(caught, 'utf8')).toBe('int\n');
    expect((await host.event('exit')).decision).toMatchObject({
      restart: false,
      reason: 'stop',
      evidence: { intent: { purpose: 'stop' } },
    });
  });

  it('CS-10 that ignores the signal is killed after its grace', async () => {
    await using host = await SupervisorHost.open();
    const up = host.path('up');
    const script = `trap '' TERM; echo > ${up}; while :; do sleep 0.05; done`;
    await host.apply(shell('web', script, { stop: { graceMs: 20 } }));
    const { pid } = await host.wrote('up');
    await host.supervisor.service('web').stop();
    expect(isRunning(pid)).toBe(false);
    expect(await host.event('exit')).toMatchObject({ how: 'killed', signal: 'SIGKILL' });
  });
});
