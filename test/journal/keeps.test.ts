// Lane: patient

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';

import { bootId } from '../../src/identity/boot-id';
import { JournalWriter } from '../../src/journal';
import { Coverage } from '../../src/journal/coverage';
import { JournalDirectory } from '../../src/journal/journal-directory';

import { call } from '../support/command';
import { endOf, filesIn, Folder, found, rowsOf, textOf } from '../support/journal';
import { until } from '../support/wait';

const FIRST = '0000000000000001.jsonl';

async function write(dir: string, is: readonly number[], more: object = {}): Promise<void> {
  await using journal = new JournalWriter({ dir, ...more });
  for (const i of is) journal.append(endOf(i));
}

test('the first line of a segment is whole, whatever letters it has', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir, [0, 1], { keeps: ['name=ü*', 'name=日本語*'] });
  await write(dir, [2], { keeps: ['name=ü*', 'name=日本語*'] });
  const [header = '', ...rows] = textOf(dir, FIRST).trimEnd().split('\n');
  expect(JSON.parse(header)).toMatchObject({
    ...{ event: 'segment', bootId: bootId(), keeps: ['name=ü*', 'name=日本語*'] },
  });
  expect(rows.map((row) => (JSON.parse(row) as { seq: number }).seq)).toEqual([1, 2, 3]);
});

test('which ends are kept is known of each part of a journal, also when it is compressed', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  const kept = async () => (await Coverage.of(await JournalDirectory.open(dir))).kept();
  await write(dir, [0]);
  expect(await kept()).toEqual([null]);
  await write(dir, [1], { keeps: ['failed'] });
  expect(await kept()).toEqual([null, ['failed']]);
  {
    await using journal = new JournalWriter({ dir, keeps: ['name=ü'.padEnd(20_000, 'ü')] });
    await until('the others to be compressed', async () => {
      await journal.flush();
      return filesIn(dir).filter((name) => name.endsWith('.jsonl')).length === 0;
    });
    journal.append(endOf(2));
  }
  await write(dir, [3], { keeps: [] });
  expect(await kept()).toEqual([null, ['failed'], [expect.stringMatching(/^name=üü/)]]);
  expect((await Coverage.of(await JournalDirectory.open(dir))).kept(endOf(1).exitedAt)).toEqual([
    ...[['failed'], [expect.stringMatching(/^name=üü/)]],
    null,
  ]);
  expect((await rowsOf({ dir })).map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
});

test('a writer that keeps other ends begins a segment, unless the last one has no row', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir, [0], { keeps: ['failed'] });
  await write(dir, [], { keeps: ['killed'] });
  expect(filesIn(dir).filter((name) => name.endsWith('.jsonl'))).toEqual([FIRST]);
  await write(dir, [1], { keeps: ['killed'] });
  await write(dir, [2], { keeps: ['killed'] });
  const segments = filesIn(dir).filter((name) => name.includes('.jsonl'));
  expect(segments.at(-1)).toBe('0000000000000002.jsonl');
  appendFileSync(join(dir, '0000000000000002.jsonl'), 'torn');
  expect(await found({ dir })).toEqual([1, 2, 3]);
});

test.each([['failed'], [[1]], [['x'.repeat(100_000)]]])('keeps: %p is refused', (keeps) => {
  using folder = new Folder();
  expect(() => new JournalWriter({ dir: folder.journal, keeps } as never)).toThrow(
    expect.objectContaining({ code: 'ERR_EXITWATCH_INVALID_OPTION' }) as Error,
  );
});

test('why says which ends a journal does not have', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  const why = async () => (await call('why', 'zzyzx', '--state-dir', folder.path)).stderr;
  await write(dir, [0], { keeps: ['failed', 'name=ü*'] });
  expect((await why()).split('\n')[1]).toBe(
    'This journal keeps only ends that match failed or name=ü*; others are not in it.',
  );
  await write(dir, [1]);
  expect((await why()).split('\n')[1]).toBe(
    'Parts of this journal keep only ends that match failed or name=ü*; others are not in it.',
  );
});
