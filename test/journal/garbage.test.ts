// Lane: patient

// What others can write into a journal's files: rows whose fields are of another kind.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';

import { JournalWriter } from '../../src/journal';

import { call } from '../support/command';
import { endOf, Folder, killedBy, rowsOf } from '../support/journal';

const GARBAGE = [
  ...[undefined, null, true, -1, 1e300, '', 'x', 'constructor', '__proto__'],
  '\u001b[2J',
  [],
  [1],
  {},
  { pid: 'x' },
];

const AT = '2026-11-24T03:00:00.000Z';

const sender = killedBy('deploy', 77, 1).sender;
const END = endOf(1, {
  ...killedBy('deploy', 77, 1),
  ...{ raisedAfter: sender, signalsReceived: [sender], commandLine: ['sh', '-c', 'x'] },
  usage: { userMs: 1, systemMs: 2, maxRssBytes: 3, readBytes: 4, writtenBytes: null },
  container: { runtime: 'docker', id: 'a'.repeat(64), name: 'web' },
  pod: { manager: 'kubernetes', uid: 'b' },
  machine: { manager: 'nspawn', name: 'c' },
} as object);

const SENT = { ...END.sender, onBehalf: true, onBehalfReason: 'service-manager' };

const ROWS: Record<string, object> = {
  end: END,
  exited: endOf(2),
  unknown: endOf(3, { how: 'unknown', exitCode: null, unknownReason: 'lost' } as object),
  gap: { event: 'gap', from: AT, to: AT, lost: 1, reason: 'disk-full', recovered: 0 },
  source: {
    ...{ event: 'source', at: AT, source: 'poll', previous: 'connector', filter: 'cbpf' },
    ...{ downgrade: { code: 'no-btf', detail: 'x', remedy: null }, namesPrograms: false },
  },
  skipped: { event: 'skipped', name: 'sh', program: 'dash', count: 3, from: AT, to: AT },
};

/** Each field of a row, and of what is in it, with each kind of garbage. */
function* spoilt(row: object, depth = 0): Generator<object> {
  for (const [name, value] of Object.entries(row)) {
    for (const garbage of GARBAGE) yield { ...row, [name]: garbage };
    if (value instanceof Date || typeof value !== 'object' || value === null) continue;
    const one: unknown = Array.isArray(value) ? value[0] : value;
    if (typeof one !== 'object' || one === null || depth > 2) continue;
    for (const inner of spoilt(one, depth + 1)) {
      yield { ...row, [name]: Array.isArray(value) ? [inner] : inner };
    }
  }
}

const isText = (value: unknown) => typeof value === 'string';

test('rows of other kinds are left out, or say less, and everybody can read the rest', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  {
    await using journal = new JournalWriter({ dir });
    journal.append(endOf(0));
    await journal.flush();
  }
  const lines = Object.values({ ...ROWS, sent: { ...END, sender: SENT } })
    .flatMap((row) => [row, ...spoilt(row)])
    .map((row, i) => `${JSON.stringify({ seq: i + 2, ...row })}\n`);
  appendFileSync(join(dir, '0000000000000001.jsonl'), lines.join(''));
  const last = lines.length + 2;
  appendFileSync(
    join(dir, '0000000000000001.jsonl'),
    `${JSON.stringify({ seq: last, ...endOf(9, { name: 'last', program: 'last' }) })}\n`,
  );

  const rows = await rowsOf({ dir });
  expect(rows.map(({ seq }) => seq)).toEqual(expect.arrayContaining([1, 2, last]));
  const times = rows.flatMap((row) =>
    row.event === 'exit'
      ? [
          row.exitedAt,
          row.startedAt,
          row.tracedSince,
          row.requestsSince,
          row.sender?.sentAt ?? null,
        ]
      : [],
  );
  expect(times.filter((time) => time !== null && Number.isNaN(time.getTime()))).toEqual([]);
  for (const row of rows) {
    if (row.event !== 'exit') continue;
    const { sender: by, name, commandLine, traced } = row;
    const facts = [row.exitCode, row.signal, row.unknownReason];
    expect(facts.filter((fact) => fact !== null)).toHaveLength(1);
    const isKnown = by?.pid == null || (isText(by.name) && isText(by.signal));
    expect([isKnown, name === null || isText(name)]).toEqual([true, true]);
    expect(commandLine?.every(isText) ?? true).toBe(true);
    const raw = JSON.parse(lines[row.seq - 2] ?? '{}') as Record<string, unknown>;
    // A sender that cannot be read is not nobody.
    if (by === null && row.seq > 1 && row.seq < last && raw['sender'] !== null)
      expect([raw['sender'], traced]).toEqual([raw['sender'], false]);
  }
  for (const query of [
    ...[{ name: 'last' }, { pid: 1009 }, { unit: 'web.service' }, { container: 'web' }],
    ...[{ killedBy: 'deploy' }, { killedBy: 77 }, { since: new Date(0), until: new Date() }],
  ]) {
    expect(await rowsOf({ dir, ...query })).toBeInstanceOf(Array);
  }

  for (const args of [
    ...[['history'], ['history', '--json'], ['history', '--failed', '--unit', 'w*']],
    ...[
      ['why', 'sh'],
      ['why', 'web.service'],
      ['why', '1001', '--json'],
    ],
  ]) {
    const { code, lines: printed, stderr } = await call(...args, '--state-dir', folder.path);
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
    expect(printed.filter((line) => /undefined|NaN|Invalid Date|\[object/.test(line))).toEqual([]);
    expect(printed.filter((line) => line.includes('\u001b'))).toEqual([]);
  }

  // A later writer reads them, too.
  {
    await using journal = new JournalWriter({ dir, segmentBytes: 4096 });
    for (let i = 20; i < 60; i++) journal.append(endOf(i));
    await journal.flush();
  }
  expect((await rowsOf({ dir })).filter(({ event }) => event === 'exit').length).toBeGreaterThan(
    40,
  );
});
