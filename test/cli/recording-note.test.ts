// Lane: unit

import { uptime } from 'node:os';

import { ageMs, lastRecorded, RecordingNote } from '../../src/cli/recording-note';
import { bootId } from '../../src/identity/boot-id';

import { Folder } from '../support/journal';

const at = (time: string) => new Date(`2026-11-24T${time}Z`);
const OTHER_BOOT = '11111111-2222-4333-8444-555555555555';

const note = (time: string, more = {}) => ({
  ...{ at: at(time), bootId: bootId(), uptime: 100, counts: false },
  ...more,
});
const row = (time: string, boot = bootId()) => ({ at: at(time), bootId: boot });

test.each([
  ['nothing', null, null, null],
  ['the last row, if there is no note', row('03:00'), null, at('03:00')],
  ['the note, if there is no row', null, note('03:00'), at('03:00')],
  ['the later one', row('03:00'), note('02:59'), at('03:00')],
  ['the later one', row('03:00'), note('03:01'), at('03:01')],
  [
    'the note, if what was counted since may be lost',
    row('03:00'),
    note('02:59', { counts: true }),
    at('02:59'),
  ],
  ['that of this boot', row('05:00', OTHER_BOOT), note('02:59'), at('02:59')],
  [
    'that of this boot',
    row('03:00'),
    note('05:00', { bootId: OTHER_BOOT, counts: true }),
    at('03:00'),
  ],
])('until when was recorded: %s', (_, last, noted, expected) => {
  expect(lastRecorded(last, noted)?.at ?? null).toEqual(expected);
});

test('how long ago that was does not depend on the wall clock within a boot', () => {
  const noted = note('03:00', { at: new Date(0), uptime: uptime() - 60 });
  expect(Math.abs(ageMs(noted) - 60_000)).toBeLessThan(1000);
  expect(ageMs({ ...noted, bootId: OTHER_BOOT })).toBeGreaterThan(86_400_000);
});

test('a note comes back as it was, and a torn one is none', () => {
  using folder = new Folder();
  const begin = Date.now();
  const written = new RecordingNote(folder.path);
  expect(written.read()).toBeNull();
  written.set(5000, true);
  const read = written.read();
  written.close();
  expect(read).toMatchObject({ bootId: bootId(), counts: true });
  expect(Math.abs((read?.at.getTime() ?? NaN) - (begin - 5000))).toBeLessThan(1000);
  expect(Math.abs((read?.uptime ?? NaN) - (uptime() - 5))).toBeLessThan(2.1);
});
