// Lane: patient

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { checkConfig } from '../../src/supervise/config/check-config';
import { fromPm2 } from '../../src/supervise/import/from-pm2';
import { fromSupervisord } from '../../src/supervise/import/from-supervisord';
import { shellWords } from '../../src/supervise/import/words';
import { machineFolders } from '../../src/supervise/machines/machine-spec';

import type { ConfiguredService } from '../../src/supervisor/index.js';

import { call } from '../support/command';

const DEFAULTS = {
  ...{ folder: '/srv', logs: '/var/logs', exitwatch: ['node', 'main.js'] },
  machines: machineFolders('/state'),
};

const left = ({ leftOut }: { leftOut: { service: string | null; option: string }[] }) =>
  leftOut.map(({ service, option }) => (service === null ? option : `${service}.${option}`));

/** Those are not on every host. */
const withoutUsers = (services: readonly ConfiguredService[]) =>
  services.map((service) => ({ ...service, user: undefined, group: undefined }));

test('words are split as a shell does', () => {
  expect(shellWords(` a  'b c' "d \\"e\\" \\x" f\\ g '' h"i"'j' `)).toEqual([
    ...['a', 'b c', 'd "e" \\x', 'f g', '', 'hij'],
  ]);
  expect(() => shellWords("a 'b")).toThrow('a quote is open');
});

describe('of pm2', () => {
  it('is taken what can be honoured', () => {
    const imported = fromPm2(
      {
        apps: [
          {
            ...{ name: 'api', script: './server.js', args: '--port "80 80"', cwd: '/srv/api' },
            ...{ node_args: ['--enable-source-maps'], env: { PORT: 80, DEEP: { a: 1 } } },
            ...{ autorestart: true, max_restarts: 5, min_uptime: '5s', restart_delay: 100 },
            ...{ kill_timeout: 3000, out_file: 'out.log', error_file: 'err.log', watch: false },
            ...{ uid: 'www', gid: 'www', pid_file: '/run/api.pid', treekill: true, vizion: false },
          },
          { script: 'job.py', autorestart: false, log_file: 'job.log' },
          { name: 'sh', script: 'run', interpreter: 'none', stop_exit_codes: [0, 3] },
          {
            name: 'two',
            script: 'a.js',
            instances: 2,
            exec_mode: 'fork',
            instance_var: 'ID',
            pid_file: 'p.pid',
          },
          {
            script: 'npm run "x y"',
            out_file: 'NULL',
            error_file: '/dev/null',
            autorestart: 'false',
          },
        ],
      },
      '/app',
    );
    expect(imported).toEqual({
      leftOut: [{ service: 'npm run "x y"', option: 'name', reason: expect.any(String) as string }],
      services: [
        {
          ...{ name: 'api', command: 'node', cwd: '/srv/api', user: 'www', group: 'www' },
          args: ['--enable-source-maps', '/srv/api/server.js', '--port', '80 80'],
          ...{ pidfile: '/run/api.pid', restart: 'always' },
          backoff: { freeAttempts: 0, firstMs: 100, capMs: 100, healthyMs: 5000, giveUpAfter: 5 },
          stop: { signal: 'SIGINT', graceMs: 3000 },
          logs: { stdout: '/srv/api/out.log', stderr: '/srv/api/err.log' },
          extraEnv: { PORT: '80', DEEP: '{"a":1}' },
        },
        {
          ...{
            name: 'job',
            command: 'python3',
            args: ['/app/job.py'],
            restart: 'never',
            cwd: '/app',
          },
          ...{ stop: { signal: 'SIGINT', graceMs: 1600 }, logs: { file: '/app/job.log' } },
        },
        {
          ...{
            name: 'sh',
            command: 'run',
            args: [],
            cwd: '/app',
            restart: 'on-failure',
            successExitCodes: [0, 3],
          },
          stop: { signal: 'SIGINT', graceMs: 1600 },
        },
        ...[0, 1].map((at) => ({
          ...{ name: `two-${at}`, command: 'node', args: ['/app/a.js'], restart: 'always' },
          ...{ stop: { signal: 'SIGINT', graceMs: 1600 }, extraEnv: { ID: String(at) } },
          ...{ cwd: '/app', pidfile: `/app/p-${at}.pid` },
        })),
        {
          ...{ name: 'npm-run--x-y-', command: 'bash', args: ['-c', 'npm run "x y"'], logs: {} },
          ...{ cwd: '/app', restart: 'never', stop: { signal: 'SIGINT', graceMs: 1600 } },
        },
      ],
    });
    const services = withoutUsers(imported.services);
    expect(checkConfig({ services }, DEFAULTS).services).toHaveLength(6);
  });

  it('is refused by name what cannot', () => {
    const imported = fromPm2(
      {
        apps: [
          {
            ...{
              name: 'my app',
              script: 'a.js',
              instances: 'max',
              watch: true,
              cron_restart: '0 0 * * *',
            },
            ...{
              max_memory_restart: '1G',
              env_production: {},
              wait_ready: true,
              listen_timeout: 1,
            },
            ...{ constructor: 1, min_uptime: 'soon', log_file: 'a', out_file: 'b', args: '"' },
          },
          { name: 'my app', script: 'b.js', exec_mode: 'cluster' },
          { name: 'none' },
          { name: 'ts', script: 'x.ts', exp_backoff_restart_delay: 100, error_file: '/dev/stderr' },
          { name: 'odd', script: './run', error_file: 'err' },
          null,
        ],
        deploy: {},
      },
      '/app',
    );
    expect(left(imported).sort()).toEqual(
      [
        ...[
          'ts.script',
          'ts.exp_backoff_restart_delay',
          'ts.error_file',
          'odd.script',
          'odd.out_file',
        ],
        ...['apps', 'deploy', 'none.script', 'my app.name', 'my app.name', 'my app.exec_mode'],
        ...['instances', 'watch', 'cron_restart', 'max_memory_restart', 'env_production'].map(
          inApp,
        ),
        ...[
          'error_file',
          'wait_ready',
          'listen_timeout',
          'constructor',
          'min_uptime',
          'log_file',
          'args',
        ].map(inApp),
      ].sort(),
    );
    expect(imported.leftOut.every(({ reason }) => reason.length > 10)).toBe(true);
    expect(imported.services.map(({ name }) => name)).toEqual([
      ...['my-app', 'my-app-2', 'ts', 'odd'],
    ]);
  });
});

const inApp = (option: string) => `my app.${option}`;

it('of pm2 is tried again without a limit for which no start is unstable', () => {
  const of = (more: object) =>
    fromPm2([{ name: 'a', script: './a', max_restarts: 5, ...more }], '/app').services[0]?.backoff;
  expect(of({ min_uptime: 0 })).toBeUndefined();
  expect(of({ min_uptime: 0, restart_delay: 10 })).toEqual({
    ...{ freeAttempts: 0, firstMs: 10, capMs: 10 },
  });
  expect(of({})).toEqual({ healthyMs: 1000, giveUpAfter: 5 });
});

describe('of supervisord', () => {
  it('is taken what can be honoured', () => {
    const imported = fromSupervisord(
      `; a comment
[supervisord]
user = svc
directory = data
environment = A="all",Z='z\\z'
[program:db]
command=/usr/bin/db --data "%(here)s/my data" ; behind it
priority=1
  # no argument
autorestart=true # keep
stopsignal=INT
stopwaitsecs=20
redirect_stderr=true
stdout_logfile=/var/log/db.log
stdout_logfile_maxbytes=1MB
stdout_logfile_backups=2
startsecs=0

[program:web]
command = web --id %(process_num)02d
process_name = %(program_name)s-%(process_num)d
numprocs = 2
directory = /srv
environment = A="b,c",D='e f', G=h%%
    ,I="j"
exitcodes = 0,2
user = www
umask = 027
stdout_logfile = NONE
stderr_logfile = NONE
autostart = true
killasgroup = true
`,
      '/etc/supervisor/all.conf',
    );
    const web = (at: number) => ({
      ...{ name: `web-${at}`, command: 'web', args: ['--id', `0${at}`], cwd: '/srv', user: 'www' },
      ...{ umask: 0o27, extraEnv: { A: 'b,c', D: 'e f', G: 'h%', I: 'j', Z: 'z\\z' } },
      ...{
        restart: 'on-failure',
        successExitCodes: [0, 2],
        ready: { aliveMs: 1000 },
        after: ['db'],
      },
      backoff: { freeAttempts: 1, firstMs: 1000, healthyMs: 1000, giveUpAfter: 4 },
      stop: { signal: 'SIGTERM', ask: 'main', graceMs: 10_000 },
      logs: { maxBytes: 52_428_800, keep: 10 },
    });
    expect(imported).toEqual({
      leftOut: ['web-0', 'web-1'].map((name) => ({
        ...{ service: name, option: 'priority' },
        reason: 'it is "after" here: it waits until they are ready',
      })),
      services: [
        {
          ...{ name: 'db', command: '/usr/bin/db', args: ['--data', '/etc/supervisor/my data'] },
          ...{ restart: 'always', user: 'svc', cwd: '/etc/supervisor/data' },
          extraEnv: { A: 'all', Z: 'z\\z' },
          backoff: { freeAttempts: 1, firstMs: 1000, healthyMs: 1000 },
          stop: { signal: 'SIGINT', ask: 'main', graceMs: 20_000 },
          logs: { file: '/var/log/db.log', maxBytes: 1_048_576, keep: 2 },
        },
        web(0),
        web(1),
      ],
    });
    const services = withoutUsers(imported.services);
    expect(checkConfig({ services }, DEFAULTS).services).toHaveLength(3);
  });

  it('is refused by name what cannot', () => {
    const imported = fromSupervisord(
      `[supervisord]
logfile=/x
[unix_http_server]
file=/x
[include]
files = *.conf
[eventlistener:mem]
command=x
[program:a]
command=x "y
[program:b]
command=x %(ENV_NO_SUCH_VARIABLE)s
autostart=false
stopsignal=WINCH
startsecs=soon
exitcodes=x
constructor=1
environment=A
stdout_logfile=/x
stderr_logfile_backups=3
autorestart=sometimes
stopasgroup=true
[program:c]
command=x %(ENV_PATH)s
redirect_stderr=true
stdout_logfile=/dev/stdout
environment=A=it's
`,
      '/x.conf',
    );
    expect(left(imported).sort()).toEqual(
      [
        ...['b.stderr_logfile_backups', 'b.autorestart', 'c.command', 'c.stdout_logfile'],
        ...[
          'c.environment',
          '[supervisord] logfile',
          '[include]',
          '[eventlistener:mem]',
          'a.command',
          'b.command',
        ],
        ...['b.autostart', 'b.stopsignal', 'b.startsecs', 'b.exitcodes', 'b.constructor'],
        ...['b.environment', 'b.stderr_logfile'],
      ].sort(),
    );
    expect(() => fromSupervisord('x=1', '/x.conf')).toThrow('line 1 is in no section');
    expect(() => fromSupervisord('[a]\nx', '/x.conf')).toThrow('line 2 has no "="');
  });
});

test('the command prints a configuration, and what it left out', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-import-'));
  try {
    const file = join(folder, 'ecosystem.config.js');
    writeFileSync(file, 'module.exports = { apps: [{ name: "a", script: "a.js", watch: true }] };');
    const { code, lines, stderr } = await call('service', 'import', file);
    expect(code).toBe(1);
    expect(stderr).toBe(
      'left out: a: watch: files are not watched; restart it when it is deployed\n',
    );
    const imported = join(folder, 'services.json');
    writeFileSync(imported, lines.join('\n'));
    const checked = await call('supervise', imported, '--check');
    expect(checked).toMatchObject({ code: 0, lines: [`${imported}: 1 service`] });
    writeFileSync(join(folder, 'a.conf'), '[program:a]\ncommand=x\n');
    expect((await call('service', 'import', join(folder, 'a.conf'))).code).toBe(0);
    expect((await call('service', 'import', join(folder, 'missing.conf'))).code).toBe(2);
    writeFileSync(join(folder, 'a.json'), '{');
    expect((await call('service', 'import', join(folder, 'a.json'))).code).toBe(2);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
