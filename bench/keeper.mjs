// npm run bench:keeper: how long a start takes by a keeper, beside setsid(1) and systemd-run(1), each
// until the command was executed. Medians, in alternation.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

const { Keeper } = createRequire(import.meta.url)('../dist/supervisor/index.js');

const FIRST = 20;
const STARTS = 300;

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

async function timed(work) {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

/** A command whose output says that it was executed. */
async function spoken(command, ...args) {
  const child = spawn(command, [...args, 'echo', 'x'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  await once(child.stdout, 'data');
  return closed;
}

async function withKeeper(use) {
  const stateDir = mkdtempSync(join(tmpdir(), 'exitwatch-bench-'));
  const keeper = new Keeper({ stateDir });
  keeper.on('empty', ({ id }) => void keeper.forget(id).catch(() => undefined));
  await use(keeper);
  while (keeper.runs().length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await keeper.close();
  rmSync(stateDir, { recursive: true });
}

const first = [];
for (let i = 0; i < FIRST; i++) {
  await withKeeper(async (keeper) => {
    const start = async () => {
      await keeper.open();
      await keeper.start({ id: 'first', command: '/bin/true' });
    };
    first.push(await timed(start));
  });
}

const hasSystemd = spawnSync('systemd-run', ['--quiet', '--wait', 'true']).status === 0;
const times = { cgroup: [], shim: [], setsid: [], 'systemd-run': [] };
await withKeeper(async (keeper) => {
  await keeper.open();
  for (let i = 0; i < STARTS; i++) {
    const start = (id, more) => keeper.start({ id: `${id}${i}`, command: '/bin/true', ...more });
    times.cgroup.push(await timed(() => start('c')));
    times.shim.push(await timed(() => start('s', { cgroup: null })));
    times.setsid.push(await timed(() => spoken('setsid')));
    if (hasSystemd && i % 10 === 0) {
      times['systemd-run'].push(await timed(() => spoken('systemd-run', '--quiet', '--pipe')));
    }
  }
});

console.log(`first start, with that of the keeper: ${median(first).toFixed(1)} ms`);
for (const [name, all] of Object.entries(times)) {
  const text = all.length === 0 ? 'cannot run here' : `${median(all).toFixed(2)} ms`;
  console.log(`${name}: ${text}`);
}
console.log(`keeper / setsid: ${(median(times.cgroup) / median(times.setsid)).toFixed(2)}`);
