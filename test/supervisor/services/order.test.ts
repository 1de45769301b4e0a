// Lane: patient

import { writeFileSync } from 'node:fs';

import type { Supervisor } from '../../../src/supervisor/index.js';

import { isRunning, shell, sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';

const refusal = (
  supervisor: Supervisor,
  ...services: Parameters<Supervisor['apply']>[0][number][]
) =>
  supervisor.apply(services).then(
    () => 'nothing',
    (error: unknown) => (error as Error).message,
  );

describe('the order of services', () => {
  it('starts a service when those that it is after are ready', async () => {
    await using host = await SupervisorHost.open();
    const go = host.path('go');
    const isThere = { exec: { command: 'test', args: ['-e', go] }, everyMs: 1 };
    await host.apply(sleeper('web', { after: ['db'] }), sleeper('db', { ready: isThere }));
    await host.phase('db', 'running');
    expect(host.status('web')).toMatchObject({ phase: 'starting', waitsFor: ['db'], pid: null });
    writeFileSync(go, '');
    await until('db to be ready', () => {
      host.clock.advance(1);
      return host.of('ready').some(({ service }) => service === 'db');
    });
    const { waitsFor } = await host.phase('web', 'running');
    expect(waitsFor).toEqual([]);
    expect(host.of('started').map(({ service }) => service)).toEqual(['db', 'web']);
  });

  it('does not wait for what is not going to run', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('db'));
    await host.supervisor.service('db').stop();
    const once = shell('once', 'exit 0', { restart: 'never' });
    await host.apply(sleeper('db'), once, sleeper('web', { after: ['db', 'once'] }));
    await host.phase('web', 'running');
    await host.phase('once', 'ended');
    expect(host.status('db').phase).toBe('stopped');
  });

  it('waits for one that fails to start until it has given up', async () => {
    await using host = await SupervisorHost.open();
    const broken = {
      ...sleeper('db', { command: '/no/such/program' }),
      backoff: { giveUpAfter: 2 },
    };
    await host.apply(broken, sleeper('web', { after: ['db'] }));
    await host.phase('db', 'failed');
    await host.phase('web', 'running');
  });

  it('stops what is after another service before it, and that when it is gone', async () => {
    await using host = await SupervisorHost.open();
    const slow = shell(
      'web',
      'trap "sleep 0.5; exit 0" TERM; echo > up; while :; do sleep 0.05; done',
    );
    await host.apply(
      { ...slow, cwd: host.stateDir, after: ['db'] },
      sleeper('db', { after: ['disk'] }),
      sleeper('disk'),
    );
    const { pid } = await host.wrote('up');
    const { pid: db } = host.status('db');
    const stopped = host.supervisor.stopAll();
    await until('web to be told', () => host.status('web').phase === 'stopping');
    expect(host.status('db')).toMatchObject({ phase: 'stopping', waitsFor: ['web'] });
    expect(isRunning(db)).toBe(true);
    await stopped;
    expect(isRunning(pid)).toBe(false);
    expect(host.of('exit').map(({ service }) => service)).toEqual(['web', 'db', 'disk']);
    expect(host.of('exit').every(({ decision }) => decision.reason === 'stop')).toBe(true);
  });

  it('goes on with an ordered stop after a restart of the supervisor', async () => {
    await using host = await SupervisorHost.open();
    const stubborn = shell('web', 'trap "" TERM; echo > up; while :; do sleep 0.05; done');
    await host.apply(
      { ...stubborn, cwd: host.stateDir, after: ['db'], stop: { graceMs: 300 } },
      sleeper('db'),
    );
    await host.wrote('up');
    for (const name of ['db', 'web']) {
      host.supervisor
        .service(name)
        .stop()
        .catch(() => undefined);
    }
    await until('web to be told', () => host.status('web').phase === 'stopping');
    await host.reopen();
    await host.phase('web', 'stopped');
    await host.phase('db', 'stopped');
    const ends = host.of('exit').map(({ service }) => service);
    expect(ends).toEqual(['web', 'db']);
  });

  it('stops one alone when only that is asked for', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('db'), sleeper('web', { after: ['db'] }));
    await host.phase('web', 'running');
    await host.supervisor.service('db').stop();
    expect(host.status('web').phase).toBe('running');
    expect(host.status('db').phase).toBe('stopped');
  });

  it('does not restart anything when only the order changes', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('db'), sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    await host.apply(sleeper('db'), sleeper('web', { after: ['db'] }));
    expect(host.status('web')).toMatchObject({ pid, isCurrent: true });
  });

  it('refuses circles and names that no service has', async () => {
    await using host = await SupervisorHost.open();
    const { supervisor } = host;
    const message = await refusal(
      supervisor,
      sleeper('a', { after: ['b'] }),
      sleeper('b', { after: ['c'] }),
      sleeper('c', { after: ['a'] }),
    );
    expect(message).toBe('service "a": after goes in a circle: a after b after c after a');
    expect(await refusal(supervisor, sleeper('a', { after: ['a'] }))).toContain('a after a');
    expect(await refusal(supervisor, sleeper('a', { after: ['b'] }))).toBe(
      'service "a": after names "b", which is no service',
    );
    expect(supervisor.services()).toEqual([]);
    const many = Array.from({ length: 20_000 }, (_, at) => ({
      ...sleeper(`s${at}`),
      after: [`s${(at + 1) % 20_000}`],
    }));
    expect(await refusal(supervisor, ...many)).toContain('after goes in a circle');
  });
});

describe('what a supervisor is told', () => {
  it('has on record who asked for a stop and a restart', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    const web = host.supervisor.service('web');
    await web.restart({ why: 'a new certificate' });
    await web.stop({ why: 'asked by Ada' });
    const because = host.of('exit').map(({ decision }) => decision.because);
    expect(because).toEqual([
      'we were asked to restart it: a new certificate',
      'we were asked to stop it: asked by Ada',
    ]);
    expect(web.status().lastEnd?.because).toBe('we were asked to stop it: asked by Ada');
    await expect(web.stop({ why: 'x'.repeat(1001) })).rejects.toThrow('at most 1000');
  });

  it('has the time of its start, and its description', async () => {
    await using host = await SupervisorHost.open();
    const before = Date.now();
    await host.apply(sleeper('web', { extraEnv: { COLOR: 'blue' } }));
    const { startedAt } = await host.phase('web', 'running');
    expect(startedAt?.getTime()).toBeGreaterThan(before - 1000);
    expect(startedAt?.getTime()).toBeLessThan(Date.now() + 1000);
    expect(host.supervisor.service('web').spec()).toMatchObject({ extraEnv: { COLOR: 'blue' } });
    await host.supervisor.service('web').stop();
    expect(host.status('web').startedAt).toBeNull();
  });

  it('adds variables to the environment', async () => {
    await using host = await SupervisorHost.open();
    const script = 'echo "$COLOR $HOME $WATCHDOG_USEC" > env; exec sleep 1000';
    await host.apply({
      ...shell('web', script, { cwd: host.stateDir, env: { HOME: '/h', COLOR: 'red' } }),
      extraEnv: { COLOR: 'blue' },
    });
    await host.wrote('env');
    expect(host.read('env')).toBe('blue /h \n');
  });
});
