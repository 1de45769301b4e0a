// npm run bench:journal [-- --rows N] [--exits N] [--rate N] [--storm N] [--rounds N] [--keep DIR] [--json]
//
// What a journal costs: a row when it is written and on disk, questions to a journal of many rows, and
// `exitwatch record` while processes end, N a second and all at once, beside a monitor that does nothing with that, and exitsnoop
// if it is installed. That requires root; it mounts a BPF file system in a folder of its own, which it removes. `--keep DIR` leaves the journal there, or uses the one that is there.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { Contender } from './contender.mjs';
import { median, number, table } from './figures.mjs';
import { compileStorm, generate, WARM_UP, warmUp } from './storm.mjs';
import { findExitsnoop } from './tools.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const BUILD = join(HERE, '..', 'build', 'bench');
const MAIN = join(HERE, '..', 'dist', 'cli', 'main.js');
const { JournalWriter, readJournal } = createRequire(import.meta.url)('../dist/journal/index.js');

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '5000000' },
    exits: { type: 'string', default: '20000' },
    rate: { type: 'string', default: '1000' },
    storm: { type: 'string', default: '50000' },
    'warm-up': { type: 'string', default: '30000' },
    rounds: { type: 'string', default: '5' },
    keep: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const ROWS = Number(values.rows);
const DAY_MS = 86_400_000;
const DAYS = 90;

const folder = mkdtempSync(join(tmpdir(), 'exitwatch-bench-'));
const stateDir = values.keep ?? folder;
const dir = join(stateDir, 'journal');
const figures = {};

const NAMES = ['sh', 'node', 'sleep', 'cat', 'grep', 'python3', 'postgres', 'cron', 'curl', 'git'];
/** So many ends are of the process that is asked for, in all and each day. */
const RARE = 500;

/** Each end 90 days / ROWS after the one before; the last one now. */
function endOf(i, nowMs) {
  const exitedMs = nowMs - ((ROWS - 1 - i) * DAYS * DAY_MS) / ROWS;
  const isRare = i % Math.ceil(ROWS / RARE) === 0;
  const name = isRare ? 'nginx' : NAMES[(i * 7) % NAMES.length];
  const pid = 1000 + ((i * 17) % 4_000_000);
  const startedAt = new Date(exitedMs - (i % 977));
  const sender = {
    signal: 'SIGTERM',
    sentAt: new Date(exitedMs),
    origin: 'kill',
    pid: pid - 1,
    name: 'deploy',
    program: 'bash',
    uid: 1000,
  };
  const session = {
    ...{ cgroup: '/user.slice', unit: 'user.slice', container: null, pod: null, machine: null },
  };
  return {
    ...{
      event: 'exit',
      id: `8a68af16253b-${pid}-${46_497_757 + i}`,
      pid,
      parentPid: pid - 13,
      name,
    },
    ...{
      program: name,
      uid: i % 3 === 0 ? 1000 : 0,
      cgroup: `/system.slice/${NAMES[i % 10]}.service`,
    },
    ...{
      startedAt,
      exitedAt: new Date(exitedMs),
      exitedNs: 5e13 + i * 1_554_321,
      uncertaintyMs: 0,
    },
    ...{
      source: 'connector',
      isRepeated: false,
      lossless: true,
      traced: true,
      tracedSince: startedAt,
    },
    sender: isRare
      ? { ...sender, ...session, ancestors: [{ pid: 900, name: 'bash', ...session }] }
      : null,
    ...{
      raisedAfter: null,
      signalsReceived: [],
      oom: false,
      coreDumped: false,
      unknownReason: null,
    },
    ...(isRare
      ? { how: 'killed', exitCode: null, signal: 'SIGTERM' }
      : { how: 'exited', exitCode: i % 5 === 0 ? 1 : 0, signal: null }),
  };
}

async function write() {
  const nowMs = Date.now();
  const journal = new JournalWriter({ dir, keepBytes: 1e12, keepMs: 1e14 });
  let spent = 0;
  for (let i = 0; i < ROWS;) {
    const ends = Array.from({ length: Math.min(1000, ROWS - i) }, () => endOf(i++, nowMs));
    const before = process.cpuUsage();
    for (const end of ends) journal.append(end);
    await journal.flush();
    const { user, system } = process.cpuUsage(before);
    spent += user + system;
  }
  await journal.close();
  // The last segment is compressed when another one begins, which a second writer waits for.
  const again = new JournalWriter({ dir, segmentBytes: 4096, keepBytes: 1e12, keepMs: 1e14 });
  again.append({ ...endOf(ROWS - 1, nowMs + 1), id: 'the last' });
  const isPacked = () => readdirSync(dir).filter((name) => name.endsWith('.jsonl')).length === 1;
  while (!isPacked()) {
    await again.flush();
    await setTimeout(20);
  }
  await again.close();
  figures.usPerRow = spent / ROWS;
}

/** What a command costs, the median of some rounds. */
async function costOf(...args) {
  const runs = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    const stdio = ['ignore', 'ignore', 'inherit', 'pipe'];
    const child = spawn(process.execPath, ['-r', join(HERE, 'usage.cjs'), ...args], { stdio });
    let text = '';
    child.stdio[3].on('data', (chunk) => (text += chunk));
    await once(child, 'close');
    runs.push(JSON.parse(text));
  }
  return {
    cpuMs: median(runs.map(({ cpuMs }) => cpuMs)),
    rssMiB: median(runs.map(({ rssMiB }) => rssMiB)),
  };
}

/** What ends meanwhile: `args` of the generator. */
const MODES = [
  { name: `${values.rate} exits a second`, args: [values.exits, values.rate] },
  { name: 'a storm', args: [values.storm] },
].filter(({ args }) => Number(args[0]) > 0);

/** The CPU time per exit of a contender, in µs, and how many exits it has not told. */
async function costOfExits(contender, storm, { args }) {
  const running = new Contender(contender);
  await running.ready();
  await warmUp(storm);
  // record runs for months: V8 compiles it for half a minute, in threads whose CPU time counts.
  if (contender.name !== 'exitsnoop') await generate(storm, [values['warm-up'], '1000']);
  const before = running.cpuNs();
  const { exits } = await generate(storm, args);
  // What is written once a second.
  await setTimeout(1500);
  const cpuUs = (running.cpuNs() - before) / 1000 / exits;
  const { seen } = await running.finish();
  const told = contender.stateDir === undefined ? seen : await rowsOfStorm(contender.stateDir);
  const warmUps = contender.name === 'exitsnoop' ? WARM_UP : WARM_UP + Number(values['warm-up']);
  return { cpuUs, lost: Math.max(0, warmUps + exits - told) };
}

async function rowsOfStorm(ofRecord) {
  let rows = 0;
  for await (const row of readJournal({ dir: join(ofRecord, 'journal') })) {
    if (row.event === 'exit' && row.parentName === 'storm') rows++;
  }
  return rows;
}

/** `record` beside a monitor that does nothing with an exit. */
async function measureExits() {
  mkdirSync(BUILD, { recursive: true });
  const storm = compileStorm(BUILD);
  const bpffs = join(folder, 'bpf');
  mkdirSync(bpffs);
  execFileSync('mount', ['-t', 'bpf', 'bpf', bpffs]);
  const monitor = [process.execPath, join(HERE, 'exitwatch.cjs'), String(WARM_UP)];
  const record = (round) => {
    const ofRecord = join(folder, `record-${round}`);
    const places = ['--state-dir', ofRecord, '--pin-dir', join(bpffs, `exitwatch-${round}`)];
    const command = [process.execPath, MAIN, 'record', ...places];
    return { name: 'record', command, tells: false, stateDir: ofRecord };
  };
  const rows = [];
  try {
    for (const mode of MODES) {
      const results = new Map();
      for (let round = 0; round < Number(values.rounds); round++) {
        const contenders = [
          { name: 'a monitor', command: [...monitor, '{"scope":"all"}'], tells: true },
          record(`${rows.length}-${round}`),
          findExitsnoop(),
        ];
        for (const contender of contenders.filter(Boolean)) {
          const { name } = contender;
          const result = await costOfExits(contender, storm, mode);
          results.set(name, [...(results.get(name) ?? []), result]);
        }
      }
      for (const [name, each] of results) {
        const lost = Math.max(...each.map((result) => result.lost));
        rows.push({ mode: mode.name, name, cpuUs: median(each.map(({ cpuUs }) => cpuUs)), lost });
      }
    }
  } finally {
    execFileSync('umount', [bpffs]);
  }
  figures.exits = rows;
}

try {
  if (ROWS > 0) {
    if (!existsSync(dir)) await write();
    const bytes = readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);
    figures.bytesPerRow = bytes / ROWS;
    const ask = (...args) => costOf(MAIN, ...args, '--state-dir', stateDir);
    figures.bare = await costOf('-e', '');
    figures.why = await ask('why', 'nginx', '--since', 'yesterday');
    figures.whyPid = await ask('why', '4242');
    figures.whyMissing = await ask('why', 'zzyzx');
    figures.whyAll = await ask('history', '--name', 'nginx');
    figures.commonName = await ask('history', '--name', 'node', '--failed', '--since', '-1d');
  }
  if (MODES.length > 0 && process.getuid() === 0) await measureExits();
} finally {
  rmSync(folder, { recursive: true });
}

if (values.json) {
  console.log(JSON.stringify(figures));
} else {
  const cost = (title, { cpuMs, rssMiB }) => [
    title,
    `${number(cpuMs)} ms`,
    `${number(rssMiB - figures.bare.rssMiB)} MiB`,
  ];
  if (figures.bare !== undefined) {
    if (figures.usPerRow !== undefined) console.log(`a row: ${number(figures.usPerRow)} µs of CPU`);
    console.log(`a row: ${number(figures.bytesPerRow)} bytes on disk, with the indexes\n`);
    console.log(
      table([
        ['question', 'CPU', 'memory above bare Node.js'],
        cost('nothing (bare Node.js)', figures.bare),
        cost('why nginx --since yesterday', figures.why),
        cost('why 4242', figures.whyPid),
        cost('why zzyzx (which is not there)', figures.whyMissing),
        cost('history --name nginx', figures.whyAll),
        cost('history --name node --failed --since -1d', figures.commonName),
      ]),
    );
  }
  if (figures.exits !== undefined) {
    const rows = figures.exits.map(({ mode, name, cpuUs, lost }) => {
      const plain = figures.exits.find((each) => each.mode === mode).cpuUs;
      return [mode, name, number(cpuUs), `${number(cpuUs / plain, 2)}x`, String(lost)];
    });
    console.log(`\n${table([['', '', 'CPU µs/exit', '', 'lost'], ...rows])}`);
  }
}
