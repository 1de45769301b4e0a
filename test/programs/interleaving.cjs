// node interleaving.cjs ROUNDS, as the first process of a pid namespace with a /proc of its own. In
// each round several callers stop a process while it ends by itself or ignores the signal. As soon
// as it is dead, a stranger gets its pid, and exits with 66 if any signal reaches it. Prints what
// went wrong, and a count.
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { setTimeout } = require('node:timers/promises');

const { identify } = require('../..');
const { isAlive, stop } = require('../../dist/process');

const MORTAL = join(__dirname, '..', '..', 'build', 'test-programs', 'mortal');
const LAST_PID = '/proc/sys/kernel/ns_last_pid';

const random = (below) => Math.floor(Math.random() * below);
const wrong = [];
const outcomes = {};
let reused = 0;

const KINDS = [
  [],
  ['--ignore-term'],
  ['--exit-after', '0'],
  ['--exit-after', '2'],
  ['--exit-after', '4'],
];

/** Without exitwatch: the process with this pid is dead or another one, or there is none. */
function isGone({ pid }) {
  try {
    const [state] = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '');
    const called = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
    return (
      state === 'Z' || state === 'X' || !called.startsWith(MORTAL) || called.includes('--stranger')
    );
  } catch {
    return true;
  }
}

/** Starts a stranger with this pid, unless another process takes it first. */
function spawnStranger(pid) {
  writeFileSync(LAST_PID, String(pid - 1));
  const stranger = spawn(MORTAL, ['--stranger'], { stdio: ['pipe', 'pipe', 'inherit'] });
  if (stranger.pid === pid) reused++;
  return { stranger, ended: once(stranger, 'exit'), ready: once(stranger.stdout, 'data') };
}

async function stopOnce(identity, round) {
  await setTimeout(random(4));
  const options = { forceKillAfterDelayMs: random(6), confirmTimeoutMs: 20_000 };
  const result = await stop(identity, options);
  outcomes[result.outcome] = (outcomes[result.outcome] ?? 0) + 1;
  if (result.outcome === 'timed-out') wrong.push(`${round}: timed out`);
  if (!isGone(identity)) wrong.push(`${round}: ${result.outcome}, and it is there`);
  if (isAlive(identity) !== 'dead') wrong.push(`${round}: alive`);
}

async function play(round) {
  const child = spawn(MORTAL, KINDS[random(KINDS.length)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const dead = once(child, 'exit').then(() => spawnStranger(child.pid));
  const identity = identify(child.pid);
  if (random(4) > 0) await once(child.stdout, 'data');
  if (identity === null) {
    wrong.push(`${round}: never there`);
    return;
  }
  if (random(3) === 0) void setTimeout(random(5)).then(() => child.stdin.end());
  child.stdin.on('error', () => {});
  await Promise.all(Array.from({ length: 1 + random(3) }, () => stopOnce(identity, round)));
  const { stranger, ended, ready } = await dead;
  await ready;
  const late = await stop(identity);
  if (late.outcome !== 'already-gone') wrong.push(`${round}: late ${late.outcome}`);
  stranger.stdin.end();
  const [code, signal] = await ended;
  if (code !== 0) wrong.push(`${round}: a stranger was signalled: ${code} ${signal}`);
}

async function main() {
  const rounds = Number(process.argv[2]);
  for (let round = 0; round < rounds; round++) await play(round);
  console.log(JSON.stringify({ rounds, reused, outcomes, wrong }));
}

void main();
