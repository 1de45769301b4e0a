// Lane: patient

import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ExitMonitor, type ExitEvent } from '../../../src';

import { EventLog } from '../../support/event-log';
import { KERNEL } from '../../support/kernel';
import { itAsListener, itAsRootOfHost } from '../../support/privilege';
import { LineProcess, program } from '../../support/programs';

const MODES = ['plain', 'threads', 'left', 'leader-first', 'killed'] as const;

/** How its parent takes its status. */
const REAPED = {
  'by its parent': '',
  'late by its parent': '',
  'at once by nobody': `trap '' CHLD; `, // an ignored SIGCHLD is inherited over exec
} as const;

const IS_EMULATED = process.env['EXITWATCH_EMULATED'] !== undefined;

/** Between the program's last look and its end, it only frees its memory. */
const MOST_MORE_MS = IS_EMULATED ? 5000 : 100;

/**
 * What it ran since the scheduler last counted is missing, here or in what its parent is told. What
 * counted twice would be 2.
 */
const [LEAST_SHARE, MOST_SHARE] = IS_EMULATED ? [0.5, 1.9] : [0.9, 1.5];

async function exitOf(log: EventLog, pid: number, isOurs: (event: ExitEvent) => boolean) {
  let found: ExitEvent | undefined;
  await log.until(`the exit of ${pid}`, () => {
    found = log.of(pid).find(isOurs);
    return found !== undefined;
  });
  if (found === undefined) throw new Error('there is no exit');
  return found;
}

const cases = MODES.flatMap((mode) =>
  (Object.keys(REAPED) as (keyof typeof REAPED)[]).map((reaped) => [mode, reaped] as const),
);

itAsRootOfHost.each(cases)(
  'what the program used is known: %s, reaped %s',
  async (mode, reaped) => {
    await using monitor = new ExitMonitor({ scope: 'all' });
    const log = new EventLog(monitor);
    await monitor.start();
    const late = reaped === 'late by its parent' ? 'sleep 0.3; ' : '';
    const script = `${REAPED[reaped]}"$1" "$2" 120 & echo $!; ${late}wait; :`;
    const parent = new LineProcess('sh', ['-c', script, 'sh', program('busy'), mode]);
    const pid = Number(await parent.line());
    const [cpuNs = NaN, peakBytes = NaN] = ((await parent.line()) ?? '').split(' ').map(Number);
    await parent.ended;
    const { usage, parentPid, parentName } = await exitOf(
      log,
      pid,
      ({ program: file, name }) => (file ?? name) === 'busy',
    );
    const { userMs = NaN, systemMs = NaN, maxRssBytes = NaN } = usage ?? {};
    expect(userMs + systemMs).toBeGreaterThanOrEqual(cpuNs / 1e6);
    expect(userMs + systemMs).toBeLessThan(cpuNs / 1e6 + MOST_MORE_MS);
    // The kernel counts pages of each thread in lots of 64.
    expect(Math.abs(maxRssBytes - peakBytes)).toBeLessThan(4 * 1024 * 1024);
    const parents: unknown[] = [[parent.pid, 'sh']];
    // A shell reaps what it finds while it waits for another child: too early for such a kernel.
    if (!KERNEL.tellsPrograms) parents.push([null, null]);
    expect(parents).toContainEqual([parentPid, parentName]);
  },
);

itAsRootOfHost('what a process used counts once, even if it is reaped at that moment', async () => {
  await using monitor = new ExitMonitor({ scope: 'all' });
  const log = new EventLog(monitor);
  await monitor.start();
  const reaper = new LineProcess(program('reaper'), ['300', '3']);
  const told = (await reaper.rest()).map((line) => line.split(' ').map(Number));
  expect(told).toHaveLength(300);
  const shares: (number | null)[] = [];
  for (const [pid = 0, us = NaN] of told) {
    const { usage } = await exitOf(log, pid, ({ name }) => name === 'reaper');
    shares.push(usage && ((usage.userMs + usage.systemMs) * 1000) / us);
  }
  expect(
    shares.filter((share) => share !== null && (share < LEAST_SHARE || share > MOST_SHARE)),
  ).toEqual([]);
  // Unknown only if a hypervisor stops the parent's processor amid the reaping.
  expect(shares.filter((share) => share === null).length).toBeLessThan(30);
});

itAsRootOfHost('bytes that a program causes to be written to storage are counted', async () => {
  await using monitor = new ExitMonitor({ scope: 'all' });
  const log = new EventLog(monitor);
  await monitor.start();
  const file = join(tmpdir(), `exitwatch-usage-${process.pid}`);
  try {
    const written = 3 * 1024 * 1024;
    const options = [`of=${file}`, 'bs=64k', 'count=48', 'conv=fsync', 'status=none'];
    const writer = new LineProcess('dd', ['if=/dev/zero', ...options]);
    await writer.ended;
    const { usage } = await exitOf(log, writer.pid, ({ name }) => name === 'dd');
    // The file system may add what describes the file.
    const least = mountOf(tmpdir()).includes(' tmpfs ') ? 0 : written;
    expect(usage?.writtenBytes).toBeGreaterThanOrEqual(least);
    expect(usage?.writtenBytes).toBeLessThan(least + 512 * 1024);
  } finally {
    rmSync(file, { force: true });
  }
});

/** The line in /proc/mounts of the file system that has this folder. */
function mountOf(folder: string): string {
  const lines = readFileSync('/proc/mounts', 'utf8').split('\n');
  const isAbove = (line: string) =>
    `${folder}/`.startsWith(`${line.split(' ')[1]}/`.replace('//', '/'));
  return (
    lines
      .filter(isAbove)
      .sort((a, b) => (a.split(' ')[1] ?? '').length - (b.split(' ')[1] ?? '').length)
      .at(-1) ?? ''
  );
}

itAsListener.each(['cbpf', 'pidfd', 'poll'] as const)('%s knows neither', async (source) => {
  if (source === 'cbpf') process.env['EXITWATCH_FILTER'] = 'cbpf';
  try {
    await using monitor = new ExitMonitor({ source: source === 'cbpf' ? 'auto' : source });
    await monitor.start();
    const child = new LineProcess('sleep', ['1000']);
    const watch = monitor.watch(child.pid);
    child.child.kill();
    expect(await watch.exited).toMatchObject({ usage: null, parentName: null });
  } finally {
    delete process.env['EXITWATCH_FILTER'];
  }
});
