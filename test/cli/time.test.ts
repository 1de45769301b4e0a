// Lane: unit

import { parseTime } from '../../src/cli/args/time';

const NOW = new Date(2026, 10, 24, 15, 30, 20, 500);

const local = (...parts: number[]) =>
  new Date(...(parts as [number, number, number, number?, number?, number?, number?]));

describe('a time is read as journalctl reads it', () => {
  test.each([
    ['now', NOW],
    ['today', local(2026, 10, 24)],
    ['yesterday', local(2026, 10, 23)],
    ['tomorrow', local(2026, 10, 25)],
    ['-1h', new Date(NOW.getTime() - 3_600_000)],
    ['-90s', new Date(NOW.getTime() - 90_000)],
    ['-90', new Date(NOW.getTime() - 90_000)],
    ['-1h30min', new Date(NOW.getTime() - 5_400_000)],
    ['-2 days', new Date(NOW.getTime() - 2 * 86_400_000)],
    ['3 hours ago', new Date(NOW.getTime() - 3 * 3_600_000)],
    ['1 week ago', new Date(NOW.getTime() - 7 * 86_400_000)],
    ['+5min', new Date(NOW.getTime() + 300_000)],
    ['03:00', local(2026, 10, 24, 3)],
    ['03:00:07', local(2026, 10, 24, 3, 0, 7)],
    ['2026-11-20', local(2026, 10, 20)],
    ['2026-11-20 03:00', local(2026, 10, 20, 3)],
    ['2026-11-20T03:00:01.250', local(2026, 10, 20, 3, 0, 1, 250)],
    ['2026-11-20 03:00 UTC', new Date('2026-11-20T03:00:00Z')],
    ['2026-11-20T03:00:01.250Z', new Date('2026-11-20T03:00:01.250Z')],
    ['2026-11-20T03:00+02:00', new Date('2026-11-20T01:00:00Z')],
    ['@1763600400', new Date(1_763_600_400_000)],
    ['03:00Z', new Date(Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth(), NOW.getUTCDate(), 3))],
  ])('%s', (text, expected) => {
    expect(parseTime('--since', text, { now: NOW })).toEqual(expected);
  });
});

test('without a date it is of the day that it is in its zone', () => {
  const now = new Date('2026-11-24T19:30:00Z');
  const read = (text: string) => parseTime('--since', text, { now });
  expect(read('18:00 UTC')).toEqual(new Date('2026-11-24T18:00:00Z'));
  expect(read('05:00+10:00')).toEqual(new Date('2026-11-24T19:00:00Z'));
  expect(read('09:00-11:00')).toEqual(new Date('2026-11-24T20:00:00Z'));
});

test.each([
  ...[
    '',
    'soon',
    '-',
    '-1x',
    '-h',
    '1h',
    '2026',
    '2026-13-01',
    '2026-00-15',
    '0050-01-01',
    '2026-11-32',
    '2026-02-30',
    '25:00',
    '03:61',
  ],
  ...['2026-11-20 03:00 CET', '03:00 2026-11-20', '@x', 'ago', '1 fortnight ago'],
])('%j is no time', (text) => {
  expect(() => parseTime('--since', text, { now: NOW })).toThrow(
    `--since must be a time such as -1h, yesterday or "2026-11-24 03:00", not ${JSON.stringify(text)}`,
  );
});
