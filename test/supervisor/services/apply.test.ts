// Lane: patient

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';

import { kill } from '../../support/kill';
import { itAsRoot } from '../../support/privilege';
import { isRunning, sleeper, SupervisorHost, textOf } from '../../support/supervisor';
import { until } from '../../support/wait';

describe('apply()', () => {
  it('CS-23 acts at once the first time, and then once for calls that come together', async () => {
    await using host = await SupervisorHost.open();
    await host.supervisor.apply([sleeper('a')]); // nobody advances the clock
    await host.phase('a', 'running');
    let done = 0;
    const count = () => done++;
    const calls: Promise<unknown>[] = [];
    const call = (...names: string[]) => {
      calls.push(host.supervisor.apply(names.map((name) => sleeper(name))).then(count));
    };
    call('a', 'b');
    host.clock.advance(499);
    call('a', 'c');
    host.clock.advance(499);
    await Promise.resolve();
    expect(done).toBe(0);
    host.clock.advance(1);
    await Promise.all(calls);
    await host.phase('c', 'running');
    expect(host.supervisor.services().map(({ name }) => name)).toEqual(['a', 'c']);
    expect(host.of('started').map(({ service }) => service)).toEqual(['a', 'c']);
  });

  it('CS-23 waits 5 s at most', async () => {
    await using host = await SupervisorHost.open();
    await host.supervisor.apply([]);
    const first = host.supervisor.apply([sleeper('a')]);
    for (let at = 0; at < 5000; at += 250) {
      expect(host.supervisor.services()).toEqual([]);
      void host.supervisor.apply([sleeper('a')]).catch(() => undefined);
      host.clock.advance(250);
    }
    await first;
    await host.phase('a', 'running');
  });

  it('CS-24 stops what is not in it any more, also after a restart', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'), sleeper('b'));
    const { pid: a } = await host.phase('a', 'running');
    const { pid: b } = await host.phase('b', 'running');
    expect(await host.apply(sleeper('b'))).toEqual({
      ...{ added: [], changed: [], removed: ['a'], unchanged: ['b'] },
    });
    await until('a to be gone', () => host.supervisor.services().length === 1);
    expect(isRunning(a)).toBe(false);
    await host.reopen();
    await host.apply();
    await until('b to be gone', () => host.supervisor.services().length === 0);
    expect(isRunning(b)).toBe(false);
    expect(readdirSync(host.path('services'))).toEqual(['.lock']);
  });

  it('CS-25 leaves alone what is equal, and replaces what differs', async () => {
    await using host = await SupervisorHost.open();
    const cwd = host.stateDir;
    const services = () => [
      sleeper('a', { env: { PATH: '/bin:/usr/bin', A: '1' }, cwd }),
      sleeper('b'),
    ];
    await host.apply(...services());
    const { pid: a } = await host.phase('a', 'running');
    const { pid: b } = await host.phase('b', 'running');
    const { name, ...rest } = services()[0] ?? sleeper('a');
    const reordered = {
      ...Object.fromEntries(Object.entries(rest).reverse()),
      name,
    } as typeof rest & {
      name: string;
    };
    expect((await host.apply(reordered, sleeper('b'))).unchanged).toEqual(['a', 'b']);
    for (const more of [
      { args: ['2000'] },
      { cwd: '/' },
      { env: { PATH: '/bin:/usr/bin', A: '2' } },
    ]) {
      const started = host.of('started').length;
      const old = host.status('a').pid;
      expect((await host.apply(sleeper('a', more), sleeper('b'))).changed).toEqual(['a']);
      const { pid } = await host.event('started', started + 1);
      expect(isRunning(old)).toBe(false); // the old one ended first
      expect(pid).not.toBe(old);
    }
    expect(host.status('b').pid).toBe(b);
    expect(a).not.toBe(host.status('a').pid);
  });

  it('CS-25 takes over a policy without another start', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'));
    const { pid } = await host.phase('a', 'running');
    expect((await host.apply(sleeper('a', { restart: 'never' }))).changed).toEqual(['a']);
    expect(host.status('a').pid).toBe(pid);
    kill(pid, 'SIGKILL');
    await host.phase('a', 'ended');
  });

  it('CS-22 KB-18 writes nothing if nothing has changed', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'), sleeper('b'));
    await host.phase('a', 'running');
    await host.phase('b', 'running');
    const before = host.supervisor.metrics().writes;
    const { mtimeNs } = statSync(host.path('services', 'a.json'), { bigint: true });
    await host.apply(sleeper('a'), sleeper('b'));
    await host.apply(sleeper('b'), sleeper('a'));
    expect(host.supervisor.metrics().writes).toBe(before);
    await host.reopen();
    await host.apply(sleeper('a'), sleeper('b'));
    expect(host.supervisor.metrics().writes).toBe(0);
    expect(statSync(host.path('services', 'a.json'), { bigint: true }).mtimeNs).toBe(mtimeNs);
  });

  it('KB-01 KB-02 KB-03 serves the newest update, and skips those between', async () => {
    await using host = await SupervisorHost.open();
    const slow = {
      stop: { control: { command: 'sh', args: ['-c', `read x < ${host.path('go')}`] } },
    };
    execFileSync('mkfifo', [host.path('go')]);
    await host.apply(sleeper('a', { args: ['1000'], ...slow }), sleeper('other'));
    const { pid } = await host.phase('a', 'running');
    await host.apply(sleeper('a', { args: ['1001'], ...slow }), sleeper('other'));
    await host.phase('a', 'stopping');
    expect(host.status('a').isCurrent).toBe(false);
    await host.apply(sleeper('a', { args: ['1002'] }), sleeper('other'));
    await host.apply(sleeper('a', { args: ['1003'] }), sleeper('other', { args: ['7'] }));
    await until('the other one, which does not wait', () => host.of('started').length === 3);
    expect(isRunning(pid)).toBe(true);
    host.clock.advance(123);
    expect(host.supervisor.metrics().oldestRequestMs).toBeGreaterThanOrEqual(123);
    writeFileSync(host.path('go'), 'go\n');
    await until('the newest', () => host.of('started').length === 4);
    const { pid: now } = await host.phase('a', 'running');
    expect(await textOf(now, 'cmdline')).toBe('sleep\x001003\x00');
    expect(host.status('a').isCurrent).toBe(true);
    expect(host.supervisor.metrics().longestLatencyMs).toBeGreaterThanOrEqual(623);
    expect(host.supervisor.metrics().oldestRequestMs).toBeNull();
  });

  it('KB-09 KB-17 a service that is created again waits for the old one, and knows nothing of it', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'));
    const { run, pid } = await host.phase('a', 'running');
    kill(pid, 'SIGKILL');
    await host.event('started', 2);
    const { pid: second } = await host.phase('a', 'running');
    await host.apply();
    await host.apply(sleeper('a'));
    const { pid: third } = await host.event('started', 3);
    expect(isRunning(second)).toBe(false);
    await host.phase('a', 'running');
    expect(host.status('a')).toMatchObject({ pid: third, restarts: 0, lastEnd: null });
    expect(host.status('a').run?.split('-')[0]).not.toBe(run?.split('-')[0]);
  });

  it('KB-09 remembers across a restart that it is created again', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'));
    const { run } = await host.phase('a', 'running');
    await host.apply();
    const again = host.apply(sleeper('a', { args: ['2000'] }));
    await again;
    await host.reopen();
    const { pid } = await until('the new one', () => {
      const status = host.supervisor.services().find(({ name }) => name === 'a');
      return status?.phase === 'running' && status.run !== run ? status : null;
    });
    expect(await textOf(pid, 'cmdline')).toBe('sleep\x002000\x00');
  });

  it('KB-11 KB-16 a removed service cannot be started, and has never started if it had not', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'));
    const service = host.supervisor.service('a');
    await host.apply();
    await expect(service.start()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_NO_SERVICE' });
    await until('it to be gone', () => host.supervisor.services().length === 0);
    expect(() => service.status()).toThrow('there is no service "a"');
    for (const { pid } of host.of('started')) expect(isRunning(pid)).toBe(false);
  });

  it('KB-26 has its metrics as plain numbers', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'), sleeper('b'), { name: 'c', command: '/nowhere/c' });
    const { pid } = await host.phase('a', 'running');
    await host.phase('b', 'running');
    await host.phase('c', 'backoff');
    kill(pid, 'SIGKILL');
    await host.event('started', 3);
    await host.supervisor.service('b').stop();
    expect(host.supervisor.metrics()).toMatchObject({
      desired: 3,
      active: 1,
      phases: { running: 1, stopped: 1, backoff: 1, starting: 0 },
      restarts: { 'not-asked': 1, 'start-failed': 2 }, // the third one is only planned
      orphaned: 0,
    });
  });

  it('SV-17 an end that comes late does not touch the present run', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'));
    await host.phase('a', 'running');
    for (let round = 0; round < 5; round++) await host.supervisor.service('a').restart();
    expect(host.of('started')).toHaveLength(6);
    expect(new Set(host.of('exit').map(({ run }) => run)).size).toBe(5);
    expect(host.status('a')).toMatchObject({ phase: 'running', restarts: 5 });
  });
});

describe('a service that is not well described', () => {
  it.each([
    ['name', { name: '.hidden' }],
    ['name', { name: 'a/b' }],
    ['name', { name: 'x'.repeat(76) }],
    ['command', { command: '' }],
    ['args', { args: [1] }],
    ['env', { env: { A: 1 } }],
    ['env', { env: { 'A=B': '1' } }],
    ['cwd', { cwd: 'relative' }],
    ['umask', { umask: 0o1000 }],
    ['openFiles', { openFiles: 0 }],
    ['user', { user: 'nobody-has-this-name' }],
    ['group', { group: 'nobody-has-this-name' }],
    ['logs', { logs: { file: '/a', stdout: '/b' } }],
    ['restart', { restart: 'sometimes' }],
    ['successExitCodes', { successExitCodes: [256] }],
    ['askedBy', { askedBy: [{ uid: 0, unit: 'x' }] }],
    ['askedBy', { askedBy: [{}] }],
    ['onUnknown', { onUnknown: 'guess' }],
    ['backoff', { backoff: { freeAttempts: -1 } }],
    ['stop.graceMs', { stop: { graceMs: -1 } }],
    ['signal', { stop: { signal: 'TERM' } }],
    ['stop.control', { stop: { control: { command: '' } } }],
    ['ready', { ready: {} }],
    ['ready', { ready: { notify: true, aliveMs: 1 } }],
    ['ready.http', { ready: { http: 'ftp://x' } }],
    ['ready.tcp.port', { ready: { tcp: { port: 0 } } }],
    ['watchdog.withinMs', { watchdog: { withinMs: 0 } }],
    ['pidfile', { pidfile: 'relative.pid' }],
    ['misspelt', { misspelt: 1 }],
    ['plain JSON', { env: { A: () => 1 } }],
    ['arg must not contain a NUL', { args: ['a\0b'] }],
    ['env must not contain a NUL', { env: { A: '\0' } }],
    ['file must not contain a NUL', { command: 'a\0' }],
  ])('is refused because of its %s, and nothing is touched: %j', async (part, more) => {
    await using host = await SupervisorHost.open();
    const bad = { ...sleeper('bad'), ...more } as never;
    await expect(host.supervisor.apply([sleeper('good'), bad])).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_INVALID_OPTION',
      message: expect.stringContaining(part) as string,
    });
    expect(host.supervisor.services()).toEqual([]);
    expect(readdirSync(host.path('services'))).toEqual(['.lock']);
  });

  it('is refused if there are two of one name', async () => {
    await using host = await SupervisorHost.open();
    await expect(host.supervisor.apply([sleeper('a'), sleeper('a')])).rejects.toThrow(
      'there are two services "a"',
    );
  });

  it('CS-29 has separate files for its output', async () => {
    await using host = await SupervisorHost.open();
    const logs = { stdout: host.path('out'), stderr: host.path('err') };
    const script = 'echo to out; echo to err >&2';
    await host.apply({ name: 'a', command: 'sh', args: ['-c', script], logs, restart: 'never' });
    await host.phase('a', 'ended');
    expect(readFileSync(logs.stdout, 'utf8')).toBe('to out\n');
    expect(readFileSync(logs.stderr, 'utf8')).toBe('to err\n');
  });

  itAsRoot('CS-30 is not run as root if it must not, and says why', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a', { allowRoot: false }), sleeper('b'));
    await host.phase('b', 'running');
    const { lastError } = await host.phase('a', 'backoff');
    expect(lastError).toMatch(/root/);
  });
});
