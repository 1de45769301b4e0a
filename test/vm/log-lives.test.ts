// Lane: unit

import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { GrowingFile } from '../../src/vm/evidence/growing-file';
import { EventLog } from '../../src/vm/qemu/event-log';
import { joined } from '../../src/vm/qemu/joined-events';
import { runOf, splitRuns } from '../../src/vm/qemu/log-runs';
import { keepEvent } from '../../src/vm/qemu/telling-events';
import type { QmpEvent } from '../../src/vm';

const BEGIN = Date.parse('2026-11-21T12:00:00Z');

const after = (seconds: number) => new Date(BEGIN + seconds * 1000);

/** `'RESUME@1'`: one second after the beginning. */
const events = (...texts: string[]): QmpEvent[] =>
  texts.map((text) => {
    const [event = '', seconds = '0'] = text.split('@');
    return { event, data: {}, at: after(Number(seconds)) };
  });

const names = (runs: QmpEvent[][]) => runs.map((run) => run.map(({ event }) => event));

const NOTHING = { startedAt: null, after: null, seenAt: null, endedAt: null };

test.each([
  [
    'a power-off ends a run',
    ['RESUME', 'SHUTDOWN', 'RESUME'],
    [['RESUME', 'SHUTDOWN'], ['RESUME']],
  ],
  [
    'a machine that runs cannot resume, so it was killed',
    ['RESUME', 'RESUME'],
    [['RESUME'], ['RESUME']],
  ],
  ['a paused machine can resume', ['RESUME', 'STOP', 'RESUME'], [['RESUME', 'STOP', 'RESUME']]],
  [
    'a machine that stays after a power-off says so at once (-no-shutdown)',
    ['RESUME', 'SHUTDOWN', 'STOP', 'RESET', 'RESUME', 'SHUTDOWN'],
    [['RESUME', 'SHUTDOWN', 'STOP', 'RESET', 'RESUME', 'SHUTDOWN']],
  ],
  [
    'a machine that was started paused, and ended so, has an end of its own',
    ['RESUME', 'SHUTDOWN', 'SHUTDOWN'],
    [['RESUME', 'SHUTDOWN'], ['SHUTDOWN']],
  ],
  [
    'a power button after a power-off belongs to the next run',
    ['RESUME', 'SHUTDOWN', 'POWERDOWN', 'SHUTDOWN'],
    [
      ['RESUME', 'SHUTDOWN'],
      ['POWERDOWN', 'SHUTDOWN'],
    ],
  ],
])('in a log of several starts, %s', (_, all, runs) => {
  expect(names(splitRuns(events(...all)))).toEqual(runs);
});

test('a start gets the events between its beginning and its end', () => {
  const log = events('RESUME@1', 'SHUTDOWN@2', 'RESUME@11', 'SHUTDOWN@12', 'RESUME@21');
  const second = { ...NOTHING, startedAt: after(10.9) };
  expect(names([runOf(log, second)])).toEqual([['RESUME', 'SHUTDOWN']]);
  expect(runOf(log, second)[0]?.at).toEqual(after(11));
  expect(names([runOf(log, { ...second, endedAt: after(11.5) })])).toEqual([['RESUME']]);
});

test('an event of an earlier start just before does not count, but RESUME may be dated a moment early', () => {
  const log = events('RESUME@1', 'POWERDOWN@9.95', 'RESUME@10', 'SHUTDOWN@12');
  const start = { ...NOTHING, startedAt: after(10.01) };
  expect(names([runOf(log, start)])).toEqual([['RESUME', 'SHUTDOWN']]);
});

test('events already accounted for do not count, whenever the process seems to have started', () => {
  const log = events('RESUME@1', 'SHUTDOWN@2', 'RESUME@11');
  expect(names([runOf(log, { ...NOTHING, after: after(2) })])).toEqual([['RESUME']]);
  expect(names([runOf(log, { ...NOTHING, startedAt: after(0), after: after(2) })])).toEqual([
    ['RESUME'],
  ]);
});

test('a start of unknown time gets the run that had begun when it was seen', () => {
  const log = events('RESUME@1', 'SHUTDOWN@2', 'RESUME@11', 'RESUME@21', 'SHUTDOWN@22');
  expect(runOf(log, { ...NOTHING, seenAt: after(12) })[0]?.at).toEqual(after(11));
});

test('events of a machine that is paused every hour for years still fit', () => {
  const kept: QmpEvent[] = [];
  const hour = ['STOP', 'RESUME'];
  expect(events('RESUME').every((event) => keepEvent(kept, event))).toBe(true);
  for (let i = 0; i < 20_000; i++) {
    expect(events(...hour).every((event) => keepEvent(kept, event))).toBe(true);
  }
  expect(events('SHUTDOWN', 'STOP', 'RESUME').every((event) => keepEvent(kept, event))).toBe(true);
  // Resuming after a power-off is a new run, which is kept.
  expect(names([kept])).toEqual([['RESUME', 'SHUTDOWN', 'STOP', 'RESUME']]);
});

test('events of a machine that came by a migration still fit, too', () => {
  const kept: QmpEvent[] = [];
  const came: QmpEvent = { event: 'MIGRATION', data: { status: 'completed' }, at: null };
  for (const event of [...events('RESUME'), came]) expect(keepEvent(kept, event)).toBe(true);
  for (let i = 0; i < 2000; i++) {
    expect(events('STOP', 'RESUME').every((event) => keepEvent(kept, event))).toBe(true);
  }
  expect(names([kept])).toEqual([['RESUME', 'MIGRATION']]);
  // Migrated to another host: the pause was part of that. Resuming means that it stayed.
  for (const event of [...events('STOP'), came, ...events('STOP', 'RESUME')])
    keepEvent(kept, event);
  expect(names([kept])).toEqual([['RESUME', 'MIGRATION', 'STOP', 'MIGRATION', 'STOP', 'RESUME']]);
});

test('a later start that resumes does not undo the pause in which an earlier one ended', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-lives-'));
  const path = join(folder, 'events');
  const timestamp = (at: Date | null) => ({
    seconds: (at ?? after(0)).getTime() / 1000,
    microseconds: 0,
  });
  const write = (...texts: string[]) => {
    const lines = events(...texts).map(({ at, ...rest }) => ({
      ...rest,
      timestamp: timestamp(at),
    }));
    appendFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  };
  const share = { startedAt: after(0), after: null, seenAt: null };
  const log = new EventLog(path, share);
  write('RESUME@1', 'STOP@2', 'RESUME@3');
  await log.read();
  log.settle(); // it lives, so this was its own pause
  write('STOP@5', 'RESUME@20', 'SHUTDOWN@30');
  await log.read();
  expect(names([log.ownEvents(after(6))])).toEqual([['RESUME', 'STOP']]);
  const atOnce = new EventLog(path, share);
  await atOnce.read();
  expect(names([atOnce.ownEvents(after(6))])).toEqual([['RESUME', 'STOP']]);
  rmSync(folder, { recursive: true });
});

test('a reset from outside is not forgotten when the guest resets itself', () => {
  const reset = (guest: boolean): QmpEvent => ({ event: 'RESET', data: { guest }, at: null });
  const kept: QmpEvent[] = [];
  for (const guest of [true, true, false, false, true, true]) keepEvent(kept, reset(guest));
  expect(kept.map(({ data }) => data['guest'])).toEqual([true, false, true]);
});

test('two witnesses that both lack events have them together, each once and in order', () => {
  const logged = events('RESUME@1', 'RESET@5', 'SHUTDOWN@9', 'STOP@9');
  const heard = events('RESET@5', 'POWERDOWN@9', 'SHUTDOWN@9', 'STOP@9');
  expect(joined(logged, heard)).toEqual(
    events('RESUME@1', 'RESET@5', 'POWERDOWN@9', 'SHUTDOWN@9', 'STOP@9'),
  );
  expect(joined(logged, [])).toEqual(logged);
  expect(joined([], heard)).toEqual(heard);
  const twice = events('POWERDOWN@3', 'POWERDOWN@3');
  expect(joined(twice, events('POWERDOWN@3'))).toEqual(twice);
  expect(joined(logged, twice)).toHaveLength(6);
});

test('lines are complete wherever the reads of their file end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-lines-'));
  const path = join(folder, 'log');
  const lines = Array.from({ length: 10_000 }, (_, i) => `${i} ${'x'.repeat(i % 97)}`);
  lines.push('y'.repeat(200_000));
  writeFileSync(path, `${lines.join('\n')}\n`);
  const read: string[] = [];
  expect(await new GrowingFile(path, (line) => read.push(line)).read()).toBe(true);
  expect(read).toEqual(lines);
  rmSync(folder, { recursive: true });
});

test('a line of more than a MiB is dropped, and its neighbors are read', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-lines-'));
  const path = join(folder, 'log');
  const longest = 'y'.repeat(1024 * 1024);
  writeFileSync(path, ['before', `${longest}y`, 'between', longest, 'after', ''].join('\n'));
  const read: string[] = [];
  expect(await new GrowingFile(path, (line) => read.push(line)).read()).toBe(true);
  expect(read.map((line) => line.slice(0, 10))).toEqual([
    ...['before', 'between', longest.slice(0, 10), 'after'],
  ]);
  rmSync(folder, { recursive: true });
});
