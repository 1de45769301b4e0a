// npm run test:environments [-- NAME…] [--rounds N] [--tests FILE,…]: runs `npm ci && npm test` on the last
// commit, in clean clones, in environments like those of users; with --tests, of those files alone. Requires root. Without a NAME, runs all of
// them. The logs are in build/environments.
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { cloneLastCommit } from './clone.mjs';
import { ENVIRONMENTS } from './environments.mjs';

/** A cgroup that limits the number of processes and threads. */
class PidsCgroup {
  constructor(name, most) {
    const [root] = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].filter(existsSync);
    this.folder = join(root, `ew-${name}-${process.pid}`);
    mkdirSync(this.folder);
    writeFileSync(join(this.folder, 'pids.max'), String(most));
  }

  /** Names what the tests left behind, and leaves it running. */
  async remove() {
    for (let i = 0; i < 50; i++) {
      try {
        rmdirSync(this.folder);
        return;
      } catch {
        await setTimeout(100); // the last ones are still exiting
      }
    }
    const left = readFileSync(join(this.folder, 'cgroup.procs'), 'utf8').trim();
    console.error(
      `cannot remove ${this.folder}, which still contains ${left.split('\n').join(', ')}`,
    );
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '1' }, tests: { type: 'string', default: '' } },
});
const tests = values.tests.replaceAll(',', ' ');
const INSTALL_AND_TEST = `npm ci && npm test ${tests === '' ? '' : `-- ${tests}`}`;
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1) {
  console.error(`--rounds must be a positive integer, not ${JSON.stringify(values.rounds)}`);
  process.exit(2);
}
const names = positionals.length > 0 ? positionals : Object.keys(ENVIRONMENTS);
for (const name of names) {
  if (!(name in ENVIRONMENTS)) {
    console.error(
      `unknown environment ${name}; choose from ${Object.keys(ENVIRONMENTS).join(', ')}`,
    );
    process.exit(2);
  }
}
if (process.getuid() !== 0) {
  console.error('creating the environments requires root');
  process.exit(2);
}

const logs = resolve('build', 'environments');
mkdirSync(logs, { recursive: true });
let hasFailed = false;
for (const name of names) {
  for (let round = 1; round <= rounds; round++) {
    if (!(await isGreen(name, round))) hasFailed = true;
  }
}
process.exit(hasFailed ? 1 : 0);

async function isGreen(name, round) {
  const { prefix = [], owner, pidsMax, busy = 0, isOffline = false } = ENVIRONMENTS[name];
  const { folder, clone, commit } = cloneLastCommit(name);
  const cache = join(folder, 'npm');
  if (isOffline) execFileSync('npm', ['ci', '--silent', '--cache', cache], { cwd: clone });
  if (owner !== undefined) execFileSync('chown', ['-R', `${owner}:${owner}`, folder]);

  const log = join(logs, `${name}-${round}.log`);
  const output = openSync(log, 'w');
  const group = pidsMax === undefined ? undefined : new PidsCgroup(name, pidsMax);
  const enter = group === undefined ? '' : `echo $$ > ${group.folder}/cgroup.procs && `;
  const began = Date.now();
  // Their parent-death signal ends them with us, however we exit.
  const hog = ['--pdeathsig', 'KILL', 'sh', '-c', 'while :; do :; done'];
  const hogs = Array.from({ length: busy }, () => spawn('setpriv', hog));
  const command = ['sh', '-c', `${enter}exec "$@"`, 'sh', ...prefix, 'sh', '-c', INSTALL_AND_TEST];
  const env = { ...process.env, HOME: folder, npm_config_cache: cache };
  if (isOffline) env.npm_config_offline = 'true';
  delete env.CI;
  const [first, ...rest] = command;
  const child = spawn(first, rest, { cwd: clone, env, stdio: ['ignore', output, output] });
  const code = await new Promise((done) => child.on('close', done));
  for (const each of hogs) each.kill('SIGKILL');
  closeSync(output);
  await group?.remove();
  rmSync(folder, { recursive: true, force: true });

  const seconds = Math.round((Date.now() - began) / 1000);
  const tests = readFileSync(log, 'utf8').match(/(?<=^Tests: +).*$/gm) ?? ['no tests were run'];
  const result = code === 0 ? 'green' : `RED (${code})`;
  console.log(`${name} ${round}: ${result}, ${seconds} s, ${tests.join('; ')}, ${commit}`);
  return code === 0;
}
