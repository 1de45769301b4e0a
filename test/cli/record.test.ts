// Lane: patient

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { type JournalRow, JournalWriter } from '../../src/journal';

import { call, exitwatch } from '../support/command';
import { endOf, rowsOf } from '../support/journal';
import { itAsRecorder } from '../support/privilege';
import { TestRecord } from '../support/recording';
import { until } from '../support/wait';

/** A process with a name of its own that waits to be ended. */
function victim(name: string) {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-record-'));
  const path = join(folder, name);
  copyFileSync('/bin/sleep', path);
  const child = spawn(path, ['1000']);
  const ended = once(child, 'exit');
  return {
    pid: child.pid ?? 0,
    child,
    ended,
    remove: () => {
      rmSync(folder, { recursive: true });
    },
  };
}

/** Other tests may end processes that have had a pid before, or get it later. */
const OF_OURS = ['--parent', String(process.pid)];

/** A name, of at most 15 bytes, that no other process of the host has. */
const ownName = (kind: string) => `${kind}-${process.pid}`;

/** What history prints of the end of a process, as soon as the journal has it. */
async function inJournal(record: TestRecord, pid: number): Promise<JournalRow | undefined> {
  await until(`the end of ${pid} to be in the journal`, async () =>
    (await rowsOf({ dir: record.dir, pid })).some((row) => isEndOf(pid, row)),
  );
  const rows = await record.history('--pid', String(pid), ...OF_OURS);
  return rows.find(({ event }) => event === 'exit');
}

const isEndOf = (pid: number, row: JournalRow) =>
  row.event === 'exit' && row.pid === pid && row.parentPid === process.pid;

/** A flood beside the test may make gaps for other reasons. */
const isDowntime = (row: JournalRow) => row.event === 'gap' && row.reason === 'not-recording';

describe('exitwatch record', () => {
  itAsRecorder('writes who ended a process, and why tells it', async () => {
    await using record = new TestRecord();
    expect(await record.start()).toMatchObject({ memory: 'recorder', traced: true });
    const { pid, ended, remove } = victim('webserver');
    const killer = spawn('sh', ['-c', `kill ${pid}; exit 3`]);
    await Promise.all([ended, once(killer, 'exit')]);
    remove();
    const row = await inJournal(record, pid);
    expect(row).toMatchObject({
      name: 'webserver',
      how: 'killed',
      signal: 'SIGTERM',
      sender: { pid: killer.pid, name: 'sh' },
    });
    const own = await inJournal(record, killer.pid ?? 0);
    const startOf = (found: JournalRow | undefined, of: 'sender' | 'own') =>
      new Date(
        found?.event === 'exit'
          ? String(of === 'own' ? found.startedAt : found.sender?.startedAt)
          : NaN,
      );
    expect(Math.abs(startOf(row, 'sender').getTime() - startOf(own, 'own').getTime())).toBeLessThan(
      3,
    );
    const { code, lines, stderr } = await call('why', 'webserver', '--state-dir', record.stateDir);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const text = lines.join('\n');
    expect(lines[0]).toMatch(
      new RegExp(
        `^${pid} \\(webserver\\) killed by SIGTERM from sh \\(pid ${killer.pid}, uid 0\\); it lived `,
      ),
    );
    expect(text).toMatch(new RegExp(`^by +SIGTERM from ${killer.pid} sh, `, 'm'));
    expect(text).toMatch(new RegExp(`^sender +${killer.pid} \\(sh\\) exited 3`, 'm'));
    for (const subject of [String(pid), 'webs*er']) {
      expect((await call('why', subject, '--state-dir', record.stateDir)).lines).toEqual(lines);
    }
    const json = await call('why', 'webserver', '--json', '--state-dir', record.stateDir);
    expect(JSON.parse(json.lines[0] ?? '')).toMatchObject({
      ...{
        event: 'why',
        end: { pid },
        ender: { pid: killer.pid },
        enderEnd: { pid: killer.pid, exitCode: 3 },
      },
    });
    expect(await record.kill()).toBe(0);
  });

  itAsRecorder('has what ended while it did not run, once, and no gap', async () => {
    await using record = new TestRecord();
    await record.start();
    const before = victim('before');
    before.child.kill('SIGKILL');
    await before.ended;
    await inJournal(record, before.pid);
    await record.kill('SIGKILL');
    const between = victim('between');
    before.remove();
    spawnSync('sh', ['-c', `kill -9 ${between.pid}`]);
    await between.ended;
    between.remove();
    await record.start();
    expect(await inJournal(record, between.pid)).toMatchObject({
      source: 'recorder',
      signal: 'SIGKILL',
      sender: { name: 'sh' },
    });
    const rows = await record.history();
    expect(rows.filter(isDowntime)).toEqual([]);
    const ids = rows.flatMap((row) => (row.event === 'exit' ? [row.id] : []));
    expect(new Set(ids).size).toBe(ids.length);
  });

  itAsRecorder('has on disk what ended just before it was told to end', async () => {
    await using record = new TestRecord();
    for (let round = 0; round < 5; round++) {
      await record.start();
      const child = spawn('sleep', ['1000']);
      child.kill();
      await once(child, 'exit');
      expect(await record.kill()).toBe(0);
      const rows = await record.history('--pid', String(child.pid), ...OF_OURS);
      expect(rows.filter(({ event }) => event === 'exit')).toHaveLength(1);
    }
  });

  itAsRecorder('tells as a gap that nothing has recorded', async () => {
    await using record = new TestRecord();
    await record.start();
    spawnSync('true');
    await until(
      'an end to be in the journal',
      async () => (await rowsOf({ dir: record.dir })).length > 0,
    );
    await record.kill();
    expect(
      (
        await call(
          'memory',
          '--remove',
          '--state-dir',
          join(record.stateDir, 'recorder'),
          '--pin-dir',
          record.pinDir,
        )
      ).code,
    ).toBe(0);
    await record.start();
    await until('a gap', async () => (await rowsOf({ dir: record.dir })).some(isDowntime));
    const gap = (await record.history()).find(isDowntime);
    expect(gap).toMatchObject({ reason: 'not-recording', lost: null });
  });

  itAsRecorder.each([
    ['no gap, for a recorder has it', false],
    ['a gap from the end of the recording', true],
  ])('that nothing was kept for a week is %s', async (_, isRemoved) => {
    await using record = new TestRecord();
    const before = new Date();
    await record.start('--match', 'name=zzyzx');
    const note = join(record.dir, 'recording');
    const noted = await until(
      'a note',
      () => JSON.parse(readFileSync(note, 'utf8') || 'null') as { at: string } | null,
    );
    await record.kill('SIGKILL');
    // The last row is of long before.
    {
      await using journal = new JournalWriter({ dir: record.dir, keeps: ['name=zzyzx'] });
      journal.append(endOf(0, { exitedAt: new Date(before.getTime() - 8 * 86_400_000) }));
    }
    if (isRemoved) {
      const recorder = ['--state-dir', join(record.stateDir, 'recorder')];
      const { code } = await call('memory', '--remove', ...recorder, '--pin-dir', record.pinDir);
      expect(code).toBe(0);
    }
    await record.start('--match', 'name=zzyzx');
    const { pid, child, ended, remove } = victim('zzyzx');
    child.kill('SIGKILL');
    await ended;
    remove();
    await inJournal(record, pid);
    const rows = await record.history();
    const gaps = rows.filter(isDowntime);
    const gap = { reason: 'not-recording', from: noted.at };
    expect(gaps).toEqual(isRemoved ? [expect.objectContaining(gap)] : []);
    expect(new Date(noted.at).getTime()).toBeGreaterThanOrEqual(before.getTime());
  });

  itAsRecorder('keeps what --match selects, and counts what is more than --rate', async () => {
    await using record = new TestRecord();
    await record.start('--match', 'failed', '--match', 'name=keep*', '--rate', '3');
    const { pid: dropped } = spawnSync('true');
    const kept = victim(ownName('keep'));
    kept.child.kill('SIGKILL');
    await kept.ended;
    kept.remove();
    execFileSync('sh', ['-c', 'for i in 1 2 3 4 5 6 7 8 9 10; do sh -c "exit 7"; done; exit 0']);
    await inJournal(record, kept.pid);
    const { stderr } = await call('why', 'exitwatch-zzyzx', '--state-dir', record.stateDir);
    expect(stderr).toContain('\nThis journal keeps only ends that match failed or name=keep*; ');
    // Other processes of this host may be called sh and fail, too. A command for each look would
    // keep a slow host from writing.
    let rows: JournalRow[] = [];
    const counts = () =>
      rows.flatMap((row) => (row.event === 'skipped' && row.name === 'sh' ? [row.count] : []));
    const keptShells = () => rows.filter((row) => row.event === 'exit' && row.exitCode === 7);
    await until(
      'the number of those that were skipped',
      async () => {
        rows = await rowsOf({ dir: record.dir });
        const skipped = counts().reduce((sum, count) => sum + count, 0);
        return skipped > 0 && keptShells().length + skipped >= 10;
      },
      () => JSON.stringify({ rows: rows.length, counts: counts(), kept: keptShells() }),
    );
    const isDropped = (row: JournalRow) =>
      row.event === 'exit' && row.pid === dropped && row.parentPid === process.pid;
    expect(rows.filter(isDropped)).toEqual([]);
  });

  itAsRecorder.each([
    ['after it has counted', false],
    ['while the disk is full', true],
  ])(
    'counts what is more than --rate once, if it is killed %s',
    async (_, isFull) => {
      await using record = new TestRecord();
      mkdirSync(record.dir, { mode: 0o700 });
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=0700', 'none', record.dir]);
      // Others end without a pause, so that the recorder always has some that are not done with.
      const others = spawn('sh', ['-c', 'while :; do sleep 0.01; done']);
      try {
        const name = ownName('loop');
        const loop = join(record.stateDir, name);
        copyFileSync('/bin/true', loop);
        await record.start('--match', `name=${name}`, '--rate', '3');
        const filler = join(record.dir, 'filler');
        expect(() => {
          for (;;) appendFileSync(filler, Buffer.alloc(4096));
        }).toThrow('ENOSPC');
        for (let i = 0; i < 10; i++) execFileSync(loop);
        expect(JSON.parse((await record.running.line()) ?? '')).toMatchObject({ event: 'warning' });
        // It would count meanwhile: it does that every ten seconds.
        await setTimeout(11_000);
        if (isFull) await record.kill('SIGKILL');
        rmSync(filler);
        const rows = () => rowsOf({ dir: record.dir });
        // Beside a flood the recorder fills up; ends whose name nobody knows may be of any name.
        const counts = (all: JournalRow[]) => [
          all.filter((row) => row.event === 'exit' && row.name === name).length,
          all.reduce((sum, row) => {
            return sum + (row.event === 'skipped' && row.name === name ? row.count : 0);
          }, 0),
        ];
        let known: JournalRow[] = [];
        const allCounted = () =>
          until(
            'all of them to be counted',
            async () => counts((known = await rows()))[1] === 7,
            () => `${JSON.stringify(known)}\n${record.running.told()}`,
          );
        if (!isFull) {
          await allCounted();
          await record.kill('SIGKILL');
        }
        await record.start('--match', `name=${name}`, '--rate', isFull ? '3' : '100');
        if (isFull) await allCounted();
        await record.kill();
        await record.start('--match', `name=${name}`, '--rate', '100');
        const { pid } = spawnSync(loop);
        await inJournal(record, pid);
        expect(counts(await rows())).toEqual([4, 7]);
      } finally {
        others.kill('SIGKILL');
        execFileSync('umount', ['--lazy', record.dir]);
      }
    },
    180_000,
  );

  itAsRecorder(
    'does not count what it has kept, if it is killed before that is forgotten',
    async () => {
      await using record = new TestRecord();
      const names = [ownName('loop'), ownName('kept')] as const;
      const [loop, kept] = names.map((name) => join(record.stateDir, name)) as [string, string];
      for (const path of [loop, kept]) copyFileSync('/bin/true', path);
      const matches = names.flatMap((name) => ['--match', `name=${name}`]);
      const script = (times: number, name: string) => `for i in $(seq ${times}); do ${name}; done`;
      await record.start(...matches, '--rate', '100');
      // Those that are counted are not done with for ten seconds, nor is what follows them.
      execFileSync('sh', ['-c', script(120, loop)]);
      execFileSync('sh', ['-c', script(10, kept)]);
      const keptRows = async () => {
        const rows = await rowsOf({ dir: record.dir, name: names[1] });
        return rows.filter(({ event }) => event === 'exit').length;
      };
      await until('what it keeps to be in the journal', async () => (await keptRows()) === 10);
      await record.kill('SIGKILL');
      await record.start(...matches, '--rate', '3');
      await record.kill();
      const rows = await record.history();
      expect(rows.filter((row) => row.event === 'skipped' && row.name === names[1])).toEqual([]);
      expect(await keptRows()).toBe(10);
    },
  );

  itAsRecorder('refuses a second one, and a directory that others can write', async () => {
    await using record = new TestRecord();
    await record.start();
    const second = await call('record', '--state-dir', record.stateDir);
    expect(second).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/^exitwatch: another writer owns /) as string,
    });
    const open = mkdtempSync(join(tmpdir(), 'exitwatch-record-'));
    mkdirSync(join(open, 'journal'));
    execFileSync('chmod', ['777', join(open, 'journal')]);
    expect(await call('record', '--state-dir', open)).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/is writable by users other than its owner/) as string,
    });
    rmSync(open, { recursive: true });
  });

  itAsRecorder('leaves a directory as it is that others can reach already', async () => {
    await using record = new TestRecord();
    chmodSync(record.stateDir, 0o755);
    chownSync(record.stateDir, 0, 65_534);
    await record.start('--group', 'adm');
    const { mode, gid } = statSync(record.stateDir);
    expect([mode & 0o777, gid]).toEqual([0o755, 65_534]);
  });

  itAsRecorder('does not open a directory to a group that belongs to another one', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'exitwatch-group-'));
    chmodSync(dir, 0o770);
    chownSync(dir, 0, 65_534);
    expect(await call('record', '--group', 'adm', '--state-dir', dir)).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('it belongs to another group') as string,
    });
    expect(statSync(dir).mode & 0o777).toBe(0o770);
    rmSync(dir, { recursive: true });
  });

  itAsRecorder('lets a group read the journal', async () => {
    await using record = new TestRecord();
    await record.start('--group', 'adm');
    const { gid, mode } = statSync(record.stateDir);
    expect([mode & 0o777, statSync(record.dir).mode & 0o777, gid]).toEqual([
      0o750,
      0o750,
      statSync(record.dir).gid,
    ]);
    expect(gid).not.toBe(0);
  });
});

describe('exitwatch history', () => {
  itAsRecorder('prints the table of watch, and follows', async () => {
    await using record = new TestRecord();
    await record.start();
    const following = exitwatch(
      'history',
      '--follow',
      '--name',
      'followed',
      '--json',
      '--state-dir',
      record.stateDir,
    );
    const { pid, child, ended, remove } = victim('followed');
    child.kill('SIGKILL');
    await ended;
    remove();
    const line = await following.line();
    expect(JSON.parse(line ?? '')).toMatchObject({
      event: 'exit',
      pid,
      name: 'followed',
      signal: 'SIGKILL',
    });
    following.child.kill('SIGINT');
    expect(await following.ended).toBe(0);
    const table = await call(
      'history',
      '--since',
      '-1h',
      '--killed-by',
      String(process.pid),
      '--name',
      'followed',
      '--state-dir',
      record.stateDir,
    );
    expect(table.lines[0]).toMatch(/^TIME +PID +PARENT +UID +NAME +LIVED +HOW +BY$/);
    expect(table.lines.at(-1)).toMatch(
      new RegExp(`^[\\d:.]+ +${pid} .* followed +.* killed SIGKILL +${process.pid} `),
    );
    expect(
      (await call('history', '--since', 'tomorrow', '--state-dir', record.stateDir)).lines,
    ).toEqual([]);
  });
});

test('the unit has what the options say', async () => {
  const { code, lines } = await call(
    'record',
    '--print-unit',
    '--group',
    '0',
    '--match',
    'name=a b%',
    '--rate=5',
  );
  expect(code).toBe(0);
  expect(lines).toEqual(
    expect.arrayContaining([
      'Type=notify',
      'StateDirectoryMode=0750',
      'CapabilityBoundingSet=CAP_BPF CAP_PERFMON CAP_NET_ADMIN CAP_DAC_READ_SEARCH CAP_CHOWN',
    ]),
  );
  expect(lines.find((line) => line.startsWith('ExecStart='))).toMatch(
    / record --group 0 --match "name=a b%%" --rate=5$/,
  );
});

test('the unit has absolute paths, and knows what --uninstall removes', async () => {
  const { lines } = await call(
    'record',
    '--print-unit',
    '--state-dir',
    'here',
    '--pin-dir=../pins',
  );
  const [here, pins] = [resolve('here'), resolve('../pins')];
  expect(lines.find((line) => line.startsWith('ExecStart='))).toContain(
    ` record --state-dir ${here} --pin-dir=${pins}`,
  );
  expect(lines).toEqual(
    expect.arrayContaining([
      'StartLimitIntervalSec=0',
      ...['[X-Exitwatch]', `StateDir=${here}`, `PinDir=${pins}`],
    ]),
  );
});
