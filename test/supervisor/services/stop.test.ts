// Lane: patient

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { cgroupMount, cgroupPath } from '../../../src/process/cgroup';
import { Keeper } from '../../../src/supervisor/index';

import { kill } from '../../support/kill';
import { isRunning, shell, sleeper, SupervisorHost } from '../../support/supervisor';
import { arrives, until } from '../../support/wait';

afterEach(() => {
  jest.restoreAllMocks();
});

/** Ignores SIGTERM once `up` exists. */
const stubborn = (host: SupervisorHost, name = 'web', graceMs = 600_000) =>
  shell(name, `trap '' TERM; echo > ${host.path('up')}; while :; do sleep 0.05; done`, {
    stop: { graceMs },
  });

async function openStubborn(graceMs?: number) {
  const host = await SupervisorHost.open();
  await host.apply(stubborn(host, 'web', graceMs));
  await host.wrote('up');
  return host;
}

describe('stop()', () => {
  it('CS-12 succeeds if the process has just ended', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { restart: 'never' }));
    const { pid } = await host.phase('web', 'running');
    kill(pid, 'SIGKILL');
    expect((await host.supervisor.service('web').stop()).phase).toBe('stopped');
  });

  it('CS-13 KB-07 is one stop for all who call it', async () => {
    await using host = await SupervisorHost.open();
    const log = host.path('terms');
    const script = `trap 'echo term >> ${log}; exit 0' TERM; echo > ${host.path('up')}; while :; do sleep 0.05; done`;
    await host.apply(shell('web', script));
    await host.wrote('up');
    const service = host.supervisor.service('web');
    const stops = [service.stop(), service.stop(), service.stop()];
    expect((await Promise.all(stops)).map(({ phase }) => phase)).toEqual(Array(3).fill('stopped'));
    expect((await service.stop()).phase).toBe('stopped'); // at once
    expect(readFileSync(log, 'utf8')).toBe('term\n');
    expect(host.of('exit')).toHaveLength(1);
  });

  it('CS-14 does nothing after close(), which leaves the process and its pidfile', async () => {
    await using host = await SupervisorHost.open();
    const pidfile = host.path('web.pid');
    await host.apply(sleeper('web', { pidfile }));
    const { pid } = await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    await host.supervisor.close();
    await expect(service.stop()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_CLOSED' });
    expect(isRunning(pid)).toBe(true);
    expect(existsSync(pidfile)).toBe(true);
  });

  it('CS-15 removes the pidfile, and does not miss one', async () => {
    await using host = await SupervisorHost.open();
    const pidfile = host.path('web.pid');
    await host.apply(sleeper('web', { pidfile }));
    await until('the pidfile', () => existsSync(pidfile));
    await host.supervisor.service('web').stop();
    expect(existsSync(pidfile)).toBe(false);
    await host.supervisor.service('web').start();
    await host.supervisor.service('web').stop();
    expect(host.of('warning')).toEqual([]);
  });

  it('CS-16 a pidfile that cannot be written is a warning', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { pidfile: '/proc/none/web.pid' }));
    await host.phase('web', 'running');
    expect(await host.event('warning')).toMatchObject({ service: 'web' });
    expect(host.status('web').phase).toBe('running');
  });

  it('KB-04 CS-11 SV-11 of a service that is just starting leaves nothing behind', async () => {
    await using host = await SupervisorHost.open();
    for (let round = 0; round < 5; round++) {
      const name = `web${round}`;
      await host.apply(sleeper(name));
      const stopped = host.supervisor.service(name).stop({ graceMs: round % 2 });
      await stopped;
      expect(host.status(name)).toMatchObject({ phase: 'stopped', run: null });
    }
    for (const { pid } of host.of('started')) expect(isRunning(pid)).toBe(false);
  });

  it('KB-06 is shortened by a later one, and never lengthened', async () => {
    await using host = await openStubborn(600_000);
    const service = host.supervisor.service('web');
    const first = service.stop();
    await host.phase('web', 'stopping');
    const longer = service.stop({ graceMs: 2_000_000 });
    const shorter = service.stop({ graceMs: 0 });
    await Promise.all([first, longer, shorter]);
    expect(await host.event('exit')).toMatchObject({ signal: 'SIGKILL' });
  });

  it('KB-07 rejects after 1.5 times the grace, and goes on', async () => {
    await using host = await openStubborn(600_000);
    const service = host.supervisor.service('web');
    const late = service.stop();
    await host.phase('web', 'stopping');
    host.clock.advance(900_000);
    await expect(late).rejects.toMatchObject({ code: 'ERR_EXITWATCH_TIMEOUT' });
    expect(host.status('web').phase).toBe('stopping');
    await service.stop({ graceMs: 1 });
    expect(host.status('web').phase).toBe('stopped');
  });

  it('KB-05 has four facts that stay true', async () => {
    await using host = await openStubborn(600_000);
    const service = host.supervisor.service('web');
    expect(host.status('web').termination).toEqual({
      ...{ requested: false, started: false, terminated: false, finished: false },
    });
    const stopped = service.stop();
    expect(host.status('web').termination).toMatchObject({ requested: true, started: false });
    await host.phase('web', 'stopping');
    expect(host.status('web').termination).toMatchObject({ started: true, terminated: false });
    await Promise.all([stopped, service.stop({ graceMs: 1 })]);
    await until('its end', () => host.status('web').termination.finished);
    expect(host.status('web').termination).toEqual({
      ...{ requested: true, started: true, terminated: true, finished: true },
    });
  });

  it('SV-05 SV-12 returns only when children that ignore SIGTERM are gone', async () => {
    await using host = await SupervisorHost.open();
    const child = host.path('child');
    const inner = `trap "" TERM; echo $$ > ${child}; while :; do sleep 0.05; done`;
    await host.apply(shell('web', `sh -c '${inner}' & exec sleep 1000`, { stop: { graceMs: 50 } }));
    const pid = await until(
      'the child',
      () => (existsSync(child) && Number(readFileSync(child))) || null,
    );
    await host.supervisor.service('web').stop();
    expect(isRunning(pid)).toBe(false);
  });

  it('SV-12 what a process has left behind ends before the next run', async () => {
    await using host = await SupervisorHost.open();
    const child = host.path('child');
    const script = `[ -e ${child} ] && exec sleep 1000; sleep 1000 & echo $! > ${child}; exit 1`;
    await host.apply(shell('web', script));
    await host.event('started', 2);
    expect(isRunning(Number(readFileSync(child, 'utf8')))).toBe(false);
  });

  it('SV-06 KB-09 start() during a slow stop waits it out', async () => {
    await using host = await openStubborn(600_000);
    const { pid } = host.status('web');
    const service = host.supervisor.service('web');
    const stopped = service.stop();
    await host.phase('web', 'stopping');
    const started = service.start();
    void stopped;
    expect(host.status('web').phase).toBe('stopping');
    const killed = service.stop({ graceMs: 1 });
    await expect(started).rejects.toMatchObject({ code: 'ERR_EXITWATCH_ABORTED' });
    const again = service.start();
    await Promise.all([stopped, killed]);
    const status = await again;
    expect(isRunning(pid)).toBe(false);
    expect(status.phase).toBe('running');
  });

  it('runs the control command before the signal', async () => {
    await using host = await SupervisorHost.open();
    const log = host.path('log');
    const script = `trap 'echo term >> ${log}; exit 0' TERM; echo up >> ${log}; while :; do sleep 0.05; done`;
    const control = { command: 'sh', args: ['-c', `echo control $MAINPID >> ${log}`] };
    await host.apply(shell('web', script, { stop: { control } }));
    const { pid } = await host.wrote('log');
    await host.supervisor.service('web').stop();
    expect(readFileSync(log, 'utf8')).toBe(`up\ncontrol ${pid}\nterm\n`);
  });

  it('a control command that ends the service is followed by no signal', async () => {
    await using host = await SupervisorHost.open();
    const wait = 'while kill -0 $MAINPID; do sleep 0.05; done';
    const control = { command: 'sh', args: ['-c', `kill -USR1 $MAINPID; ${wait}`] };
    const script = `trap 'exit 5' USR1; echo > ${host.path('up')}; while :; do sleep 0.05; done`;
    await host.apply(shell('web', script, { stop: { control } }));
    await host.wrote('up');
    await host.supervisor.service('web').stop();
    expect(await host.event('exit')).toMatchObject({ how: 'exited', exitCode: 5 });
  });

  it('a control command that takes too long is ended by a shorter grace', async () => {
    await using host = await SupervisorHost.open();
    const control = { command: 'sleep', args: ['1000'], timeoutMs: 600_000 };
    await host.apply(sleeper('web', { stop: { control } }));
    await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    const stopped = service.stop();
    await host.phase('web', 'stopping');
    await Promise.all([stopped, service.stop({ graceMs: 1 })]);
    expect(host.status('web').phase).toBe('stopped');
  });

  it('a grace counts from when it was asked for, also while a control command runs', async () => {
    await using host = await SupervisorHost.open();
    const stop = jest.spyOn(Keeper.prototype, 'stop'); // counts only
    const control = { command: 'sleep', args: ['1000'], timeoutMs: 600_000 };
    await host.apply(sleeper('web', { stop: { control, graceMs: 60_000 } }));
    await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    const stopped = service.stop();
    await host.phase('web', 'stopping');
    host.clock.advance(15_000);
    await Promise.all([stopped, service.stop({ graceMs: 10_000 })]);
    const graces = stop.mock.calls.map(([, options]) => options?.graceMs);
    expect(new Set(graces)).toEqual(new Set([10_000]));
  });
});

describe('stopAll()', () => {
  it('CS-27 stops all, and lists those that it cannot', async () => {
    await using host = await openStubborn(600_000);
    await host.apply(stubborn(host), sleeper('other'));
    await host.phase('other', 'running');
    const all = host.supervisor.stopAll();
    await host.phase('web', 'stopping');
    await host.phase('other', 'stopped');
    host.clock.advance(900_000);
    const { stopped, errors } = await arrives('stopAll()', all);
    expect(stopped).toEqual(['other']);
    expect(errors).toMatchObject([{ name: 'web', error: { code: 'ERR_EXITWATCH_TIMEOUT' } }]);
    expect(host.supervisor.services().map(({ name }) => name)).toEqual(['web', 'other']);
    await host.supervisor.stopAll({ graceMs: 1 });
  });

  it('stops for as long as this supervisor lives', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    await host.supervisor.stopAll();
    expect(host.status('web').phase).toBe('stopped');
    await host.reopen();
    await host.phase('web', 'running');
    await host.supervisor.stopAll();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
  });

  it('comes after what was to be applied before it', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    const applied = host.supervisor.apply([sleeper('web'), sleeper('other')]); // waits for others
    await host.supervisor.stopAll();
    await applied;
    host.clock.advance(100_000);
    const phases = host.supervisor.services().map(({ name, phase }) => [name, phase]);
    expect(phases).toEqual([
      ['web', 'stopped'],
      ['other', 'stopped'],
    ]);
  });
});

describe('restart()', () => {
  it('SV-18 SV-20 called many times at once makes one run, and no double', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    const all = await Promise.all([service.restart(), service.restart(), service.restart()]);
    for (const each of all) expect(each.oldPid).toBe(pid);
    expect(new Set(all.map((each) => each.newPid)).size).toBe(1);
    expect(host.of('started')).toHaveLength(2);
    expect((await host.event('exit')).decision).toMatchObject({ restart: true, reason: 'restart' });
    expect(isRunning(pid)).toBe(false);
  });

  it('CS-31 restartAll() tells the old pids and the new ones', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'), sleeper('b'), sleeper('c'));
    const before = await Promise.all(['a', 'b', 'c'].map((name) => host.phase(name, 'running')));
    await host.supervisor.service('c').stop();
    const all = await host.supervisor.restartAll();
    expect(all).toEqual(
      ['a', 'b'].map((name, at) => ({
        name,
        oldPid: before[at]?.pid,
        newPid: host.status(name).pid,
        error: null,
      })),
    );
    expect(host.status('c').phase).toBe('stopped');
  });
});

describe('pause() and resume()', () => {
  const stateOf = (pid: number | null) =>
    /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1];

  const isFrozen = (pid: number | null) => {
    const folder = join(cgroupMount() ?? '', cgroupPath(pid ?? 0) ?? '', 'cgroup.events');
    const events = existsSync(folder) ? readFileSync(folder, 'latin1') : '';
    return stateOf(pid) === 'T' || events.includes('frozen 1');
  };

  it('ES-20 stop the processes where they are, and let them go on', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    await service.pause();
    await until('it to be stopped', () => isFrozen(pid));
    expect(host.status('web')).toMatchObject({ phase: 'paused', pid });
    await service.resume();
    expect(host.status('web')).toMatchObject({ phase: 'running', pid });
    await until('it to go on', () => !isFrozen(pid));
  });

  it('ES-20 refuse every other phase, and name both', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    await expect(service.resume()).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_WRONG_PHASE',
      message: 'cannot resume "web": it is running, and must be paused',
    });
    await service.pause();
    await expect(service.pause()).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_WRONG_PHASE',
      message: 'cannot pause "web": it is paused, and must be running',
    });
    await service.stop();
    for (const move of [service.pause(), service.resume()]) {
      await expect(move).rejects.toMatchObject({ code: 'ERR_EXITWATCH_WRONG_PHASE' });
    }
  });

  it('ES-20 a paused service may end and be stopped', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    await service.pause();
    kill(pid, 'SIGKILL');
    await host.event('started', 2);
    await host.phase('web', 'running');
    await service.pause();
    await service.stop();
    expect(host.status('web').phase).toBe('stopped');
  });

  it('ES-20 outlive the supervisor', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    await host.supervisor.service('web').pause();
    await host.reopen();
    expect(host.status('web').phase).toBe('paused');
    await host.supervisor.service('web').resume();
    expect(host.status('web').phase).toBe('running');
  });
});
