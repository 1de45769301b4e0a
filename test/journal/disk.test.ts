// Lane: patient

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';

import { lossReasonOf, RowQueue } from '../../src/journal/row-queue';
import { JournalWriter } from '../../src/journal';
import { segmentsIn } from '../../src/journal/segment-files';

import { endOf, filesIn, Folder, range, rowsOf } from '../support/journal';
import { itAsRoot } from '../support/privilege';
import { REPOSITORY, run } from '../support/programs';
import { ROUNDS } from '../support/rounds';

/** A folder on a file system of its own, of a given size. */
class SmallDisk {
  readonly #folder = new Folder();
  readonly path = join(this.#folder.path, 'disk');

  constructor(kibibytes: number) {
    mkdirSync(this.path);
    execFileSync('mount', [
      '-t',
      'tmpfs',
      '-o',
      `mode=0700,size=${kibibytes}k`,
      'tmpfs',
      this.path,
    ]);
  }

  grow(kibibytes: number): void {
    execFileSync('mount', ['-o', `remount,size=${kibibytes}k`, this.path]);
  }

  [Symbol.dispose](): void {
    execFileSync('umount', [this.path]);
    this.#folder[Symbol.dispose]();
  }
}

/** The numbers of ends that a journal has, and of those that it says it lacks. */
async function accountOf(dir: string): Promise<{ ids: Set<string>; kept: number; lost: number }> {
  const rows = await rowsOf({ dir });
  const damaged = rows.reduce(
    (sum, row) => sum + (row.event === 'gap' && row.reason === 'damaged' ? (row.lost ?? NaN) : 0),
    0,
  );
  const numbers = rows.map(({ seq }) => seq).sort((a, b) => a - b);
  expect(new Set(numbers).size).toBe(rows.length);
  expect(numbers.at(-1) ?? 0).toBe(rows.length + damaged);
  const ids = rows.flatMap((row) => (row.event === 'exit' ? [row.id] : []));
  const lost = rows.reduce((sum, row) => sum + (row.event === 'gap' ? (row.lost ?? NaN) : 0), 0);
  return { ids: new Set(ids), kept: ids.length, lost };
}

describe('a full disk', () => {
  itAsRoot('costs nothing if there is room again before there are too many rows', async () => {
    using disk = new SmallDisk(512);
    const dir = join(disk.path, 'journal');
    const troubles: (string | null)[] = [];
    const stored: string[] = [];
    await using journal = new JournalWriter({
      dir,
      onTrouble: (error) => troubles.push(error?.message ?? null),
      onStored: (exits) => stored.push(...exits.map(({ id }) => id)),
    });
    for (const i of range(0, 1999)) {
      journal.append(endOf(i));
      if (i % 100 === 99) await journal.flush();
    }
    expect(troubles).toEqual([expect.stringMatching(/cannot be used: no space left on device$/)]);
    expect(stored.length).toBeGreaterThan(100);
    expect(stored.length).toBeLessThan(1900);
    expect((await accountOf(dir)).ids).toEqual(new Set(stored));
    disk.grow(16 * 1024);
    await journal.flush();
    expect(troubles.at(-1)).toBeNull();
    expect(await accountOf(dir)).toMatchObject({ kept: 2000, lost: 0 });
    expect(stored).toEqual(range(0, 1999).map((i) => endOf(i).id));
  });

  itAsRoot('is a gap with the exact number if there are too many', async () => {
    using disk = new SmallDisk(512);
    const dir = join(disk.path, 'journal');
    let stored = 0;
    await using journal = new JournalWriter({ dir, onStored: (exits) => (stored += exits.length) });
    for (const i of range(0, 24_999)) {
      journal.append(endOf(i));
      if (i % 1000 === 999) await journal.flush();
    }
    disk.grow(64 * 1024);
    await journal.flush();
    const { kept, lost } = await accountOf(dir);
    expect(lost).toBeGreaterThan(1000);
    expect({ all: kept + lost, stored }).toEqual({ all: 25_000, stored: 25_000 });
    const gap = (await rowsOf({ dir })).find(({ event }) => event === 'gap');
    expect(gap).toMatchObject({ reason: 'disk-full' });
  });

  itAsRoot(
    'does not make a number of what nobody could count, nor gives up what was counted',
    async () => {
      using disk = new SmallDisk(512);
      const dir = join(disk.path, 'journal');
      await using journal = new JournalWriter({ dir });
      const times = { from: new Date('2026-11-20'), to: new Date('2026-11-21') };
      while (journal.trouble === null) {
        for (const i of range(0, 99)) journal.append(endOf(i));
        await journal.flush();
      }
      journal.append({ event: 'gap', ...times, lost: null, reason: 'not-recording', recovered: 0 });
      journal.append({ event: 'skipped', ...times, name: 'loop', program: 'loop', count: 7 });
      for (const i of range(0, 19_999)) journal.append(endOf(100 + i));
      disk.grow(64 * 1024);
      await journal.flush();
      const rows = (await rowsOf({ dir })).filter(({ event }) => event !== 'exit');
      expect(rows).toEqual([
        expect.objectContaining({ reason: 'disk-full', lost: expect.any(Number) as number }),
        expect.objectContaining({ reason: 'not-recording', lost: null }),
        expect.objectContaining({ event: 'skipped', count: 7 }),
      ]);
    },
  );

  itAsRoot('is told by the next writer if this one is killed before there is room', async () => {
    using disk = new SmallDisk(512);
    const dir = join(disk.path, 'journal');
    const script = join(REPOSITORY, 'test', 'programs', 'journal-writer.cjs');
    const killed = run(process.execPath, [script, REPOSITORY, dir, '30000']);
    await expect(killed).rejects.toMatchObject({ signal: 'SIGKILL' });
    const { stdout } = (await killed.catch((error: unknown) => error)) as { stdout: string };
    disk.grow(64 * 1024);
    await new JournalWriter({ dir }).close();
    const { kept, lost } = await accountOf(dir);
    expect(lost).toBeGreaterThan(1000);
    expect(kept + lost).toBe(Number(stdout));
    await new JournalWriter({ dir }).close();
    expect(await accountOf(dir)).toMatchObject({ kept, lost });
  });
});

/** Does to the bytes that were not synced what a power failure may do. */
function damage(path: string, synced: number): void {
  const bytes = readFileSync(path);
  const start = synced + Math.floor(Math.random() * (bytes.length - synced + 1));
  const end = start + Math.floor(Math.random() * (bytes.length - start + 1));
  switch (Math.floor(Math.random() * 3)) {
    case 0:
      truncateSync(path, start);
      return;
    case 1:
      bytes.fill(0, start, end);
      break;
    case 2:
      for (let i = start; i < end; i++) bytes[i] = Math.floor(Math.random() * 256);
  }
  writeFileSync(path, bytes);
}

test(
  `a power failure costs nothing that was on disk, at ${20 * ROUNDS} moments`,
  async () => {
    using folder = new Folder();
    const dir = folder.journal;
    const stored = new Set<string>();
    const synced = new Map<string, number>();
    const newest = () =>
      `${String(segmentsIn(filesIn(dir)).at(-1)?.first ?? 0).padStart(16, '0')}.jsonl`;
    await using journal = new JournalWriter({
      dir,
      segmentBytes: 128 * 1024,
      onStored: (exits) => {
        for (const { id } of exits) stored.add(id);
        synced.set(newest(), statSync(join(dir, newest())).size);
      },
    });
    let i = 0;
    for (const round of range(1, 20 * ROUNDS)) {
      const flushes: Promise<void>[] = [];
      for (let left = Math.random() * 300; left > 0; left--) {
        journal.append(endOf(i++));
        if (Math.random() < 0.03) flushes.push(journal.flush());
        if (Math.random() < 0.05) await setImmediate();
      }
      const before = new Set(stored);
      const name = newest();
      const size = synced.get(name) ?? 0;
      const copy = join(folder.path, `copy-${round}`);
      // A segment may be compressed meanwhile: as at a power failure, then both forms may be there.
      cpSync(dir, copy, { recursive: true, filter: (path) => !path.includes('.gz.') });
      if (filesIn(copy).includes(name)) damage(join(copy, name), size);
      await new JournalWriter({ dir: copy }).close();
      const { ids, kept } = await accountOf(copy);
      expect([...before].filter((id) => !ids.has(id))).toEqual([]);
      expect(ids.size).toBe(kept);
      await Promise.all(flushes);
    }
  },
  60_000 * ROUNDS,
);

test('rows that another failure has kept from the disk are not said to have had no room', () => {
  expect(['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'].map((code) => lossReasonOf({ code }))).toEqual([
    ...['disk-full', 'disk-full', 'not-written', 'not-written'],
  ]);
  const queue = new RowQueue();
  for (const i of range(0, 20_000)) queue.push(endOf(i), 'not-written');
  expect(queue.takeDropped().loss).toMatchObject({ reason: 'not-written' });
});
