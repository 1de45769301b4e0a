// Lane: patient

import { readdirSync, readFileSync, statSync } from 'node:fs';

import { realClock } from '../../../src/supervisor/services/clock';
import { kill } from '../../support/kill';
import { isRunning, shell, sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';

const withoutKeeper = true;

/** The shells whose script has this text. */
const processesWithText = (text: string) =>
  readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(text);
    } catch {
      return false;
    }
  });

const stateOf = (pid: string) =>
  /^\d+ \(.*\) (.)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1] ?? '';

/** Also if it waits (`D`) for a child of vfork(2) that was stopped before its exec. */
function isStopped(pid: string): boolean {
  const state = stateOf(pid);
  if (state !== 'D') return 'TZ'.includes(state);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').match(/\d+/g) ?? [];
  return children.some((child) => stateOf(child) === 'T');
}

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
    kill(pid, 'SIGUSR1');
    await host.event('started', 3);
    await host.phase('job', 'ended');
    expect(host.status('job').lastEnd).toMatchObject({ how: 'exited', exitCode: 3 });
    expect(host.status('web').lastEnd).toMatchObject({ how: 'killed', signal: 'SIGUSR1' });
    const { pid: next } = await host.phase('web', 'running');
    await host.supervisor.service('web').stop();
    expect(isRunning(next)).toBe(false);
  });

  it('SV-08 do not take a step of the wall clock for a long life', async () => {
    // Without a clock of the test's: what counts is what the children are said to have lived.
    await using host = await SupervisorHost.open({ withoutKeeper, clock: realClock });
    const wall = Date.now.bind(Date);
    let hours = 0;
    const stepped = jest.spyOn(Date, 'now').mockImplementation(() => wall() + hours * 3_600_000);
    try {
      await host.apply(sleeper('web'));
      for (let round = 1; round <= 3; round++) {
        const { pid } = await host.event('started', round);
        hours++;
        kill(pid, 'SIGKILL');
      }
      expect(await host.event('backoff')).toMatchObject({ attempt: 4, delayMs: 2000 });
    } finally {
      stepped.mockRestore();
    }
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
    kill(pid, 'SIGKILL');
    const exit = await host.event('exit');
    expect(exit.exitCode).toBeNull();
    await host.event('started', 2);
  });

  it('SV-02 starts again what has died in the meantime', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    await host.reopen(async () => {
      kill(pid, 'SIGKILL');
      await until('its death', () => !isRunning(pid));
    });
    expect(await host.event('exit')).toMatchObject({ how: 'unknown' });
    await host.event('started', 2);
  });

  it('pauses and resumes all of a service', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    const count = host.path('count');
    const script = `setsid sh -c 'while :; do echo >> ${count}; sleep 0.01; done' & wait`;
    await host.apply(shell('web', script));
    const size = () => statSync(count, { throwIfNoEntry: false })?.size ?? 0;
    await until('it to count', () => size() > 0);
    await host.supervisor.service('web').pause();
    const word = `echo >> ${count}`;
    const counting = processesWithText(word);
    expect(counting.length).toBeGreaterThan(0);
    await until('all of it to be stopped', () => counting.every(isStopped));
    await host.supervisor.service('web').resume();
    const before = size();
    await until('it to go on', () => size() > before);
    await host.supervisor.service('web').stop();
    expect(processesWithText(word)).toEqual([]);
  });

  it('does not wait for the grace of a service that is paused', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    const script = `trap 'exit 3' TERM; echo > ${host.path('up')}; while :; do sleep 0.05; done`;
    await host.apply(shell('web', script));
    await host.wrote('up');
    await host.supervisor.service('web').pause();
    await host.supervisor.service('web').stop({ graceMs: 600_000 });
    expect(host.status('web').lastEnd).toMatchObject({ how: 'exited', exitCode: 3 });
  });

  it('refuses what only a keeper can do', async () => {
    await using host = await SupervisorHost.open({ withoutKeeper });
    await host.apply(sleeper('web', { umask: 0o077 }));
    const { lastError } = await host.phase('web', 'backoff');
    expect(lastError).toBe('umask requires a keeper');
  });
});
