// node tree-reuse.cjs ROUNDS, as the first process of a pid namespace with a /proc of its own. In
// each round the root of a tree, which leads a session, ends by SIGTERM while a member of another
// session lives on. As soon as its session is empty, a stranger gets its pid, leads a session with
// that number, and has a child in it. Neither of the two may get a signal. Prints what went wrong,
// and a count.
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { setTimeout } = require('node:timers/promises');

const { stop } = require('../../dist/process');

const MORTAL = join(__dirname, '..', '..', 'build', 'test-programs', 'mortal');

const wrong = [];
let reused = 0;

async function play(round) {
  const script = `setsid ${MORTAL} --ignore-term <&3 & wait`;
  const root = spawn('sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  });
  let said = '';
  root.stdout.on('data', (data) => (said += data));
  while (said !== 'ready\n') await setTimeout(1);
  const taken = once(root, 'exit').then(async () => {
    writeFileSync('/proc/sys/kernel/ns_last_pid', String(root.pid - 1));
    const stranger = spawn(MORTAL, ['--stranger', '--child'], {
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
    });

    const ended = once(stranger, 'exit');
    if (stranger.pid === root.pid) reused++;
    await once(stranger.stdout, 'data');
    return { stranger, ended };
  });
  const { outcome, tree } = await stop(root.pid, { tree: true, forceKillAfterDelayMs: 100 });
  if (outcome !== 'forced') wrong.push(`${round}: ${outcome}`);
  if (tree.members.length > 2) wrong.push(`${round}: ${tree.members.length} members`);
  const { stranger, ended } = await taken;
  stranger.stdin.end();
  const [code, signal] = await ended;
  if (code !== 0) wrong.push(`${round}: a stranger was signalled: ${code} ${signal}`);
}

async function main() {
  const rounds = Number(process.argv[2]);
  for (let round = 0; round < rounds; round++) await play(round);
  console.log(JSON.stringify({ rounds, reused, wrong }));
}

void main();
