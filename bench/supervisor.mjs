// npm run bench:supervisor [-- SERVICES SECONDS]: 500 services, a tenth of them in a crash loop, by
// `exitwatch supervise`, by supervisord (Debian's package) and by pm2 (npm), one after the other: CPU of all
// processes of each for a restart, and their memory for a service. The peers are taken from PATH, or
// fetched into a folder of the cache, never installed.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

const SERVICES = Number(process.argv[2] ?? 500);
const SECONDS = Number(process.argv[3] ?? 30);
const CRASHING = SERVICES / 10;
const LONGEST_START_MS = 300_000;
const TICKS = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

const REPOSITORY = join(import.meta.dirname, '..');
const COMMAND = join(REPOSITORY, 'dist', 'cli', 'main.js');
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'exitwatch-bench');
const work = mkdtempSync(join(tmpdir(), 'exitwatch-bench-'));
const starts = join(work, 'starts');
const state = join(work, 'state');
const pins = join(work, 'pins');

/** Each start of a crashing one is a line in `starts`; it lives for a second, so nobody backs off. */
const CRASH = `echo >> ${starts}; sleep 1; exit 1`;
const names = Array.from({ length: SERVICES }, (_, at) => ({
  name: `s${at}`,
  crashes: at < CRASHING,
}));
const shellOf = ({ crashes }) => (crashes ? CRASH : 'exec sleep 100000');

const found = (command) =>
  spawnSync('sh', ['-c', `command -v ${command}`], { encoding: 'utf8' }).stdout.trim();

function pm2Command() {
  if (found('pm2') !== '') return 'pm2';
  const command = join(CACHE, 'node_modules', '.bin', 'pm2');
  if (!existsSync(command)) {
    mkdirSync(CACHE, { recursive: true });
    execFileSync('npm', ['install', '--prefix', CACHE, '--no-audit', '--no-fund', 'pm2']);
  }
  return command;
}

/** The environment in which supervisord can be run. */
function supervisordCommand() {
  if (found('supervisord') !== '') return ['supervisord', {}];
  const root = join(CACHE, 'supervisor');
  if (!existsSync(root)) {
    mkdirSync(CACHE, { recursive: true });
    execFileSync('apt-get', ['download', 'supervisor', 'python3-pkg-resources'], { cwd: CACHE });
    for (const each of readdirSync(CACHE).filter((file) => file.endsWith('.deb'))) {
      execFileSync('dpkg', ['-x', join(CACHE, each), root]);
    }
  }
  const PYTHONPATH = join(root, 'usr/lib/python3/dist-packages');
  return [join(root, 'usr/bin/supervisord'), { PYTHONPATH }];
}

const CONTENDERS = {
  exitwatch: {
    start() {
      const file = join(work, 'services.json');
      const backoff = { freeAttempts: 1e6 };
      const services = names.map((each) => ({
        ...{ name: each.name, command: 'sh', args: ['-c', shellOf(each)], backoff, logs: {} },
      }));
      writeFileSync(file, JSON.stringify({ services }));
      mkdirSync(pins);
      // As on a host with systemd, there is a bpffs for the recorder; it goes when we have ended.
      const prepare = `mount -t bpf exitwatch-bench ${pins} 2>/dev/null; exec "$@"`;
      const places = ['--state-dir', state, '--pin-dir', join(pins, 'bench')];
      const command = [process.execPath, COMMAND, 'supervise', file, '--stop', ...places];
      return spawn('unshare', ['--mount', 'sh', '-c', prepare, 'sh', ...command], {
        stdio: ['ignore', 'ignore', 'inherit'],
      });
    },
    isOurs: (words) => words.includes(state) || words.includes(join(state, 'supervise', 'keeper')),
    stop: (child) => child.kill('SIGTERM'),
  },
  supervisord: {
    start() {
      const file = join(work, 'supervisord.conf');
      const programs = names.map(
        (each) =>
          `[program:${each.name}]\ncommand=sh -c '${shellOf(each)}'\nstartsecs=0\nautorestart=true\nstdout_logfile=NONE\nstderr_logfile=NONE\n`,
      );
      const general = `[supervisord]\nnodaemon=true\nlogfile=/dev/null\nlogfile_maxbytes=0\npidfile=${work}/pid\nminfds=4096\n`;
      writeFileSync(file, `${general}${programs.join('')}`);
      const [command, env] = supervisordCommand();
      // Debian's package is for Debian's python3, which need not be the first one in PATH.
      return spawn('/usr/bin/python3', [found(command) || command, '-c', file], {
        ...{ stdio: 'ignore', env: { ...process.env, ...env } },
      });
    },
    isOurs: (words) => words.includes(join(work, 'supervisord.conf')),
    stop: (child) => child.kill('SIGTERM'),
  },
  pm2: {
    start() {
      const file = join(work, 'ecosystem.config.json');
      const apps = names.map((each) => ({
        ...{ name: each.name, script: '/bin/sh', args: ['-c', shellOf(each)], interpreter: 'none' },
        ...{ max_restarts: 1e9, min_uptime: 100, out_file: '/dev/null', error_file: '/dev/null' },
      }));
      writeFileSync(file, JSON.stringify({ apps }));
      const env = { ...process.env, PM2_HOME: join(work, 'pm2'), PM2_CONCURRENT_ACTIONS: '32' };
      return spawn(pm2Command(), ['start', file], { stdio: 'ignore', env });
    },
    isOurs: (words) => words[0].includes('God Daemon') && words[0].includes(join(work, 'pm2')),
    stop() {
      const env = { ...process.env, PM2_HOME: join(work, 'pm2') };
      spawnSync(pm2Command(), ['kill'], { stdio: 'ignore', env });
    },
  },
};

function pidsOf(isOurs) {
  return readdirSync('/proc').filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) && isOurs(readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0'))
      );
    } catch {
      return false;
    }
  });
}

const isThere = (pid) => existsSync(`/proc/${pid}/stat`);

function cpuMs(pids) {
  const ticks = pids.map((pid) => {
    const [user, system] = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .split(') ')[1]
      .split(' ')
      .slice(11);
    return Number(user) + Number(system);
  });
  return (ticks.reduce((a, b) => a + b, 0) * 1000) / TICKS;
}

function pssKib(pids) {
  const all = pids.map((pid) =>
    Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))[1]),
  );
  return all.reduce((a, b) => a + b, 0);
}

const sleeping = () => pidsOf((words) => words[0] === 'sleep' && words[1] === '100000').length;
const restarts = () => (existsSync(starts) ? statSync(starts).size : 0);

async function measure(contender) {
  const child = contender.start();
  try {
    return await measureWhatRuns(contender, () => (child.exitCode ?? 0) !== 0);
  } finally {
    const ended = child.exitCode === null ? once(child, 'exit') : null;
    contender.stop(child);
    await ended;
    while (sleeping() > 0) await sleep(200);
    rmSync(starts, { force: true });
  }
}

async function measureWhatRuns({ isOurs }, hasFailed) {
  const deadline = performance.now() + LONGEST_START_MS;
  while (sleeping() < SERVICES - CRASHING || restarts() < CRASHING) {
    if (hasFailed()) throw new Error('it has ended');
    if (performance.now() > deadline) throw new Error(`only ${sleeping()} services run`);
    await sleep(500);
  }
  await sleep(2500);
  const found = pidsOf(isOurs);
  await sleep(2500);
  const pids = found.filter(isThere); // without children that had not become their command yet
  const [cpuBefore, startsBefore] = [cpuMs(pids), restarts()];
  await sleep(SECONDS * 1000);
  const count = restarts() - startsBefore;
  return {
    restarts: count,
    msPerRestart: (cpuMs(pids) - cpuBefore) / count,
    kibPerService: pssKib(pids) / SERVICES,
  };
}

const results = {};
for (const [name, contender] of Object.entries(CONTENDERS)) {
  try {
    results[name] = await measure(contender);
    const { restarts: count, msPerRestart, kibPerService } = results[name];
    console.log(
      `${name}: ${count} restarts in ${SECONDS} s, ${msPerRestart.toFixed(2)} ms of CPU each; ${kibPerService.toFixed(0)} KiB for each of ${SERVICES} services`,
    );
  } catch (error) {
    console.log(`${name}: cannot run here: ${error.message}`);
  }
}
for (const name of ['supervisord', 'pm2']) {
  if (results[name] === undefined || results.exitwatch === undefined) continue;
  const ratio = (key) => (results[name][key] / results.exitwatch[key]).toFixed(2);
  console.log(
    `${name} / exitwatch: CPU ${ratio('msPerRestart')}, memory ${ratio('kibPerService')}`,
  );
}
rmSync(work, { recursive: true, force: true });
