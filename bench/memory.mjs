// npm run bench:memory [-- --exits N] [--rounds N] [--json]
//
// What a recorder costs: how much longer a process takes to be created and to exit while one is pinned,
// and the CPU time that reading the recorded exits takes. Requires root; mounts a BPF file system in a
// folder of its own, which it removes.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { median, number, table } from './figures.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const BUILD = join(HERE, '..', 'build', 'bench');
const { ExitMonitor } = createRequire(import.meta.url)('../dist/index.js');

const { values } = parseArgs({
  options: {
    exits: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '15' },
    json: { type: 'boolean', default: false },
  },
});
const EXITS = Number(values.exits);
const ROUNDS = Number(values.rounds);

mkdirSync(BUILD, { recursive: true });
const storm = join(BUILD, 'storm');
const source = join(HERE, '..', 'test', 'programs', 'storm.c');
execFileSync('cc', ['-O2', '-pthread', source, '-o', storm]);

const folder = mkdtempSync(join(tmpdir(), 'exitwatch-bench-'));
const bpffs = join(folder, 'bpf');
mkdirSync(bpffs);
execFileSync('mount', ['-t', 'bpf', 'bpf', bpffs]);

/** The time of one child of a storm, from fork to reaping, in ns. */
async function nsPerChild() {
  const child = spawn(storm, [String(EXITS)]);
  const times = [];
  for await (const line of createInterface(child.stdout)) times.push(Number(line.split(' ')[1]));
  if (child.exitCode === null) await once(child, 'exit');
  return (times.at(-1) - times[0]) / (times.length - 1);
}

async function withRecorder(scope, measure) {
  const options = {
    ...{ scope, stateDir: join(folder, `state-${scope}`), autoCommit: true },
    recorder: { pinDir: join(bpffs, 'exitwatch'), ringBytes: 16 * 1024 * 1024 },
  };
  const creator = new ExitMonitor(options);
  await creator.start();
  await creator.close();
  const result = await measure();
  const reader = new ExitMonitor(options);
  let read = 0;
  reader.on('exit', () => read++);
  const before = process.cpuUsage();
  await reader.start();
  await setTimeout(1);
  const { user, system } = process.cpuUsage(before);
  await reader.close({ forget: true });
  return { result, readUs: read > EXITS / 2 ? (user + system) / read : null };
}

const figures = { none: [], watched: [], all: [], readUs: [] };
try {
  for (let round = 0; round < ROUNDS; round++) {
    figures.none.push(await nsPerChild());
    figures.watched.push((await withRecorder('watched', nsPerChild)).result);
    const all = await withRecorder('all', nsPerChild);
    figures.all.push(all.result);
    figures.readUs.push(all.readUs);
  }
} finally {
  execFileSync('umount', [bpffs]);
  rmSync(folder, { recursive: true });
}

const none = median(figures.none);
const rows = ['none', 'watched', 'all'].map((name) => {
  const ns = median(figures[name]);
  return [name, number(ns, 0), number(ns - none, 0), number(ns / none, 3)];
});
if (values.json) {
  console.log(JSON.stringify({ event: 'bench', exits: EXITS, rounds: ROUNDS, ...figures }));
} else {
  console.log(`fork, exit and wait, ns each; the median of ${ROUNDS} rounds of ${EXITS}\n`);
  console.log(table([['recorder', 'ns', 'added', 'ratio'], ...rows]));
  console.log(`\nreading a recorded exit: ${number(median(figures.readUs))} µs of CPU`);
}
