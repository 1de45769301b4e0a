// npm run bench:watches [-- --watches N,…] [--seconds N] [--json]
//
// The cost of watching processes that idle, and that all exit at once: with pidfds, with polling,
// and with other tools that poll, at the same interval of one second.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { availableParallelism, release } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { number, table } from './figures.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const BUILD = join(HERE, '..', 'build', 'bench');

const { values } = parseArgs({
  options: {
    watches: { type: 'string', default: '1,100,10000' },
    seconds: { type: 'string', default: '10' },
    json: { type: 'boolean', default: false },
  },
});

const node = (source) => [process.execPath, join(HERE, 'watcher.cjs'), source];
const PYTHON = '/usr/bin/python3';
const hasPsutil = spawnSync(PYTHON, ['-c', 'import psutil']).status === 0;
const CONTENDERS = {
  'exitwatch connector + pidfd': node('auto'),
  'exitwatch pidfd': node('pidfd'),
  'exitwatch poll': node('poll'),
  'ps-list': node('ps-list'),
  ...(hasPsutil ? { 'psutil wait_procs': [PYTHON, join(HERE, 'watcher.py')] } : {}),
};

/** CPU time of the process and of the children it has reaped, in ms. */
function cpuMs(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * 10, 0);
}

/** How many times its threads have gone to sleep. */
function sleeps(pid) {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'latin1');
    return sum + Number(/^voluntary_ctxt_switches:\t(\d+)$/m.exec(status)?.[1]);
  }, 0);
}

async function measure(command, count) {
  const hold = spawn(join(BUILD, 'hold'), [String(count)]);
  const held = createInterface(hold.stdout)[Symbol.asyncIterator]();
  const pids = [];
  while (pids.length < count) pids.push((await held.next()).value);

  const [program, ...args] = command;
  const watcher = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const told = createInterface(watcher.stdout)[Symbol.asyncIterator]();
  watcher.stdin.write(`${pids.join('\n')}\n\n`);
  await told.next();
  await setTimeout(2000);

  const seconds = Number(values.seconds);
  const [idleMs, idleSleeps] = [cpuMs(watcher.pid), sleeps(watcher.pid)];
  await setTimeout(seconds * 1000);
  const [endMs, endSleeps] = [cpuMs(watcher.pid), sleeps(watcher.pid)];
  hold.stdin.end('end\n');
  // An exited process no longer shows its CPU time, so keep reading while it runs.
  let last = endMs;
  let lastSleeps = endSleeps;
  const ended = told.next().then(() => true);
  while (!(await Promise.race([ended, setTimeout(20).then(() => false)]))) {
    try {
      [last, lastSleeps] = [cpuMs(watcher.pid), sleeps(watcher.pid)];
    } catch {
      break;
    }
  }
  if (watcher.exitCode === null) await once(watcher, 'close');
  if (hold.exitCode === null) await once(hold, 'close');
  return {
    idleCpuMs: (endMs - idleMs) / seconds,
    idleWakeups: (endSleeps - idleSleeps) / seconds,
    endCpuUs: ((last - endMs) * 1000) / count,
    endWakeups: (lastSleeps - endSleeps) / count,
  };
}

mkdirSync(BUILD, { recursive: true });
const source = join(HERE, '..', 'test', 'programs', 'hold.c');
spawnSync('cc', ['-O2', source, '-o', join(BUILD, 'hold')], { stdio: 'inherit' });
const report = { cores: availableParallelism(), kernel: release(), node: process.version };
const counts = values.watches.split(',').map(Number);
const results = [];
for (const count of counts) {
  for (const [name, command] of Object.entries(CONTENDERS)) {
    if (!values.json) process.stderr.write(`\r${count} watches, ${name}\u001b[K`);
    results.push({ count, name, ...(await measure(command, count)) });
  }
}
if (!values.json) process.stderr.write('\r\u001b[K');
if (values.json) {
  console.log(JSON.stringify({ ...report, results }, null, 2));
} else {
  console.log(`${report.cores} cores, Linux ${report.kernel}, Node.js ${report.node}`);
  for (const count of counts) {
    console.log(`\n${count} watched`);
    const head = ['', 'idle: CPU ms/s', 'wake-ups/s', 'ending: CPU µs each', 'wake-ups each'];
    const rows = results
      .filter((result) => result.count === count)
      .map((result) => [
        result.name,
        ...[number(result.idleCpuMs), number(result.idleWakeups)],
        ...[number(result.endCpuUs), number(result.endWakeups, 2)],
      ]);
    console.log(table([head, ...rows]));
  }
}
