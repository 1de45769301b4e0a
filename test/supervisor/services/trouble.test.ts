// Lane: patient

import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';

import { Keeper } from '../../../src/supervisor/index';
import { Childless, Frozen, itWithFreezer, itWithPids } from '../../support/cgroup1';
import { kill } from '../../support/kill';
import { isRunning, shell, sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';

afterEach(() => {
  jest.restoreAllMocks();
});

describe('a stop that goes wrong', () => {
  itWithFreezer('SV-09 of what outlives SIGKILL is reported, and not forgotten', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { stop: { graceMs: 1 } }));
    const { pid } = await host.phase('web', 'running');
    await using frozen = await Frozen.of(pid ?? 0);
    const stopped = host.supervisor.service('web').stop();
    const { error } = await host.event('warning');
    const message = `something of "web" has survived SIGKILL: ${pid}`;
    expect(error.message).toBe(message);
    const told: unknown = JSON.parse(JSON.stringify({ error }));
    expect(told).toMatchObject({ error: { code: 'ERR_EXITWATCH_TIMEOUT', message } });
    expect(isRunning(pid)).toBe(true);
    expect(host.status('web')).toMatchObject({ phase: 'stopping', pid });
    expect([host.of('stopped'), host.of('exit')]).toEqual([[], []]);
    frozen.thaw();
    await stopped;
    expect(host.of('exit')).toMatchObject([{ pid, how: 'killed' }]);
    expect(host.status('web').phase).toBe('stopped');
  });

  itWithFreezer('KB-08 KB-19 is tried again after 10 s, also of a removed service', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { stop: { graceMs: 1 } }));
    const { pid } = await host.phase('web', 'running');
    const stop = jest.spyOn(Keeper.prototype, 'stop'); // counts only
    await using frozen = await Frozen.of(pid ?? 0);
    await host.apply();
    await host.event('warning');
    host.clock.advance(9999);
    expect(stop).toHaveBeenCalledTimes(1);
    expect(host.supervisor.services()).toMatchObject([{ name: 'web', isRemoved: true }]);
    host.clock.advance(1002);
    await until('the next try', () => stop.mock.calls.length === 2);
    frozen.thaw();
    await until('it to be gone', () => host.supervisor.services().length === 0);
    expect(isRunning(pid)).toBe(false);
  });

  itWithFreezer('KB-12 KB-14 of what nobody desires goes on until it is gone', async () => {
    await using host = await SupervisorHost.open();
    await host.supervisor.close();
    const keeper = new Keeper({ stateDir: host.stateDir });
    await keeper.open();
    const { pid } = await keeper.start({ id: 'stray', command: 'sleep', args: ['1000'] });
    await keeper.close();
    await using frozen = await Frozen.of(pid ?? 0);
    const stop = jest.spyOn(Keeper.prototype, 'stop'); // counts only
    await host.reopen();
    await until('the next try', () => {
      host.clock.advance(500);
      return stop.mock.calls.length === 2;
    });
    frozen.thaw();
    await until('its end', () => !isRunning(pid));
    await until('it to be forgotten', () => {
      host.clock.advance(500);
      return host.supervisor.metrics().orphans === 0;
    });
    expect(host.of('orphan')).toHaveLength(1);
    expect(host.supervisor.metrics().orphaned).toBe(1);
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
    // The loader of its libraries has one at first.
    const open = await until('no descriptor but three', () => {
      const all = readdirSync(`/proc/${pid}/fd`).map(Number);
      return all.every((each) => each <= 2) && all;
    });
    expect(open.map((each) => readlinkSync(`/proc/${pid}/fd/${each}`))).toEqual(
      open.map(() => '/dev/null'),
    );
  });
});

describe('a supervisor', () => {
  itWithPids('SV-10 counts a fork that fails with EAGAIN as an attempt', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('other'));
    const { pid } = await host.phase('other', 'running');
    await using childless = Childless.of(host.ready?.keeperPid ?? 0);
    await host.apply(sleeper('other'), sleeper('web'));
    const { attempts, lastError } = await host.phase('web', 'backoff');
    expect(attempts).toBe(3);
    expect(lastError).toMatch(/resource temporarily unavailable/);
    expect(host.status('other')).toMatchObject({ phase: 'running', pid });
    childless.allow();
    host.clock.advance(2000);
    await host.phase('web', 'running');
  });

  it('SV-10 goes on after a time in which no keeper can be started', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const [folder, away] = [host.path('keeper'), host.path('away')];
    renameSync(folder, away);
    writeFileSync(folder, '');
    kill(host.ready?.keeperPid, 'SIGKILL');
    expect(await host.event('warning')).toMatchObject({ service: null });
    rmSync(folder);
    renameSync(away, folder);
    kill(pid, 'SIGKILL');
    await until('the next run', () => {
      host.clock.advance(500);
      return host.of('started').length === 2;
    });
    expect(host.of('exit')).toMatchObject([{ pid, exitCode: null }]);
  });

  it('KB-21 finds the end that its keeper knows and it was not told', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const emit = jest.spyOn(Keeper.prototype, 'emit').mockReturnValue(true); // news get lost
    kill(pid, 'SIGUSR1');
    await until('its end to be lost', () =>
      emit.mock.calls.some((args: unknown[]) => args[0] === 'ended'),
    );
    emit.mockRestore();
    expect(host.status('web').phase).toBe('running');
    host.clock.advance(66_001);
    await until('its end', () => {
      host.clock.advance(500);
      return host.of('exit').length > 0;
    });
    expect(await host.event('exit')).toMatchObject({ pid, signal: 'SIGUSR1' });
  });

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
      for (const each of keeper) kill(Number(each), 'SIGKILL');
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

it('what cannot be stored is not done later', async () => {
  await using host = await SupervisorHost.open();
  await host.apply(sleeper('web'));
  const { pid } = await host.phase('web', 'running');
  renameSync(host.path('services'), host.path('away'));
  const stopped = host.supervisor.service('web').stop({ why: 'because' });
  await expect(stopped).rejects.toMatchObject({ code: 'ERR_EXITWATCH_STATE_DIR' });
  renameSync(host.path('away'), host.path('services'));
  host.clock.advance(100_000);
  await host.apply(sleeper('web', { backoff: { firstMs: 1 } }));
  expect(host.status('web')).toMatchObject({ phase: 'running', pid, stopped: null });
});

it('a restart or a pause that cannot be stored is an error; a resume is stored later', async () => {
  await using host = await SupervisorHost.open();
  await host.apply(sleeper('web'));
  const { pid } = await host.phase('web', 'running');
  const web = host.supervisor.service('web');
  const withoutDisk = async (work: () => Promise<unknown>) => {
    renameSync(host.path('services'), host.path('away'));
    await work();
    renameSync(host.path('away'), host.path('services'));
    host.clock.advance(20_000);
  };
  const refused = { code: 'ERR_EXITWATCH_STATE_DIR' };
  await withoutDisk(() => expect(web.pause()).rejects.toMatchObject(refused));
  expect(host.status('web').phase).toBe('running');
  await withoutDisk(() => expect(web.restart()).rejects.toMatchObject(refused));
  await web.pause(); // a step after any that was left
  expect(host.status('web')).toMatchObject({ phase: 'paused', pid });
  await withoutDisk(() => web.resume());
  expect(host.status('web')).toMatchObject({ phase: 'running', pid });
  await until('it to be stored', () => {
    return host.record('web').run?.['isPaused'] === false;
  });
  const { newPid } = await web.restart();
  expect(newPid).not.toBe(pid);
});

it('all can be stopped although nothing can be stored', async () => {
  await using host = await SupervisorHost.open();
  await host.apply(sleeper('web'));
  const { pid } = await host.phase('web', 'running');
  renameSync(host.path('services'), host.path('away'));
  expect(await host.supervisor.stopAll()).toEqual({ stopped: ['web'], errors: [] });
  expect(isRunning(pid)).toBe(false);
  renameSync(host.path('away'), host.path('services'));
});
