// Lane: patient

import type { CgroupContainer, ExitEvent } from '../../src';
import { parseMatches } from '../../src/cli/args/record-match';
import { JournalWriter, type JournalRow } from '../../src/journal';

import { call, callWith, MAIN } from '../support/command';
import { endOf, Folder } from '../support/journal';
import { H, H2, USER } from '../support/places';
import { LineProcess } from '../support/programs';

const named = (id: string, name: string) => {
  const container: CgroupContainer = { runtime: 'docker', id, name };
  return { cgroup: `/system.slice/docker-${id}.scope`, container };
};

const SOUND = `${USER}/app.slice/pipewire.service`;

const ends = [
  endOf(1),
  endOf(2, named(H, 'shop-db')),
  endOf(3, named(H2, 'shop-web')),
  endOf(4, { cgroup: SOUND }),
  endOf(5, { cgroup: '/system.slice/webhook.service' }),
];

test.each([
  [['--unit', 'web'], [1]],
  [
    ['--unit', 'web.service', '--unit', 'webhook'],
    [1, 5],
  ],
  [
    ['--unit', 'web*'],
    [1, 5],
  ],
  [['--unit', 'user@1000'], [4]],
  [['--container', 'shop-db'], [2]],
  [
    ['--container', 'shop-*'],
    [2, 3],
  ],
  [
    ['--container', H.slice(0, 6), '--container', 'shop-web'],
    [2, 3],
  ],
  [['--container', 'shop'], []],
  [['--container', 'shop-db', '--unit', 'web'], []],
])('history selects units and containers as watch does: %j', async (filters, expected) => {
  using folder = new Folder();
  {
    await using journal = new JournalWriter({ dir: folder.journal });
    for (const end of ends) journal.append(end);
  }
  const asked = await call('history', '--json', ...filters, '--state-dir', folder.path);
  const rows = asked.lines.map((line) => JSON.parse(line) as JournalRow);
  expect(asked).toMatchObject({ code: 0, stderr: '' });
  expect(rows.map(({ seq }) => seq)).toEqual(expected);
});

test('history shows command lines in the width that the terminal has', async () => {
  using folder = new Folder();
  {
    await using journal = new JournalWriter({ dir: folder.journal });
    journal.append(endOf(1));
    const commandLine = ['sleep', '31536000', '1', '2', '3', '4'];
    journal.append(endOf(2, { name: 'sleep', program: 'sleep', commandLine }));
  }
  const history = `${process.execPath} ${MAIN} history --state-dir ${folder.path}`;
  const terminal = new LineProcess('script', ['-qec', `stty cols 160; ${history}`, '/dev/null']);
  const lines = await terminal.rest();
  const isHeader = (line: string) => line.startsWith('TIME ');
  expect(lines.filter(isHeader)).toHaveLength(2); // the columns have moved
  expect(lines.at(-1)).toMatch(/ sleep 31536000 1 2 3 4 +0\.50s /);
});

test.each([
  ['unit=web', [0]],
  ['unit=web*', [0, 4]],
  ['unit=user@1000.service', [3]],
])('record --match %s selects units as watch does', (text, expected) => {
  const matches = parseMatches([text]);
  expect(ends.flatMap((end, i) => (matches(end) ? [i] : []))).toEqual(expected);
});

test.each([
  ['unit=web', { cgroup: null }, true],
  ['unit=web', { cgroup: '/system.slice/db.service' }, false],
  ['name=nginx', { name: null, program: null }, true],
  ['name=nginx', { name: null, program: 'node' }, false],
  ['user=1000', { uid: null }, true],
  ['user=1000', { uid: 0 }, false],
  ['killed', { how: 'unknown', exitCode: null, unknownReason: 'lost' }, true],
  ['failed', { how: 'unknown', exitCode: null, unknownReason: 'lost' }, true],
  ['killed', {}, false],
])('record --match %s keeps an end that is %j, if it may fit: %j', (text, end, isKept) => {
  expect(parseMatches([text])(endOf(1, end as Partial<ExitEvent>))).toBe(isKept);
});

test('history refuses a --since that is later than --until', async () => {
  const times = ['--since', '2026-11-24 04:00 UTC', '--until', '2026-11-24 03:00 UTC'];
  const { code, lines, stderr } = await call('history', ...times);
  expect({ code, lines }).toEqual({ code: 2, lines: [] });
  expect(stderr).toMatch(
    '--since (2026-11-24T04:00:00.000Z) must not be later than --until (2026-11-24T03:00:00.000Z)',
  );
});

describe('in Berlin, an hour comes twice as summer time ends, and one is missing as it begins', () => {
  const berlin = ['env', 'TZ=Europe/Berlin'];
  const at = (text: string) => ({ exitedAt: new Date(text), startedAt: null, exitedNs: null });

  test.each([
    [
      '2026-10-25 02:30',
      [2, 3],
      'comes twice on that day: the first is taken, 2026-10-25T00:30:00.000Z; the second is 2026-10-25T01:30:00.000Z',
    ],
    ['2026-10-25 02:30 +01:00', [3], null],
    ['2026-10-25 03:00:00', [], null],
    [
      '2026-03-29T02:30',
      [1, 2, 3],
      'does not exist on that day: taken for 2026-03-29T01:30:00.000Z',
    ],
  ])('--since %j', async (since, expected, note) => {
    using folder = new Folder();
    {
      await using journal = new JournalWriter({ dir: folder.journal });
      journal.append(endOf(1, at('2026-10-25T00:15:00Z')));
      journal.append(endOf(2, at('2026-10-25T00:45:00Z')));
      journal.append(endOf(3, at('2026-10-25T01:45:00Z')));
    }
    const args = ['history', '--json', '--since', since, '--state-dir', folder.path];
    const { lines, stderr } = await callWith(berlin, ...args);
    expect(lines.map((line) => (JSON.parse(line) as JournalRow).seq)).toEqual(expected);
    expect(stderr).toBe(note === null ? '' : `exitwatch: --since ${since} ${note}\n`);
  });
});
