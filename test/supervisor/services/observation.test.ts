// Lane: patient

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ExitMonitor } from '../../../src/index';
import { Keeper } from '../../../src/supervisor/index';
import { kill } from '../../support/kill';
import { itAsRootOfHost } from '../../support/privilege';
import { isRunning, sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';

afterEach(() => {
  jest.restoreAllMocks();
});

describe('what is observed', () => {
  it('KB-14 of a service that is just stopping makes nobody take it for an orphan', async () => {
    await using host = await SupervisorHost.open();
    const up = host.path('up');
    const script = `trap '' TERM; echo > ${up}; while :; do sleep 0.05; done`;
    const stop = { graceMs: 600_000 };
    await host.apply({ name: 'web', command: 'sh', args: ['-c', script], stop });
    const { pid } = await host.wrote('up');
    await host.apply();
    await host.phase('web', 'stopping');
    // The next keeper lists it as a run that is there: nobody may act on that.
    const { keeperPid } = host.ready ?? {};
    kill(keeperPid, 'SIGKILL');
    await until('the next keeper', () => !isRunning(keeperPid));
    await host.reopen();
    expect(host.ready).toMatchObject({ orphans: [] });
    expect([host.of('orphan'), isRunning(pid)]).toEqual([[], true]);
    await host.supervisor.stopAll({ graceMs: 1 }); // also of what is being removed
    expect(isRunning(pid)).toBe(false);
  });

  it('KB-20 is newer than the last action of a worker, also if news come late', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    // Each end is told late; until then the keeper's client knows the old state only.
    // eslint-disable-next-line @typescript-eslint/unbound-method
    const emit = Keeper.prototype.emit as (this: Keeper, ...args: unknown[]) => boolean;
    const late: (() => void)[] = [];
    jest.spyOn(Keeper.prototype, 'emit').mockImplementation(function (this: Keeper, ...args) {
      late.push(() => emit.apply(this, args));
      return true;
    });
    const stop = jest.spyOn(Keeper.prototype, 'stop'); // counts only
    const service = host.supervisor.service('web');
    for (let round = 1; round <= 5; round++) {
      const { pid } = host.status('web');
      const stopped = service.stop();
      await until('its end', () => !isRunning(pid));
      await until('the late news', () => late.length > 0);
      expect(host.of('exit')).toHaveLength(round - 1);
      expect(host.status('web').phase).toBe('stopping');
      for (const tell of late.splice(0)) tell();
      await stopped;
      expect(host.status('web')).toMatchObject({ phase: 'stopped', pid: null });
      expect(stop).toHaveBeenCalledTimes(round);
      expect(await service.start()).toMatchObject({ phase: 'running' });
      late.splice(0);
    }
    jest.restoreAllMocks();
  });

  itAsRootOfHost('KB-22 is in one order, by one clock and unit, from both witnesses', async () => {
    await using monitor = new ExitMonitor();
    await monitor.start();
    await using host = await SupervisorHost.open({ monitor });
    await host.apply(sleeper('web'));
    for (let round = 1; round <= 3; round++) {
      const { pid } = await host.phase('web', 'running');
      const before = Date.now();
      kill(pid, 'SIGKILL');
      const { startedAt, exitedAt } = await host.event('exit', round);
      // Ticks of 10 ms, and a millisecond for rounding.
      expect(startedAt?.getTime()).toBeLessThanOrEqual(exitedAt.getTime() + 11);
      expect(exitedAt.getTime()).toBeGreaterThanOrEqual(before - 11);
      expect(exitedAt.getTime()).toBeLessThanOrEqual(Date.now() + 11);
      await until('the next run', () => host.of('started').length > round);
      host.clock.advance(10_000); // healthy
    }
  });

  it('KB-22 of an older run never replaces what is known of a newer one', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { run, pid } = await host.phase('web', 'running');
    kill(pid, 'SIGUSR1');
    await host.event('started', 2);
    const { lastEnd, pid: now } = await host.phase('web', 'running');
    await host.reopen(async () => {
      // As if the supervisor had died before it could have that forgotten.
      const keeper = new Keeper({ stateDir: host.stateDir });
      await keeper.open();
      await keeper.start({ id: run ?? '', command: 'false' });
      await until('its end', () => keeper.run(run ?? '')?.state === 'ended');
      await keeper.close();
    });
    expect(host.status('web')).toMatchObject({ phase: 'running', pid: now, lastEnd });
    expect(host.of('exit')).toHaveLength(1);
  });

  it('KB-23 by polling alone says so, and not how it ended', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper: true });
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    await host.reopen(async () => {
      kill(pid, 'SIGKILL');
      await until('its death', () => !isRunning(pid));
    });
    const exit = await host.event('exit');
    expect(exit).toMatchObject({ source: 'poll', how: 'unknown', signal: null, exitCode: null });
    // It may have ended at any time since its start.
    const livedMs = exit.exitedAt.getTime() - (exit.startedAt?.getTime() ?? 0);
    expect(exit.uncertaintyMs).toBeGreaterThanOrEqual(livedMs - 20);
    expect(host.supervisor.metrics().resyncMs).toBe(60_000);
  });

  it('KB-25 is old if the keeper does not answer, which its health says', async () => {
    await using host = await SupervisorHost.open();
    const unused = SupervisorHost.beside(host.path('unused'));
    expect(unused.health()).toMatchObject({ isHealthy: false, lastSeenMs: null });
    await unused.close();
    expect(host.supervisor.health()).toEqual({ isHealthy: true, lastSeenMs: 0, because: null });
    const { keeperPid } = host.ready ?? {};
    kill(keeperPid, 'SIGSTOP');
    try {
      for (let second = 0; second < 200; second++) host.clock.advance(1000);
      const { isHealthy, lastSeenMs, because } = host.supervisor.health();
      expect([isHealthy, lastSeenMs]).toEqual([false, 200_000]);
      expect(because).toBe('the keeper has not answered for 200 s');
    } finally {
      kill(keeperPid, 'SIGCONT');
    }
    await until('its health', () => {
      host.clock.advance(1000);
      return host.supervisor.health().isHealthy;
    });
  });
});

it('KB-28 no test of services sleeps', () => {
  for (const file of readdirSync(__dirname).filter((name) => name.endsWith('.test.ts'))) {
    const source = readFileSync(join(__dirname, file), 'utf8');
    expect([file, /^import [^;]*node:timers/mu.test(source)]).toEqual([file, false]);
  }
});
