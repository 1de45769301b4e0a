import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { processesOf, until } from './processes.mjs';

const OURS = resolve('dist/cli/main.js');
const PM2_FOLDER = resolve('build/comparison');

let marks = 0;

/** What all have in common. */
class Driver {
  #marks = [];

  constructor(folder) {
    this.folder = folder;
  }

  get name() {
    return this.constructor.title.split(' ')[0];
  }

  /** A word for the command line of a service. */
  mark(name) {
    const mark = `compare-${process.pid}-${++marks}-${name}`;
    this.#marks.push(mark);
    return mark;
  }

  /** Ends what has outlived its supervisor. */
  endMarked() {
    for (const { pid } of this.#marks.flatMap(processesOf)) this.killPid(pid);
  }

  run(command, args, more = {}) {
    const { stdout, stderr, status } = spawnSync(command, args, {
      ...{ encoding: 'utf8', cwd: this.folder, timeout: 60_000, ...more },
      env: { ...process.env, ...this.env },
    });
    return { text: `${stdout ?? ''}${stderr ?? ''}`, status };
  }

  /** A command in another boot, as far as programs can tell. */
  boot(bootId, command, args) {
    if (bootId === undefined) return [command, args];
    const file = join(this.folder, 'boot_id');
    writeFileSync(file, `${bootId}\n`);
    const script = `mount --bind ${file} /proc/sys/kernel/random/boot_id && exec "$@"`;
    return ['unshare', ['--mount', 'sh', '-c', script, 'sh', command, ...args]];
  }

  killPid(pid, signal = 'SIGKILL') {
    try {
      if (pid > 1) process.kill(pid, signal);
    } catch {
      // It has ended.
    }
  }
}

class Exitwatch extends Driver {
  static title = 'exitwatch';

  async start(services) {
    const described = services.map(({ name, script, command, log, maxBytes, isOnce }) => ({
      name,
      ...(command === undefined ? { command: 'sh', args: ['-c', script] } : { command }),
      ...(log === undefined ? {} : { logs: { file: log, maxBytes, keep: 20 } }),
      ...(isOnce ? { restart: 'never' } : {}),
    }));
    writeFileSync(join(this.folder, 'services.json'), JSON.stringify({ services: described }));
    await this.startAgain();
  }

  async startAgain({ bootId } = {}) {
    const args = [OURS, 'supervise', 'services.json', '--state-dir', 'state'];
    const [command, all] = this.boot(bootId, process.execPath, args);
    const child = spawn(command, all, { cwd: this.folder, stdio: 'ignore', detached: true });
    this.pid = child.pid;
    child.unref();
    await until(() => this.ask('list').status === 0);
    await sleep(500);
  }

  ask(verb, ...args) {
    return this.run(process.execPath, [OURS, 'service', verb, ...args, '--state-dir', 'state']);
  }

  async status(name) {
    return this.ask('list', name).text.split('\n').slice(1).join(' ');
  }

  async say(name) {
    const [head = ''] = this.ask('why', name, '-n', '1').text.split('\n');
    return head.replace(/^\S+ +/, '');
  }

  async stop(name) {
    this.ask('stop', name);
  }

  async kill() {
    this.killPid(this.pid);
    await sleep(200);
  }

  async upgrade() {
    this.killPid(this.pid, 'SIGTERM');
    await sleep(1000);
    await this.startAgain();
    this.ask('upgrade-keeper');
  }

  /** As a reboot does. */
  async killAll() {
    const list = this.run(process.execPath, [
      OURS,
      'service',
      'list',
      '--json',
      '--state-dir',
      'state',
    ]);
    const pids = list.text.split('\n').flatMap((line) => {
      try {
        return JSON.parse(line).pid ?? [];
      } catch {
        return [];
      }
    });
    await this.kill();
    const { text } = this.run('pgrep', ['-f', `^\\S*exitwatch-keeper keep ${this.folder}`]);
    for (const pid of [...text.split('\n').map(Number), ...pids]) this.killPid(pid);
    await sleep(500);
  }

  async end() {
    this.ask('stop', '--all', '--grace', '1s');
    this.killPid(this.pid, 'SIGTERM');
    await sleep(1000);
    await this.killAll();
  }
}

class Pm2 extends Driver {
  static title = 'pm2';

  constructor(folder) {
    super(folder);
    this.env = { PM2_HOME: join(folder, 'pm2') };
  }

  pm2(...args) {
    return this.run(process.execPath, [join(PM2_FOLDER, 'node_modules/pm2/bin/pm2'), ...args]);
  }

  async start(services) {
    const apps = services.map(({ name, script, command, log, isOnce }) => ({
      name,
      ...(command === undefined
        ? { script: '/bin/sh', args: ['-c', script], interpreter: 'none' }
        : { script: command, interpreter: 'none' }),
      ...(log === undefined ? {} : { out_file: log, error_file: log }),
      ...(isOnce ? { autorestart: false } : {}),
    }));
    writeFileSync(
      join(this.folder, 'eco.config.js'),
      `module.exports = ${JSON.stringify({ apps })}`,
    );
    this.started = this.pm2('start', 'eco.config.js').text;
    this.pm2('save');
  }

  async startAgain({ bootId } = {}) {
    const pm2 = join(PM2_FOLDER, 'node_modules/pm2/bin/pm2');
    const [command, args] = this.boot(bootId, process.execPath, [pm2, 'resurrect']);
    this.run(command, args);
  }

  async status(name) {
    try {
      const apps = JSON.parse(this.pm2('jlist').text.split('\n').at(-1) ?? '[]');
      const app = apps.find((each) => each.name === name);
      return app === undefined ? 'not listed' : `${app.pm2_env.status}, pid ${app.pid}`;
    } catch {
      return 'no answer';
    }
  }

  /** Its own log, because `pm2 describe` says nothing of an end. */
  async say(name) {
    const path = join(this.env.PM2_HOME, 'pm2.log');
    const log = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const lines = log.split('\n').filter((line) => line.includes(`App [${name}:`));
    const ended = lines.filter((line) => /exited|errored/.test(line)).at(-1);
    const refused = this.started?.split('\n').find((line) => line.includes('ERROR'));
    const text = ended?.replace(/^\S+ PM2\s+\| /, '') ?? refused ?? '';
    return `${text}; ${await this.status(name)}`;
  }

  async stop(name) {
    this.pm2('stop', name);
    this.pm2('save', '--force');
  }

  get daemon() {
    const path = join(this.env.PM2_HOME, 'pm2.pid');
    return existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0;
  }

  async kill() {
    this.killPid(this.daemon);
    await sleep(200);
  }

  async upgrade() {
    this.pm2('update');
  }

  async killAll() {
    let pids = [];
    try {
      pids = JSON.parse(this.pm2('jlist').text.split('\n').at(-1) ?? '[]').map(({ pid }) => pid);
    } catch {
      // It does not answer.
    }
    await this.kill();
    for (const pid of pids) this.killPid(pid);
    await sleep(500);
  }

  async end() {
    this.pm2('kill');
  }
}

class Supervisord extends Driver {
  static title = 'supervisord';

  async start(services) {
    const programs = services.map(({ name, script, command, log, maxBytes, isOnce }) =>
      [
        `[program:${name}]`,
        `command=${command ?? `/bin/sh ${this.file(name, script)}`}`,
        ...(log === undefined
          ? []
          : [
              'redirect_stderr=true',
              `stdout_logfile=${log}`,
              `stdout_logfile_maxbytes=${maxBytes}`,
            ]),
        ...(log === undefined ? [] : ['stdout_logfile_backups=20']),
        ...(isOnce ? ['autorestart=false'] : ['autorestart=true']),
        '',
      ].join('\n'),
    );
    const own = [
      '[unix_http_server]',
      `file=${this.folder}/sock`,
      '[supervisord]',
      `logfile=${this.folder}/supervisord.log`,
      `pidfile=${this.folder}/supervisord.pid`,
      `childlogdir=${this.folder}`,
      '[rpcinterface:supervisor]',
      'supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface',
      '[supervisorctl]',
      `serverurl=unix://${this.folder}/sock`,
      '',
    ].join('\n');
    writeFileSync(join(this.folder, 'all.conf'), own + programs.join('\n'));
    await this.startAgain();
  }

  file(name, script) {
    mkdirSync(join(this.folder, 'scripts'), { recursive: true });
    const path = join(this.folder, 'scripts', name);
    writeFileSync(path, script);
    return path;
  }

  async startAgain({ bootId } = {}) {
    const [command, args] = this.boot(bootId, 'supervisord', ['-c', 'all.conf']);
    this.run(command, args);
    await until(() => this.ctl('version').status === 0);
    await sleep(500);
  }

  ctl(...args) {
    return this.run('supervisorctl', ['-c', 'all.conf', ...args]);
  }

  async status(name) {
    return this.ctl('status', name).text;
  }

  async say(name) {
    const log = readFileSync(join(this.folder, 'supervisord.log'), 'utf8').split('\n');
    const about = log.filter((line) => new RegExp(`\\b${name}\\b`).test(line));
    const ended = about.filter((line) => /exited|stopped|spawnerr|gave up/.test(line)).at(-1) ?? '';
    return `${ended.replace(/^\S+ \S+ /, '')}; ${await this.status(name)}`;
  }

  async stop(name) {
    this.ctl('stop', name);
  }

  get daemon() {
    const path = join(this.folder, 'supervisord.pid');
    return existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0;
  }

  async kill() {
    this.killPid(this.daemon);
    await sleep(200);
  }

  async upgrade() {
    this.ctl('shutdown');
    await sleep(3000);
    await this.startAgain();
  }

  async killAll() {
    const pids = [...this.ctl('status').text.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid));
    await this.kill();
    for (const pid of pids) this.killPid(pid);
    await sleep(500);
  }

  async end() {
    this.ctl('shutdown');
    await sleep(2000);
    await this.killAll();
  }
}

/** Those that are there, with their versions. */
export async function drivers() {
  const { stdout, error } = spawnSync('supervisord', ['--version'], { encoding: 'utf8' });
  if (error !== undefined) throw new Error('there is no supervisord: apt-get install supervisor');
  Supervisord.title = `supervisord ${stdout.trim()}`;
  mkdirSync(PM2_FOLDER, { recursive: true });
  const manifest = join(PM2_FOLDER, 'node_modules/pm2/package.json');
  if (!existsSync(manifest)) {
    writeFileSync(join(PM2_FOLDER, 'package.json'), '{ "private": true }');
    spawnSync('npm', ['install', '--no-audit', '--no-fund', 'pm2'], {
      cwd: PM2_FOLDER,
      stdio: 'inherit',
    });
  }
  Pm2.title = `pm2 ${JSON.parse(readFileSync(manifest, 'utf8')).version}`;
  return [Supervisord, Pm2, Exitwatch];
}
