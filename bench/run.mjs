// npm run bench [-- --rounds N] [--exits N] [--json] [--only NAME,…] [--modes storm,paced,burst]
//                   [--against FOLDER]
//
// With --against, also runs exitwatch as built in another checkout, and compares the two.
//
// Compares exits reported by exitwatch, by a minimal C program (the floor), and by other installed
// tools. Every round runs each of them once, so that all see the same machine.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { availableParallelism, release } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { Contender } from './contender.mjs';
import { least, median, number, table } from './figures.mjs';
import { compile, compileStorm, generate, WARM_UP, warmUp } from './storm.mjs';
import { find, findExitsnoop, withTracefs } from './tools.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const BUILD = join(HERE, '..', 'build', 'bench');
const GO_PACKAGES = '/usr/share/gocode';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    exits: { type: 'string', default: '50000' },
    only: { type: 'string' },
    modes: { type: 'string', default: 'storm,paced,burst' },
    json: { type: 'boolean', default: false },
    against: { type: 'string' },
  },
});
const rounds = Number(values.rounds);
const only = values.only?.split(',');

/** What happens on the host meanwhile: `args` of the generator. */
const MODES = [
  { name: 'storm', args: [values.exits] },
  { name: 'paced', args: ['3000', '1000'] },
  { name: 'burst', args: ['8000'] },
].filter(({ name }) => values.modes.split(',').includes(name));

/** Undefined if Go or its package is missing. */
function compileGo() {
  if (!existsSync(join(GO_PACKAGES, 'src/github.com/vishvananda/netlink'))) return undefined;
  const program = join(BUILD, 'netlink');
  const env = { ...process.env, GO111MODULE: 'off', GOPATH: GO_PACKAGES };
  const args = ['build', '-o', program, join(HERE, 'netlink.go')];
  return spawnSync('go', args, { env, stdio: 'inherit' }).status === 0 ? program : undefined;
}

function contenders() {
  const here = join(HERE, '..');
  const go = compileGo();
  const forkstat = find('forkstat');
  const sigsnoop = find('sigsnoop');
  const found = [
    {
      name: 'floor',
      command: [compile(BUILD, 'floor', join(HERE, 'floor.c')), String(WARM_UP)],
      tells: true,
    },
    ...exitwatchOf(here).flatMap((ours, i) => {
      if (values.against === undefined || ours.isNew) return [ours];
      const theirs = exitwatchOf(values.against)[i];
      return [ours, { ...theirs, name: `${BEFORE}${theirs.name}` }];
    }),
    { name: 'nobody', command: ['cat'], tells: false, others: true },
    go && { name: 'vishvananda/netlink', command: [go, String(WARM_UP)], tells: true },
    forkstat && { name: 'forkstat', command: [forkstat, '-e', 'exit'], tells: false },
    findExitsnoop(),
    sigsnoop && { name: 'sigsnoop', command: withTracefs(sigsnoop), tells: false, others: true },
  ];
  const isWanted = ({ name }) => only === undefined || only.includes(name.replace(BEFORE, ''));
  return found.filter((each) => each && isWanted(each));
}

/** The prefix of the names of the other checkout's contenders. */
const BEFORE = 'before: ';

/** The variants of exitwatch as built in this checkout. */
function exitwatchOf(checkout) {
  const script = [process.execPath, join(checkout, 'bench', 'exitwatch.cjs'), String(WARM_UP)];
  const all = (trace, more) => [...script, JSON.stringify({ scope: 'all', trace, ...more })];
  const one = (trace) => [...script, JSON.stringify({ scope: 'watched', trace }), `${process.pid}`];
  return [
    { name: 'exitwatch', command: all('on'), tells: true },
    // Not known to every other checkout.
    {
      name: 'exitwatch with command lines',
      command: all('on', { commandLines: true }),
      tells: true,
      isNew: true,
    },
    {
      name: 'exitwatch together',
      command: all('on', { maxDelayMs: 100 }),
      tells: true,
      isNew: true,
    },
    { name: 'exitwatch untraced', command: all('off'), tells: true },
    { name: 'exitwatch of one', command: one('on'), tells: true, others: true },
    { name: 'exitwatch of one untraced', command: one('off'), tells: true, others: true },
    {
      name: 'exitwatch cbpf',
      command: all('on'),
      env: { EXITWATCH_FILTER: 'cbpf' },
      tells: true,
    },
  ];
}

async function measure(contender, storm, mode) {
  const running = new Contender(contender);
  await running.ready();
  await warmUp(storm);
  const before = running.cpuNs();
  const { firstNs, tookNs, exits } = await generate(storm, mode.args);
  // With the cBPF filter, some exits are reported only after `statusTimeoutMs`.
  await setTimeout(1500);
  const cpuNs = running.cpuNs() - before;
  const peakMiB = running.peakBytes() / 2 ** 20;
  const told = await running.finish();
  return {
    cpuUs: cpuNs / 1000 / exits,
    p50Us: told.p50Us,
    p99Us: told.p99Us,
    stormUs: tookNs / 1000 / exits,
    // Some report other things than all exits.
    lost: contender.others ? 0 : Math.max(0, WARM_UP + exits - told.seen),
    peakMiB,
    behindMs: !told.lastNs ? null : (told.lastNs - firstNs - tookNs) / 1e6,
  };
}

/** The medians of a contender's rounds; for p99 the best, since any other program may spoil it. */
function summarize(results) {
  const of = (key) => results.map((result) => result[key]);
  return {
    cpuUs: median(of('cpuUs')),
    p50Us: median(of('p50Us')),
    p99Us: least(of('p99Us')),
    stormUs: median(of('stormUs')),
    lost: Math.max(...of('lost')),
    peakMiB: median(of('peakMiB')),
    behindMs: median(of('behindMs')),
  };
}

function print(mode, summaries) {
  const floor = summaries[0];
  const ratio = (value, base) =>
    value === null || value === undefined || !base ? '-' : `${(value / base).toFixed(2)}x`;
  const rows = [
    ['', 'CPU µs/exit', '', 'p50 µs', '', 'p99 µs', '', 'storm µs/exit', '', 'lost', 'peak MiB'],
    ...summaries.map((each) => [
      each.name,
      ...[number(each.cpuUs), ratio(each.cpuUs, floor.cpuUs)],
      ...[number(each.p50Us, 0), ratio(each.p50Us, floor.p50Us)],
      ...[number(each.p99Us, 0), ratio(each.p99Us, floor.p99Us)],
      ...[number(each.stormUs), ratio(each.stormUs, floor.stormUs)],
      String(each.lost),
      number(each.peakMiB, 0),
    ]),
  ];
  console.log(
    `\n${mode.name} (${mode.args.join(' exits, ')}${mode.args[1] ? ' a second' : ' exits'})`,
  );
  console.log(table(rows));
  for (const ours of summaries) {
    const theirs = summaries.find(({ name }) => name === `${BEFORE}${ours.name}`);
    if (theirs === undefined) continue;
    const ratios = ['cpuUs', 'p50Us', 'p99Us', 'stormUs'].map((key) =>
      ratio(ours[key], theirs[key]),
    );
    console.log(`${ours.name}, against before: CPU, p50, p99, storm ${ratios.join(', ')}`);
  }
  for (const { name, behindMs } of summaries) {
    if (mode.name === 'burst' && behindMs !== null) {
      console.log(`${name}: the last handler ran ${number(behindMs)} ms after the last exit`);
    }
  }
}

/** What exitwatch adds to a bare Node: time to load and start, and memory after many events. */
function startUp(checkout) {
  const script = `
    const begin = process.hrtime.bigint();
    const { ExitMonitor } = require(${JSON.stringify(checkout)});
    const monitor = new ExitMonitor({ scope: 'watched' });
    monitor.start().then(() => {
      console.log(Number(process.hrtime.bigint() - begin) / 1e6);
      monitor.close();
    });
  `;
  const run = () => Number(execFileSync(process.execPath, ['-e', script], { encoding: 'latin1' }));
  return median(Array.from({ length: rounds }, run));
}

mkdirSync(BUILD, { recursive: true });
const storm = compileStorm(BUILD);
const all = contenders();
const results = new Map(MODES.map((mode) => [mode, all.map(() => [])]));
for (let round = 0; round < rounds; round++) {
  for (const mode of MODES) {
    for (const [i, contender] of all.entries()) {
      if (!values.json)
        process.stderr.write(`\rround ${round + 1}, ${mode.name}, ${contender.name}\u001b[K`);
      results.get(mode)[i].push(await measure(contender, storm, mode));
    }
  }
}
if (!values.json) process.stderr.write('\r\u001b[K');
const report = { cores: availableParallelism(), kernel: release(), node: process.version, rounds };
const startMs = startUp(join(HERE, '..'));
const tables = MODES.map((mode) => ({
  mode: mode.name,
  results: results.get(mode).map((each, i) => ({ name: all[i].name, ...summarize(each) })),
}));
if (values.json) {
  console.log(JSON.stringify({ ...report, startMs, tables }));
} else {
  console.log(
    `${report.cores} cores, Linux ${report.kernel}, Node.js ${report.node}, ${rounds} rounds`,
  );
  for (const [i, mode] of MODES.entries()) print(mode, tables[i].results);
  console.log(`\nloading the package and start(): ${number(startMs)} ms`);
  if (values.against !== undefined) {
    console.log(`${BEFORE}${number(startUp(resolve(values.against)))} ms`);
  }
}
