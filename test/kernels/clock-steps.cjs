// Steps the wall clock back and forth while services crash, and exits with 1 if one of them is started
// too soon or too late by the clock that nobody sets. It sets the clock of the machine: run it in a guest.
//
//   node test/kernels/run.mjs --add test/kernels/clock-steps.cjs --add build/Release/exitwatch-keeper 6.12 \
//     --command "cp /job/exitwatch-keeper build/Release/ && node /job/clock-steps.cjs"
'use strict';
const { execFileSync } = require('node:child_process');
const { mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { clearInterval, clearTimeout, setInterval, setTimeout } = require('node:timers');

if (process.pid > 2000 || process.cwd() !== '/exitwatch') throw new Error('this is no guest');
const { Supervisor } = require('/exitwatch/dist/supervisor/index.js');

const STARTS = 6;
const LONGEST_MS = 240_000;
/** The emulated machine is slow. */
const LATE_MS = 5000;
const STEPS_S = [-86_400, 86_400 * 30, -3600, 7200, -86_400 * 400, 60];

const now = () => Number(process.hrtime.bigint()) / 1e6;
const services = {
  keeper: new Supervisor({ stateDir: mkdtempSync(join(tmpdir(), 'steps-')) }),
  plain: new Supervisor({ stateDir: mkdtempSync(join(tmpdir(), 'steps-')), withoutKeeper: true }),
};
const failures = [];
let isDone = 0;

for (const [name, supervisor] of Object.entries(services)) {
  let starts = 0;
  let waits = null;
  supervisor.on('backoff', ({ delayMs }) => {
    waits = { atMs: now(), delayMs };
  });
  supervisor.on('started', () => {
    starts++;
    // Two do not wait; those after them 1, 2, 3 and 3 s, however long the wall clock says they have lived.
    const delayMs = [0, 0, 1000, 2000, 3000, 3000][starts - 1];
    const tookMs = waits === null ? 0 : now() - waits.atMs;
    console.log(
      `${name}: start ${starts} after ${Math.round(tookMs)} ms, ${new Date().toISOString()}`,
    );
    if (delayMs > 0 && waits?.delayMs !== delayMs)
      failures.push(`${name} ${starts}: ${waits?.delayMs}`);
    if (waits !== null && (tookMs < waits.delayMs - 20 || tookMs > waits.delayMs + LATE_MS)) {
      failures.push(`${name} ${starts}: ${tookMs} ms instead of ${waits.delayMs}`);
    }
    waits = null;
    if (starts === STARTS && ++isDone === 2) end();
  });
}

let step = 0;
const timer = setInterval(() => {
  const to = Math.floor(Date.now() / 1000) + STEPS_S[step++ % STEPS_S.length];
  execFileSync('date', ['-s', `@${to}`], { stdio: 'ignore' });
}, 700);
const late = setTimeout(() => {
  failures.push('a service is not started any more');
  end();
}, LONGEST_MS);

async function end() {
  clearInterval(timer);
  clearTimeout(late);
  for (const supervisor of Object.values(services)) await supervisor.stopAll({ graceMs: 1 });
  for (const failure of failures) console.log(`FAILED ${failure}`);
  console.log(`${step} steps of the clock, ${failures.length} failures`);
  process.exit(failures.length > 0 ? 1 : 0);
}

void (async () => {
  const backoff = { freeAttempts: 2, firstMs: 1000, capMs: 3000, healthyMs: 60_000 };
  const service = { name: 'web', command: 'sh', args: ['-c', 'sleep 1; exit 1'], backoff };
  for (const supervisor of Object.values(services)) {
    await supervisor.start();
    await supervisor.apply([service]);
  }
})();
