// Lane: patient

import { Backoff } from '../../../src/supervisor/services/backoff';
import { kill } from '../../support/kill';
import { sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';

const delays = (backoff: Backoff, count: number) =>
  Array.from({ length: count }, (_, at) => backoff.delayMs(at + 1));

describe('the backoff', () => {
  it('CS-04 waits 0, 0, 0, 2, 4, 8, 16, 32, 60, 60 s', () => {
    expect(delays(new Backoff(), 10)).toEqual(
      [0, 0, 0, 2, 4, 8, 16, 32, 60, 60].map((each) => each * 1000),
    );
  });

  it('CS-04 stays at its cap for ever', () => {
    const backoff = new Backoff();
    for (const attempt of [34, 35, 36, 1000, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      expect(backoff.delayMs(attempt)).toBe(60_000);
    }
  });

  it('takes no run for healthy that did not live for a second', () => {
    const backoff = new Backoff({ healthyMs: 0 });
    expect(backoff.attemptsAfter(5, 999)).toBe(5);
    expect(backoff.attemptsAfter(5, 1000)).toBe(0);
  });

  it('adds no more than its jitter', () => {
    const backoff = new Backoff({ jitter: 0.5 });
    expect(backoff.delayMs(4, () => 0)).toBe(2000);
    expect(backoff.delayMs(4, () => 0.999)).toBe(2999);
  });

  it.each([
    { freeAttempts: -1 },
    { firstMs: 0.5 },
    { capMs: 2 ** 31 },
    { healthyMs: NaN },
    { jitter: 2 },
    { giveUpAfter: 0 },
    { misspelt: 1 },
  ])('refuses %j', (options) => {
    expect(() => new Backoff(options)).toThrow(/backoff\.|unknown option/);
  });
});

/** Kills its present run, and resolves when that is over and told. */
async function crash(host: SupervisorHost): Promise<void> {
  const exits = host.of('exit').length;
  const { pid } = await host.phase('web', 'running');
  kill(pid, 'SIGKILL');
  await host.event('exit', exits + 1);
  await until('its end to be settled', () => {
    const { phase } = host.status('web');
    return phase === 'backoff' || phase === 'failed' || host.of('started').length > exits + 1;
  });
}

describe('a service in a crash loop', () => {
  it('CS-04 waits longer before each start', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    for (const waitMs of [0, 0, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
      await crash(host);
      if (waitMs === 0) continue;
      const started = host.of('started').length;
      expect(host.of('backoff').at(-1)).toMatchObject({ service: 'web', delayMs: waitMs });
      host.clock.advance(waitMs - 1);
      expect(host.status('web')).toMatchObject({ phase: 'backoff', pid: null });
      host.clock.advance(1);
      await host.event('started', started + 1);
    }
    expect(host.status('web').restarts).toBe(9);
  });

  it('waits also if each of its runs were healthy', async () => {
    await using host = await SupervisorHost.open();
    const backoff = { healthyMs: 0, giveUpAfter: 5 };
    await host.apply(sleeper('web', { command: 'true', args: [], restart: 'always', backoff }));
    await host.phase('web', 'backoff');
    host.clock.advance(60_000);
    await host.event('started', 4);
    await host.phase('web', 'backoff');
    host.clock.advance(60_000);
    await host.phase('web', 'failed');
  });

  it('CS-05 is not healthy because it has waited', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    for (const waitMs of [0, 0, 2000, 4000, 8000, 16_000]) {
      await crash(host);
      host.clock.advance(waitMs);
    }
    await crash(host); // at once after 16 s of waiting
    expect(host.of('backoff').at(-1)?.delayMs).toBe(32_000);
  });

  it('CS-06 begins anew after a run of 10 s', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    for (const waitMs of [0, 0, 2000]) {
      await crash(host);
      host.clock.advance(waitMs);
    }
    await host.phase('web', 'running');
    host.clock.advance(9_999);
    await crash(host);
    expect(host.of('backoff').at(-1)?.delayMs).toBe(4000);
    host.clock.advance(4000);
    await host.phase('web', 'running');
    host.clock.advance(10_000);
    await crash(host);
    await host.phase('web', 'running');
    expect(host.status('web').attempts).toBe(1);
  });

  it('CS-07 SV-10 SV-15 counts a start that fails as an attempt', async () => {
    await using host = await SupervisorHost.open();
    await host.apply({ name: 'web', command: '/nowhere/web' }, sleeper('other'));
    await host.phase('web', 'backoff');
    expect(host.of('warning')).toHaveLength(3);
    expect(host.status('web')).toMatchObject({
      attempts: 3,
      lastError: expect.stringMatching(/no such file/) as string,
    });
    await host.phase('other', 'running');
    host.clock.advance(2000);
    await host.event('warning', 4);
    await until('the next wait', () => host.of('backoff').at(-1)?.delayMs === 4000);
    expect(host.status('web').phase).toBe('backoff');
  });

  it('CS-08 SV-07 is stopped at once while it waits, without a signal', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    for (let round = 0; round < 3; round++) await crash(host);
    await host.phase('web', 'backoff');
    const exits = host.of('exit').length;
    const { phase, termination } = await host.supervisor.service('web').stop();
    expect(phase).toBe('stopped');
    expect(termination.requested).toBe(true);
    expect(await host.event('stopped')).toMatchObject({ service: 'web', phase: 'stopped' });
    host.clock.advance(100_000);
    await host.apply(sleeper('web'), sleeper('other'));
    await host.phase('other', 'running');
    expect(host.status('web').phase).toBe('stopped');
    expect(host.of('exit')).toHaveLength(exits);
  });

  it('CS-04 waits no less because its supervisor was restarted', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    for (let round = 0; round < 3; round++) await crash(host);
    await host.phase('web', 'backoff');
    host.clock.advance(500);
    await host.reopen();
    host.clock.advance(1499);
    expect(host.status('web').phase).toBe('backoff');
    expect(host.of('started')).toHaveLength(3);
    host.clock.advance(1);
    await host.event('started', 4);
  });

  it('SV-08 waits no longer than its backoff says if even that clock is set back', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    for (let round = 0; round < 3; round++) await crash(host);
    await host.phase('web', 'backoff');
    host.clock.setBack(3_600_000);
    await host.reopen(); // whose timer begins anew
    host.clock.advance(2000);
    await host.event('started', 4);
  });

  it('starts at once when somebody starts it', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    for (let round = 0; round < 3; round++) await crash(host);
    await host.phase('web', 'backoff');
    expect(await host.supervisor.service('web').start()).toMatchObject({
      phase: 'running',
      attempts: 1,
    });
  });

  it('SV-15 gives up only when it is told to', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { backoff: { giveUpAfter: 2 } }));
    await crash(host);
    await crash(host);
    const { lastEnd } = await host.phase('web', 'failed');
    expect(lastEnd).toMatchObject({ reason: 'gave-up' });
    expect(await host.event('stopped')).toMatchObject({ service: 'web', phase: 'failed' });
    await host.reopen();
    expect(host.status('web').phase).toBe('failed');
    await host.supervisor.service('web').start();
    expect(host.status('web').phase).toBe('running');
  });

  it('SV-08 goes by a clock that nobody sets', async () => {
    await using host = await SupervisorHost.open();
    const wall = jest.spyOn(Date, 'now').mockReturnValue(0); // in 1970
    try {
      await host.apply(sleeper('web'));
      for (let round = 0; round < 3; round++) await crash(host);
      host.clock.advance(2000);
      await host.event('started', 4);
    } finally {
      wall.mockRestore();
    }
  });
});
