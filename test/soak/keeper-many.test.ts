// Lane: patient

import { readdirSync, readFileSync } from 'node:fs';

import { KeeperHost } from '../support/keeper';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

const RUNS = 500 * ROUNDS;
const AT_ONCE = 50;
const MOST_KIB = 2048;

function rssKib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]);
}

const descriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

it(`${RUNS} runs that nobody forgets: the keeper has less than 2 MiB, and no descriptor more`, async () => {
  await using host = await KeeperHost.open();
  const pid = host.keeperPid;
  // What it opens once, for runs without a cgroup, is there from then on.
  await host.keeper.start({ id: 'first', command: 'true', cgroup: null });
  await host.end('first');
  const before = descriptors(pid);
  for (let i = 0; i < RUNS; i += AT_ONCE) {
    const ids = Array.from({ length: AT_ONCE }, (_, j) => `run${i + j}`);
    await Promise.all(
      ids.map((id, j) =>
        host.keeper.start({ id, command: 'true', ...(j % 2 === 0 ? { cgroup: null } : {}) }),
      ),
    );
    await Promise.all(ids.map((id) => host.end(id)));
    expect(rssKib(pid)).toBeLessThan(MOST_KIB);
  }
  expect(host.keeper.runs()).toHaveLength(RUNS + 1);
  await until('its descriptors to be closed', () => descriptors(pid) <= before);
  expect(rssKib(pid)).toBeLessThan(MOST_KIB);
  for (const { id } of host.keeper.runs()) {
    await until(`nothing to be left of ${id}`, () => host.keeper.run(id)?.hasMembers === false);
    await host.keeper.forget(id);
  }
  expect(rssKib(pid)).toBeLessThan(MOST_KIB);
}, 600_000);
