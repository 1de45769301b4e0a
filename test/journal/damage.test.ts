// Lane: patient

import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { JournalWriter, type JournalRow } from '../../src/journal';

import { call } from '../support/command';
import { endOf, filesIn, FIRST, Folder, range, rowsOf, write } from '../support/journal';
import { until } from '../support/wait';

describe('compressed rows that cannot be read any more', () => {
  const written = async (folder: Folder) => {
    const dir = folder.journal;
    const ends = range(0, 4999).map((i) => endOf(i, i === 50 ? { name: 'rare' } : {}));
    const packed = join(dir, `${FIRST}.jsonl.gz`);
    await using journal = new JournalWriter({ dir, segmentBytes: 3 * 1024 * 1024 });
    for (const end of ends) journal.append(end);
    await journal.flush();
    await until('the first segment to be compressed', async () => {
      journal.append(endOf(5000));
      await journal.flush();
      return filesIn(dir).includes(`${FIRST}.jsonl.gz`);
    });
    await journal.close();
    return { dir, packed, index: join(dir, `${FIRST}.index`) };
  };
  const gapsIn = (rows: JournalRow[]) => rows.filter((row) => row.event === 'gap');

  test('are a gap, and the others are read', async () => {
    using folder = new Folder();
    const { dir, packed } = await written(folder);
    const bytes = readFileSync(packed);
    bytes.fill(0, 100, 2000); // in the first block
    writeFileSync(packed, bytes);
    const rows = await rowsOf({ dir });
    const [gap] = gapsIn(rows);
    expect(gap).toMatchObject({ reason: 'damaged', seq: 1, from: endOf(0).exitedAt });
    const lost = gap?.lost ?? NaN;
    expect(lost).toBeGreaterThan(1000);
    const numbers = rows.flatMap((row) => (row.event === 'exit' ? [row.seq] : []));
    expect(numbers[0]).toBe(lost + 1);
    expect(numbers).toEqual(range(lost + 1, lost + numbers.length));
    const { code, stderr } = await call('why', 'rare', '--state-dir', folder.path);
    expect({ code, stderr }).toEqual({
      code: 127,
      stderr: expect.stringContaining(`It lacks ends: up to ${lost} were lost; `) as string,
    });
  });

  test('are a gap of unknown size without an index', async () => {
    using folder = new Folder();
    const { dir, packed, index } = await written(folder);
    writeFileSync(packed, readFileSync(packed).fill(0, 100, 2000));
    rmSync(index);
    expect(gapsIn(await rowsOf({ dir }))).toEqual([
      expect.objectContaining({ reason: 'damaged', lost: null }),
    ]);
  });

  test('do not give their numbers to others', async () => {
    using folder = new Folder();
    const { dir, packed } = await written(folder);
    // All that the next writer finds.
    for (const name of filesIn(dir)) if (name.endsWith('.jsonl')) rmSync(join(dir, name));
    truncateSync(packed, statSync(packed).size - 10);
    const before = (await rowsOf({ dir })).length;
    for (const i of [9001, 9002]) await write(dir, [endOf(i)]);
    const rows = await rowsOf({ dir });
    expect(rows).toHaveLength(before + 2);
    expect(rows.at(-1)).toMatchObject({ id: endOf(9002).id });
  });

  test('because their end is missing, leave the blocks before it', async () => {
    using folder = new Folder();
    const { dir, packed } = await written(folder);
    truncateSync(packed, statSync(packed).size - 10);
    const rows = await rowsOf({ dir });
    expect(gapsIn(rows)).toHaveLength(1);
    expect(rows[0]).toMatchObject({ event: 'exit', seq: 1 });
  });
});

describe('what a power failure has damaged', () => {
  /** Ten ends, of which somebody has damaged some bytes. */
  async function damaged(folder: Folder, spoil: (bytes: Buffer) => void): Promise<JournalRow[]> {
    const dir = folder.journal;
    await write(
      dir,
      range(0, 9).map((i) => endOf(i)),
    );
    const path = join(dir, `${FIRST}.jsonl`);
    const bytes = readFileSync(path);
    spoil(bytes);
    writeFileSync(path, bytes);
    await write(dir, [endOf(20), endOf(3)]);
    await write(dir, [endOf(21)]);
    return rowsOf({ dir });
  }

  test('leaves the rows before and behind it, and is told once', async () => {
    using folder = new Folder();
    const rows = await damaged(folder, (bytes) => {
      const at = bytes.indexOf('{"seq":6,');
      bytes.fill(0, at + 20, bytes.indexOf('{"seq":8,') - 20);
    });
    const gap = { event: 'gap', reason: 'damaged', lost: 2, recovered: 0 };
    const times = { from: endOf(4).exitedAt, to: endOf(7).exitedAt };
    expect(rows.map(({ seq }) => seq)).toEqual([...range(1, 5), ...range(8, 13)]);
    expect(rows.filter(({ event }) => event === 'gap')).toEqual([{ ...gap, ...times, seq: 11 }]);
    expect(rows.at(-1)).toMatchObject({ id: endOf(21).id });
  });

  test('is cut off at the end', async () => {
    using folder = new Folder();
    const rows = await damaged(folder, (bytes) => bytes.fill(0, bytes.indexOf('{"seq":9,') + 9));
    expect(rows.map(({ seq }) => seq)).toEqual(range(1, 10));
    expect(rows.at(-1)).toMatchObject({ id: endOf(21).id });
  });

  test('leaves the rows if it is the first line', async () => {
    using folder = new Folder();
    const rows = await damaged(folder, (bytes) => bytes.fill(0, 0, 40));
    expect(rows.map(({ seq }) => seq)).toEqual(range(1, 12));
  });

  test('is no number, however large', async () => {
    using folder = new Folder();
    const rows = await damaged(folder, (bytes) => {
      const at = bytes.indexOf('{"seq":6,');
      bytes.write('{"seq":9007199254740990,"event":"x"}\n', at);
    });
    expect(rows.map(({ seq }) => seq)).toEqual([...range(1, 5), ...range(7, 13)]);
  });
});
