// Lane: patient

import {
  copyFileSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { ExitMonitor, type ExitEvent } from '../../../src';

import { exitOf } from '../../support/ends';
import { EventLog } from '../../support/event-log';
import { describeForEachFilter } from '../../support/filters';
import { KERNEL } from '../../support/kernel';
import { itAsRoot, itAsRootOfHost } from '../../support/privilege';
import { LineProcess, program, run } from '../../support/programs';

const COUNT = 50;

const SHELL = basename(realpathSync('/bin/sh'));

const folder = mkdtempSync(join(tmpdir(), 'exitwatch-program-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** A copy of the program that renames itself. */
function copied(name: string): string {
  const path = join(folder, name);
  copyFileSync(program('renamed'), path);
  return path;
}

/** The events of the processes whose pids the command prints, one at the beginning of each line. */
async function endsOf(
  command: string,
  args: readonly string[],
  options: ConstructorParameters<typeof ExitMonitor>[0] = { scope: 'all' },
): Promise<ExitEvent[]> {
  await using monitor = new ExitMonitor(options);
  const log = new EventLog(monitor);
  await monitor.start();
  const lines = await new LineProcess(command, args).rest();
  const pids = lines.map((line) => Number(line.split(' ')[0]));
  expect(pids.length).toBeGreaterThan(0);
  await log.untilAllOf(pids);
  return [...new Set(pids)].flatMap((pid) => log.of(pid));
}

describeForEachFilter((filter) => {
  const isReported = filter === 'ebpf' && KERNEL.tellsPrograms;

  const programsOf = async (...command: Parameters<typeof endsOf>) =>
    (await endsOf(...command)).map((event) => event.program);

  const orNull = (name: string) => (isReported ? name : null);

  itAsRoot(
    `reports the program of each of ${COUNT} processes that rename themselves before they end`,
    async () => {
      const events = await endsOf(program('renamed'), ['run', String(COUNT), program('renamed')]);
      expect(events).toHaveLength(COUNT);
      for (const event of events) expect(event.program).toBe(orNull('renamed'));
      if (isReported) for (const { name } of events) expect(name).toBe('MainThread');
    },
  );

  itAsRoot('the last exec of a process determines its program', async () => {
    const chain = `echo $$; exec sh -c 'exec ${program('renamed')}'`;
    expect(await programsOf('sh', ['-c', chain])).toEqual([orNull('renamed')]);
  });

  itAsRoot('an exec that fails does not change the program', async () => {
    const failing = 'echo $$; exec /nowhere/at-all';
    expect(await programsOf('sh', ['-c', failing])).toEqual([orNull(SHELL)]);
  });

  itAsRoot.each(['fork', 'vfork'])(
    'after a %s without an exec, a child has its parent’s program',
    async (how) => {
      expect(await programsOf(program('renamed'), [how])).toEqual([orNull('renamed')]);
    },
  );

  itAsRoot('a process whose first thread has left still has its program', async () => {
    const events = await endsOf(program('renamed'), ['threads']);
    expect(events).toMatchObject([{ program: orNull('renamed') }]);
    if (isReported) expect(events).toMatchObject([{ name: 'MainThread' }]);
  });

  itAsRoot('the program of a script is its interpreter', async () => {
    const script = join(folder, 'script');
    writeFileSync(script, '#!/bin/sh\necho $$\n', { mode: 0o755 });
    const [event] = await endsOf(script, []);
    expect(event?.program).toBe(orNull(SHELL));
    if (isReported) expect(event?.name).toBe('script');
  });

  itAsRoot('the program of a symbolic link is its target', async () => {
    const link = join(folder, 'link');
    rmSync(link, { force: true });
    symlinkSync(program('renamed'), link);
    expect(await programsOf(program('renamed'), ['run', '1', link])).toEqual([orNull('renamed')]);
  });

  itAsRoot('a deleted file keeps its name', async () => {
    const path = join(folder, 'deleted');
    copyFileSync(realpathSync('/bin/sh'), path);
    expect(await programsOf(path, ['-c', 'echo $$; rm "$0"; :', path])).toEqual([
      orNull('deleted'),
    ]);
  });

  itAsRoot('a file in memory has the name that it was created with', async () => {
    expect(await programsOf(program('renamed'), ['in-memory'])).toEqual([
      orNull('memfd:in-memory'),
    ]);
  });

  itAsRoot.each([
    ['is reported with a name of 62 bytes', 'x'.repeat(62), true],
    ['is not reported with a name of 63 bytes', 'x'.repeat(63), false],
    ['is not reported with a name of 255 bytes', 'x'.repeat(255), false],
    ['is reported with control characters in its name', 'a\u001b[31m\nb', true],
  ])('a program %s', async (_, name, fits) => {
    const args = ['run', '1', copied(name)];
    expect(await programsOf(program('renamed'), args)).toEqual([fits ? orNull(name) : null]);
  });

  itAsRoot('a process does not get the program of an earlier process with its pid', async () => {
    const events = await endsOf(program('reuse'), ['200', '--exec']);
    expect(new Set(events.map(({ pid }) => pid)).size).toBe(1);
    // A stranger can have the pid for a while, but not the program of those before it either.
    const told = new Set(events.map(({ name, program }) => `${name} ${program}`));
    const strangers = [...told].filter((each) => !/^(reuse|sh) /.test(each));
    if (isReported) expect(told).toEqual(new Set([...strangers, 'reuse reuse', `sh ${SHELL}`]));
    else for (const event of events) expect(event.program).toBeNull();
    for (const stranger of strangers) expect(stranger).not.toMatch(/ reuse$/);
  });

  itAsRoot('a watched process is reported with its program', async () => {
    await using monitor = new ExitMonitor({ scope: 'watched' });
    await monitor.start();
    const chain = `read line; exec ${program('renamed')}`;
    const process = new LineProcess('sh', ['-c', chain]);
    const watch = monitor.watch(process.pid);
    process.child.stdin.end('\n');
    expect((await exitOf(watch)).program).toBe(orNull('renamed'));
  });
});

describe.each(['pidfd', 'poll'] as const)('%s', (source) => {
  test('never reports a program if it did not see the process end with it', async () => {
    await using monitor = new ExitMonitor({ scope: 'watched', source });
    await monitor.start();
    const process = new LineProcess('sh', ['-c', `read line; exec ${program('renamed')}`]);
    const watch = monitor.watch(process.pid);
    process.child.stdin.end('\n');
    expect((await exitOf(watch)).program).toBeNull();
  });
});

itAsRootOfHost(
  'each of 10,000 forks in a row is reported with a program',
  async () => {
    if (!KERNEL.tellsPrograms) return;
    await using monitor = new ExitMonitor({ scope: 'all' });
    const log = new EventLog(monitor);
    await monitor.start();
    const { stdout } = await run(program('brief'), ['10000']);
    const rows = stdout.trim().split('\n');
    // By name as well: 10,000 pids come round while others fork, too.
    const ofRow = (row: string) => {
      const [pid, name] = row.split(' ');
      return log.of(Number(pid)).filter((event) => event.name === name);
    };
    let reported = 0;
    await log.until(`the exits of ${rows.length} processes`, () => {
      while (reported < rows.length && ofRow(rows[reported] ?? '').length > 0) reported++;
      return reported === rows.length;
    });
    const programs = rows.flatMap((row) => ofRow(row).map((event) => event.program));
    expect(new Set(programs)).toEqual(new Set(['brief']));
  },
  180_000,
);
