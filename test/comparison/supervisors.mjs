// npm run compare:supervisors [-- --write] [-- NAME…]: puts supervisord (Debian's), pm2 (npm's) and exitwatch into the
// same ten situations, and prints, or writes to docs/supervisor-comparison.md, what each did and said. Requires root,
// supervisord and a network for npm.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, stripVTControlCharacters } from 'node:util';

import { drivers } from './drivers.mjs';
import { alive, processesOf, until } from './processes.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false } },
});

const PAGE = 'docs/supervisor-comparison.md';
/** How long a crash loop is watched. */
const LOOP_MS = 10_000;
/** So many characters of what each says fit into a table. */
const MOST_SAID = 120;

/** Each returns what it did, and what it said. */
const SITUATIONS = [
  ['A crash loop: exits with 1 at once, for 10 s', crashLoop],
  ['A stop of a service whose child has a session of its own and ignores SIGTERM', stopTree],
  ['`kill -9` of the supervisor, and another start of it', killSupervisor],
  ['An upgrade of the package while a service runs', upgrade],
  ['The OOM killer ends a service', oom],
  ['A stranger sends SIGTERM', stranger],
  ['The operator stops a service; the supervisor is restarted', operator],
  ['20,000 lines of output, with a limit of 100 kB a file', rotation],
  ['A program that does not exist, beside one that does', noEntry],
  ['Another boot, in which a stranger has the pid of the service', reboot],
];

/** Lives for ever, whoever reads its output or does not. */
const forever = (mark) => `exec sh -c 'while sleep 1; do :; done' ${mark}`;

async function crashLoop(one) {
  const starts = join(one.folder, 'starts');
  await one.start([{ name: 'web', script: `echo >> ${starts}; exit 1` }]);
  await sleep(LOOP_MS);
  const count = readFileSync(starts, 'utf8').length;
  return [`${count} starts`, await one.say('web')];
}

async function stopTree(one) {
  const mark = one.mark('child');
  const child = `trap "" TERM; while :; do sleep 0.1; done; : ${mark}`;
  await one.start([{ name: 'web', script: `setsid sh -c '${child}' & exec sleep 100000` }]);
  await until(() => processesOf(mark).length > 0);
  await one.stop('web');
  await sleep(6000);
  const left = processesOf(mark).length;
  return [left === 0 ? 'nothing is left' : 'its child goes on', await one.status('web')];
}

async function killSupervisor(one) {
  const mark = one.mark('web');
  await one.start([{ name: 'web', script: forever(mark) }]);
  const [before] = await until(() => processesOf(mark));
  await one.kill();
  await sleep(2000);
  const wasAlive = alive(before);
  await one.startAgain();
  await sleep(3000);
  const now = processesOf(mark);
  const others = now.filter(({ pid }) => pid !== before.pid).length;
  const parts = [
    wasAlive ? 'it goes on' : 'it ends with the supervisor',
    now.length > 1
      ? `${now.length} run afterwards`
      : others === 0
        ? 'adopted'
        : 'another one is started',
  ];
  return [parts.join('; '), await one.status('web')];
}

async function upgrade(one) {
  const mark = one.mark('web');
  await one.start([{ name: 'web', script: forever(mark) }]);
  const [before] = await until(() => processesOf(mark));
  await one.upgrade();
  await sleep(3000);
  return [alive(before) ? 'it goes on' : 'it is restarted', await one.status('web')];
}

async function oom(one) {
  const group = memoryGroup(one.name);
  const script = `echo $$ > ${group.procs}; exec tail /dev/zero`;
  await one.start([{ name: 'web', script, isOnce: true }]);
  await sleep(4000);
  group.remove();
  return ['', await one.say('web')];
}

async function stranger(one) {
  const mark = one.mark('web');
  await one.start([{ name: 'web', script: forever(mark) }]);
  const [before] = await until(() => processesOf(mark));
  spawnSync('sh', ['-c', `kill ${before.pid}; exit 0`]);
  await sleep(3000);
  const isAgain = processesOf(mark).length === 1;
  return [isAgain ? 'started again' : 'not started again', await one.say('web')];
}

async function operator(one) {
  const mark = one.mark('web');
  await one.start([{ name: 'web', script: forever(mark) }]);
  await until(() => processesOf(mark));
  await one.stop('web');
  await one.upgrade();
  await sleep(3000);
  const isStopped = processesOf(mark).length === 0;
  return [isStopped ? 'stays stopped' : 'it runs again', await one.say('web')];
}

async function rotation(one) {
  const log = join(one.folder, 'web.log');
  const script =
    'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "line $i"; done; exec sleep 100000';
  await one.start([{ name: 'web', script, log, maxBytes: 100_000 }]);
  await sleep(5000);
  const { stdout } = spawnSync('sh', ['-c', `cat ${log}*`], { encoding: 'utf8', maxBuffer: 1e8 });
  const lines = new Set(stdout.split('\n').filter((line) => line.startsWith('line ')));
  const { stdout: files } = spawnSync('sh', ['-c', `ls ${log}* | wc -l`], { encoding: 'utf8' });
  return [`${20_000 - lines.size} lines lost, ${files.trim()} file(s)`, ''];
}

async function noEntry(one) {
  const mark = one.mark('web');
  await one.start([
    { name: 'gone', command: '/no/such/program' },
    { name: 'web', script: forever(mark) },
  ]);
  await sleep(5000);
  const isUp = processesOf(mark).length === 1;
  return [isUp ? 'the other one runs' : 'the other one does not run', await one.say('gone')];
}

async function reboot(one) {
  const mark = one.mark('web');
  await one.start([{ name: 'web', script: forever(mark) }]);
  const [before] = await until(() => processesOf(mark));
  await one.killAll();
  for (const { pid } of processesOf(mark)) one.killPid(pid);
  await until(() => processesOf(mark).length === 0 && !existsSync(`/proc/${before.pid}`));
  await sleep(1500); // its group may still have the number
  const taker = await takePid(one, before.pid);
  await one.startAgain({ bootId: '11111111-2222-4333-8444-555555555555' });
  await sleep(3000);
  const isEnded = taker.isTaken && !alive({ pid: before.pid });
  const count = processesOf(mark).length;
  const said = await one.status('web');
  taker.end();
  const parts = [
    count === 1 ? 'started' : `${count} run`,
    ...(taker.isTaken ? [] : ['nobody could have the pid']),
    ...(isEnded ? ['the stranger was ended'] : []),
  ];
  return [parts.join('; '), said];
}

/** A process that has this pid. */
async function takePid({ folder }, pid) {
  const program = join(folder, 'take-pid');
  spawnSync('cc', ['-o', program, resolve('test/programs/take-pid.c')]);
  const child = spawn(program, [String(pid)], { stdio: ['pipe', 'pipe', 'ignore'] });
  const isTaken = await new Promise((done) => {
    child.stdout.once('data', () => done(true));
    child.once('close', () => done(false));
  });
  return {
    isTaken,
    end() {
      child.stdin.end();
    },
  };
}

/** A cgroup with little memory. */
function memoryGroup(name) {
  const id = `exitwatch-compare-${name}-${process.pid}`;
  const isV1 = spawnSync('test', ['-d', '/sys/fs/cgroup/memory']).status === 0;
  const path = isV1 ? `/sys/fs/cgroup/memory/${id}` : `/sys/fs/cgroup/${id}`;
  spawnSync('mkdir', [path]);
  writeFileSync(
    join(path, isV1 ? 'memory.limit_in_bytes' : 'memory.max'),
    String(32 * 1024 * 1024),
  );
  return {
    procs: join(path, 'cgroup.procs'),
    remove() {
      spawnSync('rmdir', [path]);
    },
  };
}

function shortened(text) {
  return text.length <= MOST_SAID ? text : `${text.slice(0, MOST_SAID).trimEnd()} …`;
}

async function row([title, situation], kinds) {
  const cells = [];
  for (const kind of kinds) {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-compare-'));
    const one = new kind(folder);
    try {
      const [did, said] = await situation(one);
      const plain = stripVTControlCharacters(said).trim().replaceAll('|', '\\|');
      const text = plain === '' ? '' : `“${shortened(plain.replaceAll(/\s+/g, ' '))}”`;
      cells.push([did, text].filter(Boolean).join(': '));
    } finally {
      await one.end();
      one.endMarked();
      rmSync(folder, { recursive: true, force: true });
    }
    console.error(`${title}: ${one.name}: ${cells.at(-1)}`);
  }
  return `| ${[title, ...cells].join(' | ')} |`;
}

const kinds = await drivers();
const chosen = SITUATIONS.filter(
  ([title]) => positionals.length === 0 || positionals.some((each) => title.includes(each)),
);
const rows = [];
for (const each of chosen) rows.push(await row(each, kinds));
const header = `| situation | ${kinds.map(({ title }) => title).join(' | ')} |`;
const table = [header, `| --- | ${kinds.map(() => '---').join(' | ')} |`, ...rows].join('\n');
if (values.write) {
  const before = readFileSync(PAGE, 'utf8');
  writeFileSync(PAGE, before.replace(/^\| situation [\s\S]*?(?=\n\n|$(?![\s\S]))/m, table));
  spawnSync('npx', ['prettier', '--write', PAGE]);
} else {
  console.log(table);
}
