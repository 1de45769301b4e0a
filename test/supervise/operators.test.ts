// Lane: patient

// What people ask of services, and what is on record of it afterwards.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';

import { whyUnwritable } from '../../src/supervise/log-check';

import { kill } from '../support/kill';
import { itAsRoot } from '../support/privilege';
import { type Described, SuperviseHost } from '../support/supervise';
import { until } from '../support/wait';

const sleeper = (name: string, more: object = {}): Described => ({
  ...{ name, command: 'sleep', args: ['1000'] },
  ...more,
});

const shell = (name: string, script: string, more: object = {}): Described => ({
  ...{ name, command: 'sh', args: ['-c', script] },
  ...more,
});

const why = async (host: SuperviseHost, name: string) =>
  (await host.service('why', name)).lines.join('\n');

/** Ends all that this boot has, and starts it in another one. */
async function reboot(host: SuperviseHost): Promise<void> {
  const pids = (await host.list()).map(({ pid }) => pid);
  await host.crash();
  for (const pid of [...host.keepers(), ...pids]) if (pid !== null) kill(pid, 'SIGKILL');
  await host.startInAnotherBoot();
}

itAsRoot('a stop that lasts is not weakened by one of all services until the reboot', async () => {
  await using host = await SuperviseHost.of(sleeper('web'), sleeper('db'));
  await host.phase('web', 'running');
  await host.phase('db', 'running');
  await host.service('stop', 'web');
  await host.service('stop', '--all', '--until-reboot');
  expect(await why(host, 'web')).toMatch(/web is stopped since \S+Z: "exitwatch service stop"/);
  expect(await why(host, 'db')).toMatch(/db is stopped since \S+Z, until the next boot: "exit/);
  await reboot(host);
  await host.phase('db', 'running');
  expect(await host.listed('web')).toMatchObject({ phase: 'stopped' });
});

itAsRoot('a configuration that changed over a reboot is the only one that runs', async () => {
  await using host = new SuperviseHost();
  const note = (name: string, word: string) =>
    shell(name, `echo ${word} >> ${host.path('starts')}; exec sleep 1000`);
  const starts = () => readFileSync(host.path('starts'), 'utf8').trim().split('\n').sort();
  host.write(note('web', 'first'), note('old', 'old'));
  await host.start();
  await until('both to run', () => existsSync(host.path('starts')) && starts().length === 2);
  host.write(note('web', 'second'));
  await reboot(host);
  await until('the new one to run', () => starts().includes('second'));
  await until('the old one to be gone', async () => (await host.list()).length === 1);
  expect(starts()).toEqual(['first', 'old', 'second']);
});

it('what somebody else has asked for is not said of what follows', async () => {
  await using host = await SuperviseHost.of(sleeper('web'));
  await host.phase('web', 'running');
  await host.service('restart', 'web');
  const restarted = /we were asked to restart it: "exitwatch service restart", asked by uid/;
  expect(await why(host, 'web')).toMatch(restarted);
  host.write(sleeper('web', { extraEnv: { A: 'b' } }));
  await host.service('apply');
  await host.printed('exit', 2);
  await host.phase('web', 'running');
  const ends = (await host.service('why', 'web')).lines.filter((line) => /Z {2}web/.test(line));
  expect(ends).toEqual([
    expect.stringMatching(restarted) as string,
    expect.stringMatching(/web ended: killed SIGTERM; its description has changed$/) as string,
  ]);
});

it('a stop of what does not run is on record', async () => {
  await using host = await SuperviseHost.of(
    shell('web', 'exit 1', { backoff: { freeAttempts: 0, firstMs: 600_000, capMs: 600_000 } }),
  );
  await host.phase('web', 'backoff');
  await host.service('stop', 'web');
  expect(await why(host, 'web')).toMatch(
    /web is stopped since \S+Z: "exitwatch service stop", asked/,
  );
  expect(host.of('stopped').at(-1)).toMatchObject({
    because: expect.stringMatching(/^we were asked to stop it: "exitwatch service stop"/) as string,
  });
});

it('a start has a limit, and says what it waits for', async () => {
  await using host = await SuperviseHost.of(
    sleeper('db', { ready: { exec: { command: './check.sh' } } }),
    sleeper('web', { after: ['db'] }),
  );
  await host.phase('db', 'running');
  const { code, stderr } = await host.service('start', 'web', '--timeout', '100ms');
  expect({ code, stderr }).toEqual({
    code: 124,
    stderr:
      'exitwatch: web: it does not run after 100 ms, but is starting after db; that goes on\n',
  });
  await until('a check of it', async () => (await why(host, 'db')).includes(', not ready: '));
  expect(await why(host, 'db')).toContain('check.sh could not be started: no such file');
  writeFileSync(host.path('check.sh'), '#!/bin/sh\nexit 3\n');
  chmodSync(host.path('check.sh'), 0o755);
  await until('another one', async () => (await why(host, 'db')).includes('exited with 3'));
  writeFileSync(host.path('check.sh'), '#!/bin/sh\nexit 0\n');
  await host.phase('web', 'running');
  expect(await why(host, 'db')).toMatch(/, ready$/);
});

it('a grace that is asked for is that of the whole stop', async () => {
  await using host = await SuperviseHost.of(
    shell('web', 'trap "" TERM; while :; do sleep 0.05; done', {
      stop: { graceMs: 100_000, control: { command: 'sleep', args: ['1000'], timeoutMs: 100_000 } },
    }),
  );
  await host.phase('web', 'running');
  expect((await host.service('stop', 'web', '--grace', '200ms')).lines).toEqual(['web is stopped']);
  expect(host.of('warning')).toMatchObject([
    { message: 'the control command took longer than 100 ms' },
  ]);
  expect(await why(host, 'web')).toContain('web ended: killed SIGKILL');
});

it('starts that failed alike are told as one, and do not displace an end', async () => {
  await using host = new SuperviseHost();
  const program = host.path('program');
  writeFileSync(program, '#!/bin/sh\nexec sleep 1000\n');
  chmodSync(program, 0o755);
  host.write({ name: 'web', command: program, backoff: { freeAttempts: 100, firstMs: 1 } });
  await host.start();
  const { pid } = await host.phase('web', 'running');
  chmodSync(program, 0o644);
  kill(pid, 'SIGKILL');
  await until('it to have failed often', () => host.of('warning').length > 25);
  const lines = (await host.service('why', 'web')).lines.filter((line) => /^\S+Z {2}/.test(line));
  expect(lines).toEqual([
    expect.stringContaining('web ended: killed SIGKILL by') as string,
    expect.stringMatching(
      /web could not be started \(\d+ times\), since \S+Z: cannot start/,
    ) as string,
  ]);
});

it('what has happened to a service outlives the supervisor, but for what a crash has torn', async () => {
  await using host = new SuperviseHost();
  const runs = host.path('runs');
  const script = 'echo >> "$0"; n=$(wc -l < "$0"); [ $n -lt 150 ] || exec sleep 1000; exit $n';
  const backoff = { freeAttempts: 1000, firstMs: 1 };
  host.write({ name: 'web', command: 'sh', args: ['-c', script, runs], backoff });
  await host.start();
  await host.printed('exit', 149);
  await host.phase('web', 'running');
  const codes = async () => {
    const { lines } = await host.service('why', 'web', '-n', '20', '--json');
    const told = lines.map((line) => JSON.parse(line) as { event: string; exitCode?: number });
    return told.filter(({ event }) => event === 'exit').map(({ exitCode }) => exitCode);
  };
  const last20 = Array.from({ length: 20 }, (_, at) => 130 + at);
  expect(await codes()).toEqual(last20);
  await host.crash();
  const file = host.own('ends', 'web.json');
  const text = readFileSync(file, 'utf8');
  expect(text.trim().split('\n').length).toBeLessThanOrEqual(120); // it does not grow for ever
  truncateSync(file, text.length - 10);
  await host.start();
  const { pid } = await host.phase('web', 'running');
  expect((await codes()).at(-1)).toBe(148);
  kill(pid ?? 0, 'SIGKILL');
  await host.printed('exit', 150);
  await host.crash();
  await host.start();
  expect((await codes()).slice(-2)).toEqual([148, null]);
});

it('nothing starts while all are being stopped', async () => {
  await using host = new SuperviseHost(['--stop']);
  const slow = `trap "while [ ! -e ${host.path('go')} ]; do sleep 0.05; done; exit" TERM`;
  host.write(
    shell('slow', `${slow}; echo > ${host.path('up')}; while :; do sleep 0.05; done`, {
      stop: { graceMs: 60_000 },
    }),
    sleeper('web'),
  );
  await host.start();
  await until('it to run', () => existsSync(host.path('up')));
  host.process?.child.kill('SIGTERM');
  await host.phase('web', 'stopped');
  const refusal = 'the supervisor is ending: nothing is started';
  expect((await host.service('start', 'web')).stderr).toBe(`exitwatch: web: ${refusal}\n`);
  expect((await host.service('apply')).stderr).toBe(`exitwatch: ${refusal}\n`);
  writeFileSync(host.path('go'), '');
  expect(await host.process?.ended).toBe(0);
  expect(host.of('ended')).toMatchObject([{ running: 0 }]);
});

it('a main service that waits for others does not keep the supervisor from ending', async () => {
  const main = shell('app', 'exit 3', { main: true, after: ['db'] });
  await using host = await SuperviseHost.of(sleeper('db'), main);
  expect(await host.process?.ended).toBe(3);
  host.write(sleeper('db', { ready: { exec: { command: 'false' } } }), main);
  await host.start();
  expect(await host.listed('app')).toMatchObject({ phase: 'starting', waitsFor: ['db'] });
  expect(await host.end()).toBe(0); // it has not begun this time
});

it('knows its main service also without its configuration', async () => {
  const main = sleeper('app', { main: true });
  await using host = await SuperviseHost.of(main);
  const { pid } = await host.phase('app', 'running');
  await host.crash();
  writeFileSync(host.config, '{');
  await host.start();
  kill(pid, 'SIGKILL');
  expect(await host.process?.ended).toBe(137);
});

it('a dry run changes nothing of what is said of the configuration', async () => {
  await using host = await SuperviseHost.of(sleeper('web'));
  const said = async () => (await host.service('list')).stderr.includes('services.json:');
  writeFileSync(host.config, '{');
  expect((await host.service('apply', '--dry-run')).code).toBe(2);
  expect(await said()).toBe(false);
  expect((await host.service('apply')).code).toBe(2);
  expect(await said()).toBe(true);
  host.write(sleeper('web'));
  expect((await host.service('apply', '--dry-run')).code).toBe(0);
  expect(await said()).toBe(true);
  expect((await host.service('apply')).code).toBe(0);
  expect(await said()).toBe(false);
});

it('a file that a service writes itself is rotated while it runs', async () => {
  await using host = new SuperviseHost();
  const log = host.path('web.log');
  host.write(
    shell('web', 'i=0; while :; do echo $((i+=1)); sleep 0.01; done', {
      logs: { stdout: log, maxBytes: 1000, keep: 100 },
    }),
  );
  await host.start();
  await until('a rotation', () => existsSync(`${log}.1`));
  await host.service('stop', 'web');
  const numbers = [`${log}.1`, log].flatMap((file) =>
    readFileSync(file, 'utf8').trim().split('\n'),
  );
  expect(numbers).toEqual(numbers.map((_, at) => String(at + 1)));
});

it('a file that another service writes until it has ended is not rotated before', async () => {
  await using host = new SuperviseHost();
  const logs = { stdout: host.path('both.log'), maxBytes: 1000 };
  const count = 'while :; do echo x; sleep 0.01; done';
  host.write(
    shell('web', count, { logs }),
    shell('slow', `trap '' TERM; ${count}`, { logs, stop: { graceMs: 12_000 } }),
  );
  await host.start();
  await host.phase('slow', 'running');
  const stopped = host.service('stop', 'slow'); // longer than until it is looked at
  await until('a rotation', () => existsSync(`${logs.stdout}.1`));
  expect(await host.listed('slow')).toMatchObject({ phase: 'stopped' });
  await stopped;
});

itAsRoot('a log on a full disk is told once', async () => {
  await using host = new SuperviseHost();
  const folder = host.path('full');
  mkdirSync(folder);
  const script = "head -c 200000 /dev/zero | tr '\\0' x; exec sleep 1000";
  host.write(shell('web', script, { logs: { file: `${folder}/log` } }));
  const mount = `mount -t tmpfs -o size=64k tmpfs ${folder} && exec "$@"`;
  await host.start(['unshare', '--mount', 'sh', '-c', mount, 'sh']);
  expect(await host.printed('warning')).toMatchObject({
    service: 'web',
    message: expect.stringContaining('cannot be written: there is no room on its disk') as string,
  });
});

it('says why a log cannot be written', async () => {
  await using host = new SuperviseHost();
  expect(await whyUnwritable(host.path('log'))).toBeNull();
  writeFileSync(host.path('log'), '');
  expect(await whyUnwritable(host.path('log'))).toBeNull();
  expect(await whyUnwritable(host.path('missing', 'log'))).toBe('no such file or directory');
  expect(await whyUnwritable(host.folder)).toBe('it is no regular file');
});
