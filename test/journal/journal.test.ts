// Lane: unit

import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { readFileSync } from 'node:fs';

import { type JournalEvent, JournalWriter, type JournalRow, readJournal } from '../../src/journal';

import { JournalFolder } from '../../src/journal/journal-folder';
import { packSegment } from '../../src/journal/pack-segment';
import { eventText, rowStart } from '../../src/journal/rows';
import { segmentsIn } from '../../src/journal/segment-files';
import { BLOCK_SET_BYTES, TermSet } from '../../src/journal/terms';

import {
  endOf,
  filesIn,
  FIRST,
  Folder,
  found,
  killedBy,
  range,
  rowsOf,
  textOf,
  write,
} from '../support/journal';
import { H2, H3, USER } from '../support/places';
import { until } from '../support/wait';

const isPacked = (dir: string) => () =>
  filesIn(dir).filter((name) => name.endsWith('.jsonl')).length <= 1;

test('a segment of an earlier boot that has only its header is none to go on with, nor to compress', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir, [endOf(0)]);
  const header = JSON.parse(textOf(dir, `${FIRST}.jsonl`).split('\n', 1).join('')) as object;
  const other = { ...header, bootId: '11111111-2222-4333-8444-555555555555' };
  writeFileSync(join(dir, `${FIRST}.jsonl`), `${JSON.stringify(other)}\n`);
  await using journal = new JournalWriter({ dir });
  for (const i of range(1, 3)) {
    journal.append(endOf(i));
    await journal.flush();
  }
  expect(filesIn(dir).filter((name) => name.includes(FIRST))).toEqual([`${FIRST}.jsonl`]);
  expect(await found({ dir })).toEqual([1, 2, 3]);
});

test('rows come back as they were, with numbers', async () => {
  using folder = new Folder();
  const ends = [
    endOf(0),
    endOf(1, killedBy('deploy', 77, 1)),
    endOf(2, { name: 'a\u001b[31m\u2028é"' }),
  ];
  await write(folder.journal, ends);
  expect(await rowsOf({ dir: folder.journal })).toEqual(
    ends.map((end, i) => ({ seq: i + 1, ...end })),
  );
  const lines = textOf(folder.journal, `${FIRST}.jsonl`).trimEnd().split('\n');
  expect(lines).toHaveLength(4);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ event: 'segment', version: 1, first: 1 });
  expect(lines.join('')).not.toMatch(/[^ -~é]/);
});

test.each([
  ...['1970-01-01T00:00:00.000Z', '2026-11-24T03:00:00.007Z', '2026-11-24T03:00:00.070Z'],
  ...['2026-11-24T03:00:01.700Z', '9999-12-31T23:59:59.999Z', '+010000-01-01T00:00:00.000Z'],
  ...['1969-12-31T23:59:59.999Z', '-000001-01-01T00:00:00.000Z'],
])('a row has the time %s as JSON has it', (text) => {
  const exitedAt = new Date(text);
  const end = endOf(0, { exitedAt, startedAt: exitedAt, tracedSince: null });
  expect(JSON.parse(eventText(end))).toEqual(JSON.parse(JSON.stringify(end)));
  expect(eventText(end)).toContain(`"exitedAt":"${text}"`);
});

test('a writer says what is on disk, and an end by a signal is there before others would be', async () => {
  using one = new Folder();
  using other = new Folder();
  const stored: string[] = [];
  const onStored = (exits: readonly { id: string }[]) => {
    stored.push(...exits.map(({ id }) => id));
  };
  await using ordinary = new JournalWriter({ dir: one.journal, onStored });
  await using urgent = new JournalWriter({ dir: other.journal, onStored });
  const [exited, killed] = [endOf(0), endOf(1, killedBy('sh', 7, 0))];
  ordinary.append(exited);
  urgent.append(killed);
  await until('both to be stored', () => stored.length === 2);
  expect(stored).toEqual([killed.id, exited.id]);
  expect(await found({ dir: one.journal })).toEqual([1]);
  expect(await found({ dir: other.journal })).toEqual([1]);
});

test('complete segments are compressed, and stay readable by zcat', async () => {
  using folder = new Folder();
  const ends = range(0, 999).map((i) => endOf(i));
  {
    await using journal = new JournalWriter({ dir: folder.journal, segmentBytes: 64 * 1024 });
    for (const [i, end] of ends.entries()) {
      journal.append(end);
      if (i % 50 === 49) await journal.flush();
    }
    await until('the segments to be compressed', async () => {
      await journal.flush();
      journal.append({
        event: 'source',
        at: new Date(0),
        source: 'pidfd',
        previous: 'connector',
        filter: null,
        downgrade: null,
        namesPrograms: false,
      });
      return isPacked(folder.journal)();
    });
  }
  const packed = filesIn(folder.journal).filter((name) => name.endsWith('.gz'));
  expect(packed.length).toBeGreaterThan(5);
  const text = gunzipSync(readFileSync(join(folder.journal, `${FIRST}.jsonl.gz`))).toString();
  expect(text.split('\n')[1]).toMatch(/^\{"seq":1,"event":"exit"/);
  const rows = await rowsOf({ dir: folder.journal });
  expect(rows.filter(({ event }) => event === 'exit').map(({ seq }) => seq)).toEqual(
    range(1, 1000),
  );
});

describe('a query', () => {
  const folder = new Folder();
  const dir = folder.journal;
  const id = '3f2a9c1b04de5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c';
  const OUTER = 'abcd'.repeat(16);

  beforeAll(async () => {
    const ends = range(0, 599).map((i) => endOf(i));
    ends[100] = endOf(100, { name: 'nginx', program: 'nginx', ...killedBy('deploy', 4242, 100) });
    ends[300] = endOf(300, { name: 'a-name-of-15-by', program: 'a-name-of-15-bytes' });
    ends[400] = endOf(400, { cgroup: `/system.slice/docker-${id}.scope` });
    ends[401] = endOf(401, {
      cgroup: `/system.slice/docker-${H2}.scope`,
      container: { runtime: 'docker', id: H2, name: 'shop-db' },
    });
    ends[402] = endOf(402, { cgroup: `${USER}/app.slice/pipewire.service` });
    ends[403] = endOf(403, { cgroup: `/docker/${OUTER}/docker/${H3}` });
    ends[500] = endOf(500, { cgroup: '/system.slice/a\\x2db.service' });
    await write(dir, ends);
  });

  afterAll(() => {
    folder[Symbol.dispose]();
  });

  test.each([
    ['name', { name: 'nginx' }, [101]],
    ['name with wildcards', { name: 'ngin?' }, [101]],
    ['name that the kernel cut', { name: 'a-name-of-15-bytes' }, [301]],
    ['pid', { pid: 1042 }, [43]],
    ['unit', { unit: 'a\\x2db.service' }, [501]],
    ['container', { container: id }, [401]],
    ['unit around its own', { unit: 'user@1000.service' }, [403]],
    ['name of a container', { container: 'shop-db' }, [402]],
    ['short id of a container', { container: id.slice(0, 12) }, [401]],
    ['shorter id', { container: id.slice(0, 5) }, [401]],
    ['container around its own', { container: OUTER.slice(0, 12) }, [404]],
    ['name of a killer', { killedBy: 'deploy' }, [101]],
    ['pid of a killer', { killedBy: 4242 }, [101]],
    ['several', { killedBy: 4242, name: 'nginx', unit: 'web.service' }, [101]],
    ['several that contradict each other', { killedBy: 4242, name: 'sh' }, []],
    [
      'time',
      { since: new Date('2026-11-24T03:01:00Z'), until: new Date('2026-11-24T03:01:02Z') },
      [61, 62, 63],
    ],
    ['what is not there', { name: 'zzyzx' }, []],
  ])('finds rows by %s', async (_, query, numbers) => {
    expect(await found({ dir, ...query })).toEqual(numbers);
  });

  test.each([
    [{}, 'dir is the path of a journal'],
    [{ dir: '' }, 'dir must be a path'],
    [{ dir, nmae: 'x' }, 'unknown option "nmae"'],
    [{ dir, pid: '1' }, 'pid must be an integer from 1 to 2147483647'],
    [{ dir, since: new Date('x') }, 'since must be a valid Date'],
    [{ dir, since: new Date(2), until: new Date(1) }, 'since must not be later than until'],
    [{ dir, unit: '' }, 'unit must be a string that is not empty'],
    [{ dir, follow: 1 }, 'follow is true or false'],
  ])('with %j is refused', (query, message) => {
    expect(() => readJournal(query as never)).toThrow(
      expect.objectContaining({ code: 'ERR_EXITWATCH_INVALID_OPTION', message }) as Error,
    );
  });
});

test('without an index, a compressed segment is read as a whole', async () => {
  using folder = new Folder();
  await using journal = new JournalWriter({ dir: folder.journal, segmentBytes: 4096 });
  for (const i of range(0, 29)) journal.append(endOf(i, i === 3 ? { name: 'nginx' } : {}));
  await journal.flush();
  journal.append(endOf(30));
  await journal.flush();
  await until('the segment to be compressed', () =>
    filesIn(folder.journal).includes(`${FIRST}.index`),
  );
  writeFileSync(join(folder.journal, `${FIRST}.index`), 'damaged');
  expect(await found({ dir: folder.journal, name: 'nginx' })).toEqual([4]);
  expect(await found({ dir: folder.journal })).toEqual(range(1, 31));
});

test('a later writer goes on, cuts off a torn row, and does not write an end twice', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(
    dir,
    range(0, 9).map((i) => endOf(i)),
  );
  appendFileSync(join(dir, `${FIRST}.jsonl`), '{"seq":11,"event":"exit","id":"x"');
  const stored: string[] = [];
  {
    await using journal = new JournalWriter({
      dir,
      onStored: (exits) => stored.push(...exits.map(({ id }) => id)),
    });
    expect(journal.last).toMatchObject({ at: endOf(9).exitedAt });
    journal.append({ ...endOf(9), isRepeated: true });
    journal.append(endOf(10));
  }
  expect(stored).toEqual([endOf(9).id, endOf(10).id]);
  const rows = await rowsOf({ dir });
  expect(rows.map((row) => row.event === 'exit' && row.id)).toEqual(
    range(0, 10).map((i) => endOf(i).id),
  );
  expect(filesIn(dir)).toEqual(['.lock', `${FIRST}.jsonl`, 'loss']);
});

test('an end is kept although thousands may have asked for it', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  const end = killedBy('systemd', 1, 0);
  const client = {
    ...{ pid: 9, name: 'systemctl', uid: 1000, commandLine: ['systemctl', 'x'.repeat(100)] },
    ...{ startedAt: new Date(0), endedAt: null },
  };
  const onBehalf = { onBehalf: true, onBehalfReason: 'service-manager' } as const;
  const by = (count: number, i: number) => {
    const likelyClients = Array<typeof client>(count).fill(client);
    return endOf(i, { ...end, sender: { ...end.sender, ...onBehalf, likelyClients } as never });
  };
  await write(dir, [by(10, 0), by(5000, 1)]);
  const rows = (await rowsOf({ dir })).filter((row) => row.event === 'exit');
  expect(rows.map(({ sender }) => [sender?.name, sender?.likelyClients?.length])).toEqual([
    ['systemd', 10],
    ['systemd', undefined],
  ]);
});

test('a row of a later version cuts off nothing', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir, [endOf(0)]);
  appendFileSync(join(dir, `${FIRST}.jsonl`), '{"seq":2,"event":"resurrection","id":"x"}\n');
  await write(dir, [endOf(1)]);
  await write(dir, [endOf(2)]);
  expect(await found({ dir })).toEqual([1, 3, 4]);
});

test('a segment of a later version is left alone', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir, [endOf(0)]);
  const later = join(dir, '0000000000000002.jsonl');
  const text = '{"event":"segment","version":2,"first":2}\n{"seq":2,"event":"exit"}\n';
  writeFileSync(later, text);
  expect(() => new JournalWriter({ dir })).toThrow(
    expect.objectContaining({
      code: 'ERR_EXITWATCH_STATE_DIR',
      message: expect.stringContaining('has version 2, and this release knows 1') as string,
    }) as Error,
  );
  expect(readFileSync(later, 'utf8')).toBe(text);
  expect(await found({ dir })).toEqual([1]);
});

test('a segment whose header never reached the disk is no obstacle', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir, [endOf(0)]);
  writeFileSync(join(dir, '0000000000000002.jsonl'), '');
  await write(dir, [endOf(1)]);
  expect(await found({ dir })).toEqual([1, 2]);
});

test('a second writer is refused', async () => {
  using folder = new Folder();
  await using first = new JournalWriter({ dir: folder.journal });
  first.append(endOf(0));
  expect(() => new JournalWriter({ dir: folder.journal })).toThrow(
    expect.objectContaining({ code: 'ERR_EXITWATCH_IN_USE' }) as Error,
  );
});

test('ends are read in the order of the kernel’s time stamps, whatever the wall clock and the writing', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  // The clock was set back by an hour after the third end; the fifth one was written last.
  const back = (i: number) => ({ exitedAt: new Date(endOf(i).exitedAt.getTime() - 3_600_000) });
  const ends = [
    endOf(0),
    endOf(1),
    endOf(2),
    endOf(3, back(3)),
    endOf(5, back(5)),
    endOf(4, back(4)),
  ];
  {
    await using journal = new JournalWriter({ dir });
    for (const end of ends) {
      journal.append(end);
      await journal.flush();
    }
  }
  const pids = (rows: JournalRow[]) => rows.map((row) => (row.event === 'exit' ? row.pid : 0));
  expect(pids(await rowsOf({ dir }))).toEqual(range(1000, 1005));
  expect(pids(await rowsOf({ dir, until: new Date('2026-11-24T02:30:00Z') }))).toEqual([
    1003, 1004, 1005,
  ]);
});

test('the wall clock does not decide when a segment ends', async () => {
  using folder = new Folder();
  let wallMs = Date.now();
  let monotonicNs = 1e12;
  const clock = { now: () => wallMs, monotonicNs: () => monotonicNs };
  const dir = folder.journal;
  await using journal = JournalWriter.withClock({ dir }, clock);
  const put = async (i: number) => {
    journal.append(endOf(i));
    await journal.flush();
  };
  const segments = () => segmentsIn(filesIn(dir)).length;
  await put(0);
  wallMs += 365 * 86_400_000;
  await put(1);
  expect(segments()).toBe(1);
  wallMs = 0;
  monotonicNs += 86_400_001e6;
  await put(2);
  expect(segments()).toBe(2);
  expect(await found({ dir })).toEqual([1, 2, 3]);
});

test('a segment without a row, which another one replaces, is not compressed', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir, [endOf(0)]);
  // As if the disk had been full since its header was written.
  truncateSync(join(dir, `${FIRST}.jsonl`), textOf(dir, `${FIRST}.jsonl`).indexOf('\n') + 1);
  let monotonicNs = Number(process.hrtime.bigint());
  const clock = { now: () => Date.now(), monotonicNs: () => monotonicNs };
  await using journal = JournalWriter.withClock({ dir }, clock);
  monotonicNs += 86_400_001e6;
  for (const i of range(1, 5)) {
    journal.append(endOf(i));
    await journal.flush();
  }
  expect(filesIn(dir).filter((name) => name.includes(FIRST))).toEqual([`${FIRST}.jsonl`]);
  expect(await found({ dir })).toEqual(range(1, 5));
});

test('a row of a moment when the clock was ahead keeps no segment for longer', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  const ahead = new Date(Date.now() + 10 * 365 * 86_400_000);
  const keepMs = 86_400_000;
  const day = 86_400_000;
  let wallMs = Date.now();
  const clock = { now: () => wallMs, monotonicNs: () => Number(process.hrtime.bigint()) };
  await using journal = JournalWriter.withClock({ dir, segmentBytes: 4096, keepMs }, clock);
  journal.append(endOf(0, { exitedAt: ahead }));
  let i = 1;
  const put = async () => {
    for (let n = 0; n < 10; n++) journal.append(endOf(i++, { exitedAt: new Date(wallMs) }));
    await journal.flush();
  };
  await until('the first segment to be compressed', async () => {
    await put();
    return filesIn(dir).includes(`${FIRST}.jsonl.gz`);
  });
  wallMs += 2 * day;
  await until('it to be removed', async () => {
    await put();
    return !filesIn(dir).some((name) => name.includes(FIRST));
  });
});

test('only so much is kept, in whole segments, and never less than the latest one', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await using journal = new JournalWriter({ dir, segmentBytes: 16 * 1024, keepBytes: 64 * 1024 });
  for (const i of range(0, 1999)) {
    journal.append(endOf(i));
    if (i % 25 === 24) await journal.flush();
  }
  const size = () => filesIn(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);
  await until('the journal to be small', async () => {
    journal.append(endOf(2000));
    await journal.flush();
    return isPacked(dir)() && size() < 96 * 1024;
  });
  await journal.close(); // nothing more is removed while we read
  const numbers = await found({ dir });
  expect(numbers[0]).toBeGreaterThan(1);
  expect(numbers).toEqual(range(numbers[0] ?? 0, numbers.at(-1) ?? 0));
});

test('a segment that is removed while it is compressed does not come back', async () => {
  using folder = new Folder();
  await write(
    folder.journal,
    range(0, 49).map((i) => endOf(i)),
  );
  const own = new JournalFolder(folder.journal, undefined);
  await packSegment(own, 1, null, () => {
    own.remove(`${FIRST}.jsonl`);
    return false;
  });
  own.close();
  expect(filesIn(folder.journal).filter((name) => name.includes(FIRST))).toEqual([]);
});

test('a clock that jumps ahead does not remove everything', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  let wallMs = Date.parse('2026-11-24T03:00:00Z');
  const clock = { now: () => wallMs, monotonicNs: () => Number(process.hrtime.bigint()) };
  await using journal = JournalWriter.withClock({ dir, segmentBytes: 4096 }, clock);
  const put = async (from: number, to: number) => {
    for (const i of range(from, to)) {
      journal.append(endOf(i));
      await journal.flush();
    }
  };
  await put(0, 49);
  const segments = () => segmentsIn(filesIn(dir)).map(({ first }) => first);
  const untilPacked = () =>
    until('all but the last to be compressed', async () => {
      await journal.flush();
      return isPacked(dir)();
    });
  await untilPacked();
  const before = segments();
  expect(before.length).toBeGreaterThan(5);
  wallMs += 10 * 365 * 86_400_000;
  await put(50, 59);
  await untilPacked();
  const after = segments();
  const begun = after.filter((first) => !before.includes(first));
  expect(begun.length).toBeGreaterThan(0);
  expect(before.filter((first) => !after.includes(first)).length).toBe(2 * begun.length);
});

test('a reader that follows gets each row once, over segments that begin, are compressed and removed', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await using journal = new JournalWriter({ dir, segmentBytes: 8192 });
  journal.append(endOf(0));
  await journal.flush();
  const ending = new AbortController();
  const numbers: number[] = [];
  const reading = (async () => {
    for await (const { seq } of readJournal({ dir, follow: true, signal: ending.signal })) {
      numbers.push(seq);
      if (seq === 500) ending.abort();
    }
  })();
  for (const i of range(1, 499)) {
    journal.append(endOf(i));
    if (i % 10 === 9) await journal.flush();
  }
  await until(
    'the reader to have all',
    () => numbers.length >= 500,
    () => `${numbers.length} rows`,
  );
  await reading;
  expect(numbers).toEqual(range(1, 500));
});

describe('a reader that follows', () => {
  /** What it yields, as it does. */
  class Follower implements AsyncDisposable {
    readonly rows: JournalRow[] = [];
    readonly #ending = new AbortController();
    readonly #reading: Promise<void>;

    constructor(dir: string) {
      this.#reading = (async () => {
        const { signal } = this.#ending;
        for await (const row of readJournal({ dir, follow: true, signal })) this.rows.push(row);
      })();
    }

    get pids(): (number | string)[] {
      return this.rows.map((row) => (row.event === 'exit' ? row.pid : row.event));
    }

    async [Symbol.asyncDispose](): Promise<void> {
      this.#ending.abort();
      await this.#reading;
    }
  }

  const line = (seq: number, event: JournalEvent) =>
    `${rowStart(seq)}${eventText(event).slice(1)}\n`;
  const gap: JournalEvent = {
    ...{ event: 'gap', from: endOf(1).exitedAt, to: endOf(1).exitedAt, lost: 1 },
    ...{ reason: 'disk-full', recovered: 0 },
  };

  test.each([
    ['shorter', 0],
    ['longer', 9],
  ])('notices that what it read was written again, even if it is %s then', async (_, more) => {
    using folder = new Folder();
    const dir = folder.journal;
    await write(dir, [endOf(0)]);
    const path = join(dir, `${FIRST}.jsonl`);
    const before = readFileSync(path, 'utf8');
    await using follower = new Follower(dir);
    appendFileSync(path, line(2, endOf(1)) + line(3, endOf(2)));
    await until('all rows', () => follower.rows.length === 3);
    const after = [
      line(2, gap),
      line(3, endOf(2)),
      ...range(4, 3 + more).map((i) => line(i, endOf(i))),
    ];
    const whole = before + after.join('');
    // As the disk is full, the writer takes them back, gives up the first one, and tells of that.
    if (more === 0) truncateSync(path, before.length);
    if (more === 0) await setTimeout(500);
    writeFileSync(path, whole);
    const expected = [1000, 1001, 1002, 'gap', ...range(4, 3 + more).map((i) => 1000 + i)];
    await until(
      'all of the rest',
      () => follower.rows.length === expected.length,
      () => String(follower.pids),
    );
    await setTimeout(500);
    expect(follower.pids).toEqual(expected);
  });

  test('finds a segment that was begun, given up and begun again', async () => {
    using folder = new Folder();
    const dir = folder.journal;
    await write(dir, [endOf(0)]);
    const header = textOf(dir, `${FIRST}.jsonl`)
      .split('\n', 1)
      .join('')
      .replace('"first":1', '"first":2');
    await using follower = new Follower(dir);
    await until('the first row', () => follower.rows.length === 1);
    const path = join(dir, `${FIRST.slice(0, -1)}2.jsonl`);
    for (const text of ['', `${header}\n`]) {
      writeFileSync(path, text, { mode: 0o600 });
      await setTimeout(700);
      rmSync(path);
      await setTimeout(300);
    }
    writeFileSync(path, `${header}\n${line(2, endOf(1))}`, { mode: 0o600 });
    await until('the second row', () => follower.rows.length === 2);
    expect(follower.pids).toEqual([1000, 1001]);
  });

  test('ends when it is told to, even if a segment became shorter before another one began', async () => {
    using folder = new Folder();
    const dir = folder.journal;
    await write(dir, [endOf(0), endOf(1)]);
    const follower = new Follower(dir);
    await until('both rows', () => follower.rows.length === 2);
    const path = join(dir, `${FIRST}.jsonl`);
    const text = readFileSync(path, 'utf8');
    truncateSync(path, text.length - 10);
    writeFileSync(join(dir, `${FIRST.slice(0, -1)}2.jsonl`), text.split('\n', 1).join('') + '\n', {
      mode: 0o600,
    });
    await setTimeout(700);
    await follower[Symbol.asyncDispose]();
    expect(follower.pids).toEqual([1000, 1001]);
  });
});

describe('a journal that somebody else may have written', () => {
  test('is not read', async () => {
    using folder = new Folder();
    const dir = folder.journal;
    await write(dir, [endOf(0)]);
    chmodSync(join(dir, `${FIRST}.jsonl`), 0o666);
    await expect(found({ dir })).rejects.toMatchObject({ code: 'ERR_EXITWATCH_JOURNAL' });
    chmodSync(dir, 0o777);
    await expect(found({ dir })).rejects.toMatchObject({ code: 'ERR_EXITWATCH_JOURNAL' });
    expect(() => new JournalWriter({ dir })).toThrow(
      expect.objectContaining({ code: 'ERR_EXITWATCH_STATE_DIR' }) as Error,
    );
  });

  test('a symbolic link is not followed', async () => {
    using folder = new Folder();
    const dir = folder.journal;
    mkdirSync(dir);
    const elsewhere = join(folder.path, 'elsewhere');
    writeFileSync(elsewhere, '');
    symlinkSync(elsewhere, join(dir, `${FIRST}.jsonl`));
    await expect(found({ dir })).rejects.toMatchObject({ code: 'ERR_EXITWATCH_JOURNAL' });
    expect(() => new JournalWriter({ dir })).toThrow(
      expect.objectContaining({ code: 'ERR_EXITWATCH_STATE_DIR' }) as Error,
    );
  });

  test('rows that make no sense are left out', async () => {
    using folder = new Folder();
    const dir = folder.journal;
    await write(dir, [endOf(0)]);
    const hostile = [
      '{"seq":2}',
      '{"seq":3,"event":"exit"}',
      '[]',
      'null',
      '\u0000',
      '{"seq":4,"event":"exit","id":"x","pid":1,"how":"?","exitedAt":"x"}',
    ];
    appendFileSync(join(dir, `${FIRST}.jsonl`), hostile.map((line) => `${line}\n`).join(''));
    expect(await found({ dir })).toEqual([1]);
  });
});

test('a journal that was closed takes nothing, and says nothing of it', async () => {
  using folder = new Folder();
  const stored: string[] = [];
  const journal = new JournalWriter({
    dir: folder.journal,
    onStored: (exits) => stored.push(...exits.map(({ id }) => id)),
  });
  journal.append(endOf(0));
  await Promise.all([journal.close(), journal.close()]);
  journal.append(endOf(1));
  expect(() => {
    journal.append({ event: 'exits' } as never);
  }).toThrow(expect.objectContaining({ code: 'ERR_EXITWATCH_INVALID_OPTION' }) as Error);
  expect(stored).toEqual([endOf(0).id]);
  expect(await found({ dir: folder.journal })).toEqual([1]);
});

test('there is no journal where there is none', async () => {
  using folder = new Folder();
  await expect(found({ dir: folder.journal })).rejects.toMatchObject({
    code: 'ERR_EXITWATCH_NO_JOURNAL',
  });
});

test('a group that is named later may read what is there', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(
    dir,
    range(0, 60).map((i) => endOf(i)),
    { segmentBytes: 4096 },
  );
  const modes = () => filesIn(dir).map((name) => statSync(join(dir, name)).mode & 0o777);
  const mine = () => filesIn(dir).filter((name) => /^\d/.test(name));
  expect(mine().length).toBeGreaterThan(1);
  expect(new Set(modes())).toEqual(new Set([0o600]));
  await write(dir, [], { gid: process.getgid?.() ?? 0 });
  for (const name of mine()) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o640);
});

test('others cannot read it, except for a group that is named', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  const modes = () =>
    ['', `${FIRST}.jsonl`].map((name) => (statSync(join(dir, name)).mode & 0o777).toString(8));
  await write(dir, [endOf(0)]);
  expect(modes()).toEqual(['700', '600']);
  await write(dir, [endOf(1)], { gid: process.getgid?.() ?? 0, segmentBytes: 4096 });
  expect(modes()[0]).toBe('750');
});

test('a file that is torn anywhere is readable, and a later writer goes on', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(
    dir,
    range(0, 4).map((i) => endOf(i)),
  );
  const path = join(dir, `${FIRST}.jsonl`);
  const { size } = statSync(path);
  for (let length = size; length > 0; length -= 97) {
    truncateSync(path, length);
    const before = await found({ dir });
    expect(before).toEqual(range(1, before.length));
  }
  await write(dir, [endOf(9)]);
  expect(await found({ dir })).toEqual([1]);
});

test('a set of terms forgets none, and takes few for its own that it has not', () => {
  const terms = TermSet.ofBytes(BLOCK_SET_BYTES);
  const own = range(1, 3000).map((i) => `p:${i}`);
  for (const each of own) terms.add(each);
  const read = TermSet.parse(terms.toString(), BLOCK_SET_BYTES);
  expect(own.filter((each) => read?.mayHave(each) !== true)).toEqual([]);
  const others = range(3001, 13_000).filter((i) => read?.mayHave(`p:${i}`) === true);
  expect(others.length).toBeLessThan(300);
});
