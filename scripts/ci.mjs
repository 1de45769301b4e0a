// ci.mjs [PART…]: runs the parts of .ci/run (ci-parts.mjs), as many beside each other as two processors can bear. What only computes is niced, so that it does not
// disturb tests that compare times. Without a PART, runs all. The log of each part is in build/ci, and that
// of what failed is printed at the end, with the command that repeats it.
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { PARTS } from './ci-parts.mjs';

const FOLDER = join('build', 'ci');

/** How many run at a time: of those that wait, of those that compute, and of both. */
const MOST = { waiting: 2, computing: 2, all: 3 };

const wanted = process.argv.slice(2);
const parts = PARTS.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
const names = parts.map(({ name }) => name);
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`unknown part ${unknown.join(', ')}`);
  process.exit(2);
}

rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
const began = Date.now();
const left = [...parts];
const running = new Map();
const ended = new Map();

while (left.length > 0 || running.size > 0) {
  for (let part = nextPart(); part !== undefined; part = nextPart()) {
    left.splice(left.indexOf(part), 1);
    running.set(part, run(part));
  }
  if (running.size === 0) break; // what is left needs something that failed
  const result = await Promise.race(running.values());
  running.delete(result.part);
  ended.set(result.part.name, result);
}
tell();

function nextPart() {
  const runs = [...running.keys()];
  if (runs.length >= MOST.all) return undefined;
  const computing = runs.filter(({ computes = false }) => computes).length;
  const waiting = runs.length - computing;
  const isReady = ({ needs = [], after = [], computes = false }) =>
    needs.every((name) => !names.includes(name) || ended.get(name)?.code === 0) &&
    after.every((name) => !names.includes(name) || ended.has(name)) &&
    (computes ? computing < MOST.computing : waiting < MOST.waiting);
  // What waits first: beside it less may compute.
  return left.filter(isReady).sort((a, b) => Number(a.computes ?? 0) - Number(b.computes ?? 0))[0];
}

async function run(part) {
  const { name, command, computes = false } = part;
  const log = join(FOLDER, `${name}.log`);
  const times = join(FOLDER, `${name}.times`);
  const output = openSync(log, 'w');
  const beganAt = Date.now();
  console.log(`${clock()} ${name} begins: ${command}`);
  const script = `${command}; code=$?; times > ${times}; exit $code`;
  const [program, ...args] = [...(computes ? ['nice', '-n', '5'] : []), 'sh', '-c', script];
  const child = spawn(program, args, { stdio: ['ignore', output, output] });
  const code = await new Promise((done) => child.once('close', (status) => done(status ?? 1)));
  closeSync(output);
  const seconds = (Date.now() - beganAt) / 1000;
  const cpuSeconds = cpuSecondsOf(times);
  const result = code === 0 ? 'passed' : `FAILED (${code})`;
  console.log(
    `${clock()} ${name} ${result} after ${seconds.toFixed(0)} s, ${cpuSeconds.toFixed(0)} s of CPU`,
  );
  return { part, code, log, beganAt, seconds, cpuSeconds };
}

/** The second line of times(1p): user and system time of the children, such as 1m2.5s. */
function cpuSecondsOf(file) {
  try {
    const [, children] = readFileSync(file, 'utf8').split('\n');
    const each = [...children.matchAll(/(\d+)m([\d.]+)s/g)];
    return each.reduce((sum, [, minutes, rest]) => sum + Number(minutes) * 60 + Number(rest), 0);
  } catch {
    return NaN;
  }
}

/** Minutes and seconds since the beginning. */
function clock() {
  const seconds = Math.round((Date.now() - began) / 1000);
  return `${String(Math.floor(seconds / 60)).padStart(2)}:${String(seconds % 60).padStart(2, '0')}`;
}

function tell() {
  const rows = [...ended.values()].map(({ part, code, beganAt, seconds, cpuSeconds }) => {
    return { name: part.name, code, begins: (beganAt - began) / 1000, seconds, cpuSeconds };
  });
  writeFileSync(join(FOLDER, 'parts.json'), JSON.stringify(rows, null, 1));
  const failed = [...ended.values()].filter(({ code }) => code !== 0);
  for (const { part, log } of failed) {
    console.log(`\n== ${part.name} failed; its log:\n${readFileSync(log, 'utf8')}`);
  }
  for (const { name } of left) console.log(`${name} did not run`);
  for (const { part } of failed) console.log(`to repeat ${part.name}: CI=1 ${part.command}`);
  if (failed.length > 0) process.exitCode = 1;
}
