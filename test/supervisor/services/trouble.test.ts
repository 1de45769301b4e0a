import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

import { ExitwatchError } from '../../../src/index';
import { Keeper } from '../../../src/supervisor/index';
import { isRunning, shell, sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';

afterEach(() => {
  jest.restoreAllMocks();
});

describe('a stop that goes wrong', () => {
  it('KB-08 KB-19 is tried again after 10 s, also of a service that was removed', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const broken = new ExitwatchError('ERR_EXITWATCH_SYSTEM', 'it broke');
    const stop = jest.spyOn(Keeper.prototype, 'stop').mockRejectedValueOnce(broken);
    await host.apply();
    expect((await host.event('warning')).error).toBe(broken);
    host.clock.advance(9999);
    await Promise.resolve();
    expect(stop).toHaveBeenCalledTimes(1);
    expect(host.supervisor.services()).toMatchObject([{ name: 'web', isRemoved: true }]);
    host.clock.advance(1002);
    await until('it to be gone', () => host.supervisor.services().length === 0);
    expect(isRunning(pid)).toBe(false);
  });

  it('SV-09 of what outlives SIGKILL is reported, and not forgotten', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const left = [{ pid: pid ?? 0, startTicks: 0, state: 'D' }];
    jest
      .spyOn(Keeper.prototype, 'stop')
      .mockResolvedValueOnce({ id: '', isGone: false, wasKilled: true, left });
    const stopped = host.supervisor.service('web').stop();
    const { error } = await host.event('warning');
    expect(error.message).toBe(`something of "web" has survived SIGKILL: ${pid}`);
    expect(host.status('web').phase).toBe('stopping');
    host.clock.advance(9000);
    expect(host.of('stopped')).toEqual([]);
    const joined = host.supervisor.service('web').stop({ graceMs: 1 });
    expect((await joined).phase).toBe('stopped');
    await stopped;
  });

  it('SV-19 a grandchild that holds its output does not hold it up', async () => {
    await using host = await SupervisorHost.open();
    const file = host.path('log');
    const script = `setsid sleep 1000 & echo up; exec sleep 1000`;
    await host.apply(shell('web', script, { logs: { file } }));
    await until('its output', () => existsSync(file) && readFileSync(file, 'utf8') === 'up\n');
    await host.supervisor.service('web').stop();
    expect(host.status('web').phase).toBe('stopped');
  });
});

describe('a process of a service', () => {
  it('SV-13 inherits no signal mask, no ignored signal and no descriptor', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    expect(/^SigBlk:\s*(\w+)/m.exec(status)?.[1]).toMatch(/^0+$/);
    expect(/^SigIgn:\s*(\w+)/m.exec(status)?.[1]).toMatch(/^0+$/);
    const open = readdirSync(`/proc/${pid}/fd`).map(Number);
    expect(open.filter((each) => each > 2)).toEqual([]);
    expect(open.map((each) => readlinkSync(`/proc/${pid}/fd/${each}`))).toEqual(
      open.map(() => '/dev/null'),
    );
  });
});

describe('a supervisor', () => {
  it('KB-19 finds within 66 s what it was not told', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid, run } = await host.phase('web', 'running');
    const known = jest.spyOn(Keeper.prototype, 'run').mockReturnValue(null); // it has forgotten it
    host.clock.advance(59_999);
    await Promise.resolve();
    expect(host.of('exit')).toEqual([]);
    host.clock.advance(6002);
    expect(await host.event('exit')).toMatchObject({ run, exitCode: null });
    known.mockRestore();
    await host.event('started', 2);
    expect(isRunning(pid)).toBe(false);
  });

  it('KB-21 goes on when its keeper is killed again and again', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    for (let round = 0; round < 3; round++) {
      const { pid } = await host.phase('web', 'running');
      const keeper = readdirSync('/proc').filter((each) => {
        try {
          const words = readFileSync(`/proc/${each}/cmdline`, 'latin1').split('\0');
          return words.includes(host.path('keeper'));
        } catch {
          return false;
        }
      });
      for (const each of keeper) process.kill(Number(each), 'SIGKILL');
      await host.supervisor.service('web').restart();
      expect(isRunning(pid)).toBe(false);
      expect(host.of('started')).toHaveLength(round + 2);
    }
  });

  it('KB-02 KB-24 keeps only the newest of many requests', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    const all: Promise<unknown>[] = [];
    for (let round = 0; round < 200; round++) {
      all.push(service.stop().catch(() => null));
      all.push(service.start().catch(() => null));
    }
    await Promise.all(all);
    expect((await host.phase('web', 'running')).phase).toBe('running');
    expect(host.of('started').length).toBeLessThan(4);
  });
});
