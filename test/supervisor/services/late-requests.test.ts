// Lane: patient

import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';

import { Keeper } from '../../../src/supervisor/index';
import { isRunning, shell, sleeper, SupervisorHost, textOf } from '../../support/supervisor';
import { arrives, until } from '../../support/wait';
import { kill } from '../../support/kill';

afterEach(() => {
  jest.restoreAllMocks();
});

/** Its stop waits for a line in the fifo `go`. */
function slowToStop(host: SupervisorHost) {
  execFileSync('mkfifo', [host.path('go')]);
  return { control: { command: 'sh', args: ['-c', `read x < ${host.path('go')}`] } };
}

/** Ends by itself, and leaves behind something that holds up its end until `child` is killed. */
async function leavingBehind(host: SupervisorHost, count: string) {
  const child = host.path('child');
  const inner = `trap "" TERM; echo $$ > ${child}; while :; do sleep 0.05; done`;
  const script = `echo x >> ${count}; [ -e ${child} ] && exec sleep 1000; sh -c '${inner}' & until [ -s ${child} ]; do sleep 0.05; done; exit 0`;
  const spec = shell('web', script, { restart: 'on-failure', stop: { graceMs: 600_000 } });
  await host.apply(spec);
  await host.phase('web', 'stopping');
  await host.event('exit');
  const end = () => {
    kill(Number(readFileSync(child, 'utf8')), 'SIGKILL');
  };
  return { spec, end };
}

describe('a service that is created again while the old one stops', () => {
  async function createdAgain(host: SupervisorHost) {
    const stop = slowToStop(host);
    await host.apply(sleeper('web', { stop }));
    await host.phase('web', 'running');
    await host.apply();
    await host.phase('web', 'stopping');
    await host.apply(sleeper('web'));
    return () => {
      writeFileSync(host.path('go'), 'go\n');
    };
  }

  it('KB-09 is stopped if somebody stops it', async () => {
    await using host = await SupervisorHost.open();
    const go = await createdAgain(host);
    const stopped = host.supervisor.service('web').stop();
    go();
    await stopped;
    await host.phase('web', 'stopped');
    await host.reopen();
    expect(host.status('web').phase).toBe('stopped');
    expect(host.of('started')).toHaveLength(1);
  });

  it('KB-09 stays down after stopAll()', async () => {
    await using host = await SupervisorHost.open();
    const go = await createdAgain(host);
    const stopped = host.supervisor.stopAll();
    go();
    expect((await stopped).errors).toEqual([]);
    await host.phase('web', 'stopped');
    expect(host.of('started')).toHaveLength(1);
  });

  it('KB-09 can be started, which waits for the old one', async () => {
    await using host = await SupervisorHost.open();
    const go = await createdAgain(host);
    expect(host.status('web')).toMatchObject({ isRemoved: false, isCurrent: false });
    expect(host.supervisor.metrics().desired).toBe(1);
    const started = host.supervisor.service('web').start();
    go();
    expect(await arrives('its start', started)).toMatchObject({ phase: 'running' });
  });
});

describe('what is asked while a process that ended by itself is cleared away', () => {
  it('start() has another run', async () => {
    await using host = await SupervisorHost.open();
    const { end } = await leavingBehind(host, host.path('count'));
    expect((await host.event('exit')).decision.restart).toBe(false);
    const started = host.supervisor.service('web').start();
    end();
    expect(await arrives('its start', started)).toMatchObject({ phase: 'running', attempts: 1 });
  });

  it('apply() of another description runs that', async () => {
    await using host = await SupervisorHost.open();
    const { end } = await leavingBehind(host, host.path('count'));
    await host.apply(sleeper('web', { restart: 'on-failure' }));
    end();
    const { pid } = await host.phase('web', 'running');
    expect(await textOf(pid, 'cmdline')).toContain('sleep');
  });
});

describe('apply()', () => {
  it('after stopAll() starts what it changes as well', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    await host.supervisor.stopAll();
    await host.apply(sleeper('web', { args: ['2000'] }));
    await host.phase('web', 'running');
  });

  it('of another stop does not run again what has ended', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(shell('job', 'exit 0', { restart: 'never' }));
    await host.phase('job', 'ended');
    await host.apply(
      shell('job', 'exit 0', { restart: 'never', stop: { graceMs: 7 } }),
      sleeper('b'),
    );
    await host.phase('b', 'running');
    expect(host.status('job').phase).toBe('ended');
    await host.apply(shell('job', 'sleep 1000', { restart: 'never' }), sleeper('b'));
    await host.phase('job', 'running');
  });

  it('that failed half-way is not replayed over a later one', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'));
    mkdirSync(host.path('services', 'c.json')); // nothing can be written there
    await expect(host.apply(sleeper('a'), sleeper('b'), sleeper('c'))).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_STATE_DIR',
    });
    expect(existsSync(host.path('services', '+apply.json'))).toBe(true);
    rmdirSync(host.path('services', 'c.json'));
    await host.apply(sleeper('a'));
    expect(readdirSync(host.path('services'))).not.toContain('+apply.json');
    await host.reopen();
    await until('b to be gone', () => host.supervisor.services().length === 1);
    expect(host.status('a').phase).toBe('running');
  });
});

describe('a stop', () => {
  it('KB-06 that is shortened during its control command sends the signal of the service', async () => {
    await using host = await SupervisorHost.open();
    const log = host.path('log');
    const script = `trap 'echo term >> ${log}' TERM; trap 'echo usr1 >> ${log}; exit 0' USR1; echo up >> ${log}; while :; do sleep 0.05; done`;
    await host.apply(shell('web', script, { stop: { ...slowToStop(host), signal: 'SIGUSR1' } }));
    await host.wrote('log');
    const service = host.supervisor.service('web');
    const stopped = service.stop();
    await host.phase('web', 'stopping');
    await Promise.all([stopped, service.stop({ graceMs: 3000 })]);
    expect(readFileSync(log, 'utf8')).toBe('up\nusr1\n');
  });

  it('of what did not run leaves its grace to nobody', async () => {
    await using host = await SupervisorHost.open();
    const caught = host.path('caught');
    const script = `trap 'sleep 0.2; echo term > ${caught}; exit 0' TERM; echo > ${host.path('up')}; while :; do sleep 0.05; done`;
    await host.apply({ name: 'web', command: '/nowhere/web' });
    await host.phase('web', 'backoff');
    await host.supervisor.stopAll({ graceMs: 1 });
    await host.apply(shell('web', script));
    await host.wrote('up');
    await host.supervisor.service('web').stop();
    expect(readFileSync(caught, 'utf8')).toBe('term\n');
  });

  it('that an apply() overtook leaves its grace to no later one', async () => {
    await using host = await SupervisorHost.open();
    const stop = jest.spyOn(Keeper.prototype, 'stop'); // counts only
    const web = sleeper('web', { stop: { graceMs: 600_000 } });
    await host.apply(web);
    expect(host.status('web').phase).toBe('starting');
    const stopped = host.supervisor.stopAll({ graceMs: 1 });
    await host.apply(web); // before it was started; the stop may have cancelled that
    await stopped;
    const { run } = await host.phase('web', 'running');
    await host.supervisor.service('web').stop();
    expect(stop.mock.calls.at(-1)).toMatchObject([run, { signal: 'SIGTERM', graceMs: 600_000 }]);
  });

  it('until reboot outlasts a supervisor, also if it has never run since the boot', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.supervisor.service('web').stop({ until: 'reboot' });
    await host.reopen(() => {
      host.edit('web', (record) => {
        record['bootId'] = '11111111-2222-3333-4444-555555555555'; // its last start
      });
    });
    await host.apply(sleeper('web'), sleeper('other'));
    await host.phase('other', 'running');
    expect(host.status('web').phase).toBe('stopped');
  });

  it('CS-15 removes the pidfile that was written, also if the service has another one by now', async () => {
    await using host = await SupervisorHost.open();
    const [before, after] = [host.path('before.pid'), host.path('after.pid')];
    await host.apply(sleeper('web', { pidfile: before }));
    await until('the pidfile', () => existsSync(before));
    await host.apply(sleeper('web', { pidfile: after }));
    await until('the other one', () => existsSync(after));
    expect(existsSync(before)).toBe(false);
  });

  it('a start() that comes before it has begun takes it back', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const service = host.supervisor.service('web');
    const stopped = service.stop();
    await service.start();
    await expect(stopped).rejects.toMatchObject({ code: 'ERR_EXITWATCH_ABORTED' });
    expect(host.status('web')).toMatchObject({ pid, termination: { requested: false } });
  });
});

describe('a service from which the redaction hook took something', () => {
  const redact = ({ env, ...rest }: ReturnType<typeof sleeper>) => ({
    ...rest,
    ...(env === undefined ? {} : { env: {} }),
  });
  const secret = sleeper('web', { env: { PATH: '/usr/bin:/bin', TOKEN: 'hush' } });

  it('CS-28 is not stopped for a restart that nobody could finish', async () => {
    await using host = await SupervisorHost.open({ redact });
    await host.apply(secret);
    const { pid } = await host.phase('web', 'running');
    await host.reopen();
    const refusal = { code: 'ERR_EXITWATCH_WRONG_PHASE' };
    await expect(host.supervisor.service('web').restart()).rejects.toMatchObject(refusal);
    expect(await host.supervisor.restartAll()).toMatchObject([{ name: 'web', error: refusal }]);
    expect(isRunning(pid)).toBe(true);
    await host.supervisor.service('web').stop();
    const started = host.supervisor.service('web').start();
    await expect(arrives('its refusal', started)).rejects.toMatchObject(refusal);
    await host.apply(secret);
    await host.phase('web', 'running');
  });

  it('CS-28 is nowhere in the directory, also not in what the keeper stores', async () => {
    await using host = await SupervisorHost.open({ redact });
    await host.apply(secret);
    await host.phase('web', 'running');
    const found = execFileSync('sh', ['-c', `grep -rl hush ${host.stateDir} || true`]);
    expect(String(found)).toBe('');
  });

  it('is stopped as it says, not as is stored', async () => {
    const log = ({ name, command, args = [] }: ReturnType<typeof sleeper>) => ({
      name,
      command,
      args,
    });
    await using host = await SupervisorHost.open({ redact: log });
    const said = host.path('said');
    const control = { command: 'sh', args: ['-c', `echo hush > ${said}`] };
    await host.apply(sleeper('web', { stop: { control } }));
    await host.phase('web', 'running');
    await host.supervisor.service('web').stop();
    expect(readFileSync(said, 'utf8')).toBe('hush\n');
  });

  it('keeps its name', async () => {
    await using host = await SupervisorHost.open({ redact: (spec) => ({ ...spec, name: 'x' }) });
    await expect(host.apply(secret)).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_INVALID_OPTION',
    });
  });
});

it('a service does not get what a service manager has told the supervisor alone', async () => {
  process.env['NOTIFY_SOCKET'] = '/nowhere/notify';
  process.env['WATCHDOG_USEC'] = '1000';
  try {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    expect(await textOf(pid, 'environ')).not.toMatch(/NOTIFY_SOCKET|WATCHDOG_USEC/);
  } finally {
    delete process.env['NOTIFY_SOCKET'];
    delete process.env['WATCHDOG_USEC'];
  }
});

it('a control command that cannot even be started is followed by the signal', async () => {
  await using host = await SupervisorHost.open();
  const control = { command: 'true', args: ['x'.repeat(200_000)] };
  await host.apply(sleeper('web', { stop: { control } }));
  await host.phase('web', 'running');
  await host.supervisor.service('web').stop();
  expect(await host.event('warning')).toMatchObject({ error: { code: 'ERR_EXITWATCH_CONTROL' } });
});
