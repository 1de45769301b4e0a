// Lane: patient

import { ExitMonitor } from '../../src';
import { isOwnChild, STARTED_NS } from '../../src/cli/own-children';

import { exitOf } from '../support/ends';
import { mortal, release } from '../support/mortal';
import { itAsListener } from '../support/privilege';

test('a child of an earlier process with our pid is not ours', () => {
  const child = { parentPid: process.pid };
  expect(isOwnChild({ ...child, exitedNs: STARTED_NS - 1 })).toBe(false);
  expect(isOwnChild({ ...child, exitedNs: STARTED_NS + 1 })).toBe(true);
  expect(isOwnChild({ ...child, exitedNs: null })).toBe(true);
  expect(isOwnChild({ parentPid: process.pid + 1, exitedNs: STARTED_NS + 1 })).toBe(false);
});

itAsListener('the kernel’s time stamps and our start are of the same clock', async () => {
  await using monitor = new ExitMonitor({ scope: 'all' });
  await monitor.start();
  const beforeNs = Number(process.hrtime.bigint());
  const child = await mortal();
  const watch = monitor.watch(child.pid);
  await release(child);
  const event = await exitOf(watch);
  if (event.exitedNs === null) throw new Error(`no time stamp: ${event.source}`);
  expect(event.exitedNs).toBeGreaterThan(beforeNs);
  expect(event.exitedNs).toBeLessThan(Number(process.hrtime.bigint()));
  expect(isOwnChild(event)).toBe(true);
});
