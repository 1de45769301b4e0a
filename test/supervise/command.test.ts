// Lane: patient

import { appendFileSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import type { EndedRun } from '../../src/supervise/ends/service-story';

import { kill } from '../support/kill';
import { callWith, exitwatch, MAIN } from '../support/command';
import { LineProcess } from '../support/programs';
import { isRunning } from '../support/supervisor';
import { SuperviseHost } from '../support/supervise';
import { until } from '../support/wait';

const sleeper = (name: string, more: object = {}) => ({
  ...{ name, command: 'sleep', args: ['1000'] },
  ...more,
});

const shell = (name: string, script: string, more: object = {}) => ({
  ...{ name, command: 'sh', args: ['-c', script] },
  ...more,
});

describe('exitwatch supervise', () => {
  it('keeps services running, and tells who ended one', async () => {
    await using host = await SuperviseHost.of(sleeper('web'), sleeper('db'));
    const { pid } = await host.phase('web', 'running');
    kill(pid, 'SIGTERM');
    const again = await until('another run', async () => {
      const found = await host.listed('web');
      return found.pid !== null && found.pid !== pid ? found : null;
    });
    expect(again).toMatchObject({
      ...{ phase: 'running', restarts: 1 },
      lastEnd: { reason: 'not-asked', signal: 'SIGTERM' },
    });
    const { code, lines } = await host.service('why', 'web');
    expect(code).toBe(0);
    expect(lines[0]).toMatch(
      /^20\S+Z {2}web ended: killed SIGTERM by .*; it was started again, because it got/,
    );
    expect(lines.some((line) => /^ {2}process {2}\d+ sleep, uid /.test(line))).toBe(true);
    expect(lines.at(-1)).toMatch(/^web is running for \S+, pid \d+, ready$/);
  });

  it('leaves services running when it ends or dies, and takes them over', async () => {
    await using host = await SuperviseHost.of(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    expect(await host.end()).toBe(0);
    expect(host.of('ended')).toEqual([{ event: 'ended', running: 1 }]);
    expect(isRunning(pid)).toBe(true);
    await host.start();
    expect(await host.listed('web')).toMatchObject({ pid, phase: 'running', restarts: 0 });
    await host.crash();
    expect(isRunning(pid)).toBe(true);
    await host.start();
    expect(await host.listed('web')).toMatchObject({ pid, restarts: 0 });
    expect(host.of('adopted').map(({ pid: adopted }) => adopted)).toEqual([pid, pid]);
  });

  it('does not take what had ended before it was asked for its own doing, and knows when it ended', async () => {
    await using host = new SuperviseHost();
    host.write(sleeper('web'));
    // The signal trace would know better.
    await host.start(['setpriv', '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs']);
    const { pid } = await host.phase('web', 'running');
    await host.process?.stop();
    kill(pid ?? 0, 'SIGKILL');
    await until('the service to be gone', () => !isRunning(pid));
    const goneAt = Date.now();
    await setTimeout(1000);
    const stopping = host.service('stop', 'web');
    await setTimeout(500); // it has asked
    host.process?.child.kill('SIGCONT');
    await stopping;
    const { lines } = await host.service('why', 'web', '--json');
    const [story] = lines.map((line) => JSON.parse(line) as EndedRun);
    expect(story).toMatchObject({ how: 'killed', signal: 'SIGKILL', decision: { intent: null } });
    const exitedAt = new Date(story?.exitedAt ?? NaN).getTime();
    expect(exitedAt).toBeGreaterThan(goneAt - 500);
    expect(exitedAt).toBeLessThan(goneAt + 500);
    const [head] = (await host.service('why', 'web')).lines;
    expect(head).toMatch(/web ended: killed SIGKILL by somebody who was not seen; it was /);
  });

  it('knows how a service ended that ended while it was away', async () => {
    await using host = await SuperviseHost.of(
      shell('job', 'while [ ! -e go ]; do sleep 0.05; done; exit 7', { restart: 'never' }),
    );
    await host.phase('job', 'running');
    await host.crash();
    writeFileSync(host.path('go'), '');
    await host.start();
    await host.phase('job', 'ended');
    const { lines } = await host.service('why', 'job', '-n', '1');
    expect(lines[0]).toContain(
      'job ended: exited 7; it was not started again, because it exited with 7; it runs once',
    );
  });

  it('stops with all services with --stop, in the reverse order', async () => {
    await using host = new SuperviseHost(['--stop']);
    host.write(sleeper('db'), sleeper('web', { after: ['db'] }));
    await host.start();
    const { pid } = await host.phase('web', 'running');
    expect(await host.end()).toBe(0);
    expect(isRunning(pid)).toBe(false);
    expect(host.of('exit').map(({ service }) => service)).toEqual(['web', 'db']);
    expect(host.of('ended')).toEqual([{ event: 'ended', running: 0 }]);
  });

  it('ends with its main service, and with its status', async () => {
    await using host = await SuperviseHost.of(
      sleeper('side'),
      shell('app', 'while [ ! -e go ]; do sleep 0.05; done; exit 7', {
        main: true,
        after: ['side'],
      }),
    );
    const { pid } = await host.phase('side', 'running');
    await host.phase('app', 'running');
    writeFileSync(host.path('go'), '');
    expect(await host.process?.ended).toBe(7);
    expect(isRunning(pid)).toBe(false);
  });

  it('ends with 127 if its main service cannot be started', async () => {
    await using host = await SuperviseHost.of({ name: 'app', command: '/no/such', main: true });
    expect(await host.process?.ended).toBe(127);
    expect(host.of('warning')[0]).toMatchObject({
      service: 'app',
      code: 'ERR_EXITWATCH_START_FAILED',
    });
  });

  it('passes signals on to its main service', async () => {
    const script =
      'trap "echo hup > hup" HUP; trap "exit 3" TERM; echo > up; while :; do sleep 0.05; done';
    await using host = await SuperviseHost.of(shell('app', script, { main: true }));
    await until('it to listen', () => existsSync(host.path('up')));
    host.process?.child.kill('SIGHUP');
    await until('it to get the signal', () => existsSync(host.path('hup')));
    expect(await host.end()).toBe(3);
  });

  it('refuses a configuration that cannot be used, if there was nothing before', async () => {
    await using host = new SuperviseHost();
    writeFileSync(host.config, '{ "services": [\n{ "name": "a" } ] }');
    const command = exitwatch('supervise', host.config, '--state-dir', host.stateDir);
    expect(await command.ended).toBe(2);
    expect(command.stderr).toBe(
      `exitwatch: ${host.config}:2: services[0]: service "a": command must be a path or a name\n`,
    );
    host.write();
  });

  it('goes on with what ran before if its configuration cannot be used', async () => {
    await using host = await SuperviseHost.of(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    await host.end();
    writeFileSync(host.config, '{');
    await host.start();
    expect(host.of('warning')).toMatchObject([{ code: 'ERR_EXITWATCH_CONFIG' }]);
    const { lines, stderr } = await host.service('list');
    expect(lines[1]).toContain(String(pid));
    expect(stderr).toContain('what runs is not the configuration: ');
    const applied = await host.service('apply');
    expect(applied.code).toBe(2);
    expect(applied.stderr).toContain('it is no JSON: a key or } is expected in column 2');
    kill(pid, 'SIGKILL');
    await until('another run', async () => (await host.listed('web')).restarts === 1);
  });

  it('says at once where it cannot keep anything', async () => {
    await using host = await SuperviseHost.of(sleeper('web'));
    const command = exitwatch('supervise', host.config, '--state-dir', '/proc/nowhere');
    expect(await command.ended).toBe(125);
    expect(command.stderr).toMatch(/^exitwatch: \/proc\/nowhere: no such file or directory\n$/);
  });

  it('refuses a second one', async () => {
    await using host = await SuperviseHost.of(sleeper('web'));
    const second = exitwatch('supervise', host.config, '--state-dir', host.stateDir);
    expect(await second.ended).toBe(125);
    expect(second.stderr).toContain('another supervisor owns');
    expect(await host.listed('web')).toMatchObject({ restarts: 0 });
  });

  it('refuses a second one without the addon, too', async () => {
    await using host = new SuperviseHost();
    host.write(sleeper('web'));
    const preload = host.path('without-addon.cjs');
    writeFileSync(
      preload,
      `const Module = require('node:module');
      const load = Module._load;
      const none = () => { throw new Error('no binary'); };
      Module._load = (name, ...rest) => (name === 'bindings' ? none : load(name, ...rest));`,
    );
    const without = ['env', `NODE_OPTIONS=--require=${preload}`];
    await host.start(without);
    const { pid } = await host.phase('web', 'running');
    for (const before of [without, []]) {
      const args = ['supervise', host.config, '--state-dir', host.stateDir];
      const { code, stderr } = await callWith(before, ...args);
      expect({ code, stderr }).toEqual({
        code: 125,
        stderr: expect.stringContaining('owns') as string,
      });
    }
    expect(await host.listed('web')).toMatchObject({ pid, restarts: 0 });
  });
});

describe('exitwatch service', () => {
  it('applies what has changed in the configuration, and can show that before', async () => {
    await using host = await SuperviseHost.of(sleeper('a'), sleeper('b'), sleeper('c'));
    const { pid: a } = await host.phase('a', 'running');
    const { pid: b } = await host.phase('b', 'running');
    host.write(
      sleeper('a', { stop: { graceMs: 1 } }),
      sleeper('b', { extraEnv: { SECRET: 'x' } }),
      sleeper('d'),
    );
    const dry = await host.service('apply', '--dry-run');
    const changes = [
      ...['+ d', '- c', '~ a: stop (goes on)', '~ b: extraEnv.SECRET (is stopped and started)'],
    ];
    expect(dry.lines).toEqual(['what would change:', ...changes]);
    expect((await host.list()).map(({ name, pid }) => [name, pid])).toEqual([
      ...[
        ['a', a],
        ['b', b],
        ['c', expect.any(Number)],
      ],
    ]);
    expect((await host.service('apply')).lines).toEqual(changes);
    await until('c to be gone', async () => (await host.list()).every(({ name }) => name !== 'c'));
    await host.phase('d', 'running');
    const after = await until('b to be replaced', async () => {
      const found = await host.listed('b');
      return found.phase === 'running' && found.pid !== b ? found : null;
    });
    expect(after.lastEnd?.reason).toBe('restart');
    expect((await host.listed('a')).pid).toBe(a);
    expect((await host.service('apply')).lines).toEqual(['nothing changes', '  3 unchanged']);
    host.process?.child.kill('SIGHUP');
    await host.printed('applied', 3);
  });

  it('stops, starts and restarts, and has on record who asked for it', async () => {
    await using host = await SuperviseHost.of(sleeper('web'), sleeper('db'));
    const { pid } = await host.phase('web', 'running');
    expect((await host.service('stop', 'web')).lines).toEqual(['web is stopped']);
    expect(isRunning(pid)).toBe(false);
    const { lastEnd } = await host.listed('web');
    expect(lastEnd?.because).toMatch(
      new RegExp(
        `^we were asked to stop it: "exitwatch service stop", asked by uid ${process.geteuid?.()} < ${process.pid} `,
      ),
    );
    await host.crash();
    await host.start();
    expect(await host.listed('web')).toMatchObject({ phase: 'stopped', pid: null });
    const { lines } = await host.service('start', '--all');
    expect(lines).toEqual([
      expect.stringMatching(/^web is running, pid \d+$/),
      expect.stringMatching(/^db is running, pid \d+$/),
    ]);
    const { pid: second } = await host.listed('web');
    await host.service('restart', 'web');
    expect((await host.listed('web')).pid).not.toBe(second);
  });

  it('restarts with --all neither what was stopped nor what has ended for good', async () => {
    const job = { name: 'job', command: 'true', restart: 'never' } as const;
    await using host = await SuperviseHost.of(sleeper('web'), sleeper('off'), job);
    const { pid } = await host.phase('web', 'running');
    await host.phase('job', 'ended');
    await host.service('stop', 'off');
    const { code, lines } = await host.service('restart', '--all');
    expect({ code, lines }).toEqual({
      code: 0,
      lines: [expect.stringMatching(/^web is running, pid \d+$/)],
    });
    expect((await host.listed('web')).pid).not.toBe(pid);
    expect(await host.listed('off')).toMatchObject({ phase: 'stopped' });
    expect(await host.listed('job')).toMatchObject({ phase: 'ended' });
    expect(host.of('started').filter(({ service }) => service === 'job')).toHaveLength(1);
  });

  it('stops until the supervisor is restarted', async () => {
    await using host = await SuperviseHost.of(sleeper('web'), sleeper('off'));
    await host.phase('web', 'running');
    await host.service('stop', 'off');
    const { lines } = await host.service('stop', '--all', '--until-restart');
    expect(lines).toEqual(['web is stopped', 'off is stopped']);
    expect((await host.service('stop', 'web', '--until-restart', '--until-reboot')).code).toBe(2);
    await host.crash();
    await host.start();
    await host.phase('web', 'running');
    expect(await host.listed('off')).toMatchObject({ phase: 'stopped' });
  });

  it('changes nothing if one of the names is wrong', async () => {
    await using host = await SuperviseHost.of(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const { code, stderr } = await host.service('stop', 'web', 'wob');
    expect({ code, stderr }).toEqual({
      code: 127,
      stderr: 'exitwatch: there is no service "wob"\n',
    });
    expect(await host.listed('web')).toMatchObject({ pid, phase: 'running' });
    for (const args of [['stop'], ['stop', 'web', '--all'], ['why'], ['logs', 'a', 'b']]) {
      expect((await host.service(...args)).code).toBe(2);
    }
  });

  it('says so if nobody answers', async () => {
    await using host = new SuperviseHost();
    const { code, stderr } = await host.service('list');
    expect(code).toBe(125);
    expect(stderr).toMatch(/^exitwatch: no supervisor runs in ".*"; start "exitwatch supervise"/);
  });

  it('prints logs, and goes on over a rotation', async () => {
    await using host = new SuperviseHost();
    writeFileSync(host.path('lines'), '');
    host.write(
      shell('web', 'exec tail -n +1 -s 0.01 -f lines', {
        logs: { file: 'web.log', maxBytes: 2000 },
      }),
      sleeper('quiet', { logs: {} }),
    );
    await host.start();
    await host.phase('web', 'running');
    const write = (from: number, to: number) => {
      for (let at = from; at < to; at++) appendFileSync(host.path('lines'), `line ${at}\n`);
    };
    write(0, 100);
    await until('the lines to be logged', () => host.read('web.log').endsWith('line 99\n'));
    expect((await host.service('logs', 'web', '-n', '2')).lines).toEqual(['line 98', 'line 99']);
    const follower = exitwatch(
      'service',
      'logs',
      'web',
      '-f',
      '-n',
      '1',
      '--state-dir',
      host.stateDir,
    );
    expect(await follower.line()).toBe('line 99');
    write(100, 500); // more than a file may have
    for (let at = 100; at < 500; at++) expect(await follower.line()).toBe(`line ${at}`);
    expect(existsSync(host.path('web.log.1'))).toBe(true);
    follower.child.kill('SIGINT');
    expect(await follower.ended).toBe(0);
    const quiet = await host.service('logs', 'quiet');
    expect(quiet).toMatchObject({ code: 125, lines: [] });
  });

  it('shows all services in 80 columns', async () => {
    await using host = await SuperviseHost.of(
      sleeper('web', { after: ['db'] }),
      sleeper('db', { ready: { exec: { command: 'false' } } }),
      { name: 'broken', command: '/no/such/program' },
    );
    await host.phase('db', 'running');
    await host.phase('broken', 'backoff');
    const { lines } = await host.service('list');
    expect(lines[0]).toMatch(/^NAME +PHASE +READY +PID +UPTIME +STARTS +LAST END$/);
    expect(lines.find((line) => line.startsWith('web'))).toContain('starting (after db)');
    expect(lines.find((line) => line.startsWith('db'))).toMatch(/running +no/);
    expect(lines.join('\n')).toMatch(/could not be started.*: cannot start "\/no\/such\/program"/);
    const command = [process.execPath, MAIN, 'service', 'list', '--state-dir', host.stateDir];
    const terminal = new LineProcess('script', [
      ...['-qec', `stty cols 80; ${command.join(' ')}`, '/dev/null'],
    ]);
    const rows = await terminal.rest();
    expect(rows.length).toBeGreaterThan(lines.length);
    const table = rows.filter((row) => !row.startsWith('exitwatch: degraded: '));
    for (const row of table) expect(row.trimEnd().length).toBeLessThanOrEqual(80);
  });

  it('lets nobody else in', async () => {
    await using host = await SuperviseHost.of(sleeper('web'));
    expect(statSync(host.own('control.sock')).mode & 0o777).toBe(0o600);
  });
});
