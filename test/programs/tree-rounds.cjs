// node tree-rounds.cjs KIND ROUNDS [CGROUP]: stops a random tree (tree.c) in each round. Nothing of
// it may be left, and no other process may get a signal: not its parent, nor its siblings in the
// same session, group and cgroup, which all exit with 66 if they get one. Prints what went wrong,
// and a count.
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { setTimeout } = require('node:timers/promises');

const { stop } = require('../../dist/process');

const PROGRAMS = join(__dirname, '..', '..', 'build', 'test-programs');
const [, , kind, rounds, base] = process.argv;
const FIRST_SEED = Number(process.env.EXITWATCH_SEED ?? Date.now() % 1_000_000);

const wrong = [];
const outcomes = {};
const foundBy = {};
let members = 0;

/** Without exitwatch: the living processes with the token among their arguments. */
function living(token) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        const isDead = /^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
        return !isDead && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(token);
      } catch {
        return false;
      }
    });
}

async function startStranger(cgroup) {
  const child = spawn(join(PROGRAMS, 'mortal'), ['--stranger'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  if (cgroup !== null) writeFileSync(join(cgroup, 'cgroup.procs'), String(child.pid));
  return async (round) => {
    child.stdin.end();
    const [code, signal] = await exited;
    if (code !== 0) wrong.push(`${round}: a sibling was signalled: ${code} ${signal}`);
  };
}

/** The last processes may still be leaving it. */
async function remove(cgroup, at) {
  for (let tries = 0; tries < 100; tries++) {
    try {
      rmdirSync(cgroup);
      return;
    } catch {
      await setTimeout(10);
    }
  }
  wrong.push(`${at}: ${readFileSync(join(cgroup, 'cgroup.procs'))} in the cgroup`);
}

async function play(round) {
  const seed = FIRST_SEED + round;
  const token = `tree-${process.pid}-${seed}`;
  const cgroup = base === undefined ? null : `${base}-${round}`;
  if (cgroup !== null) mkdirSync(cgroup);
  const isShared = kind === 'shared';
  const args = [isShared ? 'session' : kind, String(seed), token];
  if (cgroup !== null) args.push(cgroup);
  const release = await startStranger(isShared ? cgroup : null);
  const parent = spawn(join(PROGRAMS, 'tree'), args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(parent, 'exit');
  const ended = once(parent.stdout, 'close');
  const [line] = await once(parent.stdout, 'data');
  const root = Number(line);
  await setTimeout(Math.random() * 30);

  const { outcome, tree } = await stop(root, {
    tree: true,
    forceKillAfterDelayMs: Math.floor(Math.random() * 150),
    confirmTimeoutMs: 20_000,
  });
  const isPopulated =
    kind === 'cgroup' &&
    readFileSync(join(cgroup, 'cgroup.events'), 'latin1').includes('populated 1');
  const left = living(token).filter((pid) => pid !== parent.pid);
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  members += tree.members.length;
  for (const each of tree.members) foundBy[each.foundBy] = (foundBy[each.foundBy] ?? 0) + 1;
  const at = `${round} (seed ${seed})`;
  if (outcome === 'timed-out') wrong.push(`${at}: timed out`);
  if (isPopulated) wrong.push(`${at}: ${outcome}, and its cgroup is populated`);
  if (left.length > 0) wrong.push(`${at}: ${outcome}, and there are ${left}`);
  if (tree.members.some(({ identity }) => identity.pid === parent.pid)) wrong.push(`${at}: parent`);
  if ((tree.cgroup !== null) !== (kind === 'cgroup')) wrong.push(`${at}: cgroup ${tree.cgroup}`);
  const processes = tree.members.map(({ identity }) => identity.id);
  if (new Set(processes).size !== processes.length) wrong.push(`${at}: a member twice`);

  await release(at);
  parent.stdin.end();
  const [code, signal] = await exited;
  if (code !== 0) wrong.push(`${at}: the parent was signalled: ${code} ${signal}`);
  for (const pid of left) process.kill(pid, 'SIGKILL');
  // The pipe ends when no process has it any more, however it was forked.
  const late = setTimeout(5000, 'late', { ref: false });
  if ((await Promise.race([ended, late])) === 'late') wrong.push(`${at}: its output has no end`);
  if (cgroup !== null) await remove(cgroup, at);
}

async function main() {
  for (let round = 0; round < Number(rounds); round++) await play(round);
  console.log(JSON.stringify({ kind, rounds: Number(rounds), outcomes, members, foundBy, wrong }));
}

void main();
