// Lane: unit

import type { ExitEvent } from '../../src';
import { Coverage } from '../../src/journal/coverage';
import { JournalDirectory } from '../../src/journal/journal-directory';
import { momentOf } from '../../src/journal/moments';
import { findEnd } from '../../src/journal/last-end';
import { storyOf } from '../../src/journal/story';

import { endOf, Folder, killedBy, write } from '../support/journal';

test('a service that ends again and again is told by its last run', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  const run = (i: number, more: object = {}) =>
    endOf(i, { startedAt: endOf(i - 1).exitedAt, unit: 'web.service', ...more });
  await write(dir, [
    ...[run(1, killedBy('deploy', 77, 1)), run(3), run(5)],
    // What runs after the service, and was started later.
    endOf(6, { name: 'post', program: 'post', startedAt: endOf(5).exitedAt }),
  ]);
  const end = await findEnd(await JournalDirectory.open(dir), { unit: 'web.service' }, undefined);
  expect(end?.end).toMatchObject({ seq: 3, how: 'exited' });
});

describe('of what ran one after the other in a unit', () => {
  /** From one second to another. */
  const lived = (from: number, to: number, name: string, more: object = {}) =>
    endOf(to, { name, program: name, startedAt: endOf(from).exitedAt, ...more });
  const failed = { exitCode: 3 };

  /** systemd had asked it to exit, and waited. */
  const givenUp = (i: number) => {
    const by = killedBy('systemd', 1, i);
    const sender = { signal: 'SIGKILL', onBehalf: true, onBehalfReason: 'service-manager' };
    return { ...by, signal: 'SIGKILL', sender: { ...by.sender, ...sender } } as Partial<ExitEvent>;
  };

  test.each<[title: string, ends: ExitEvent[], told: string]>([
    [
      'what had prepared it does not tell',
      [lived(0, 1, 'mkdir'), lived(2, 5, 'node', failed)],
      'node',
    ],
    ['what failed before it tells', [lived(0, 1, 'mkdir', failed), lived(1, 2, 'rm')], 'mkdir'],
    [
      'what cleans up after a failure does not tell, even if it fails',
      [lived(0, 3, 'node', failed), lived(3, 4, 'rm', failed)],
      'node',
    ],
    [
      'a process of an earlier run does not tell',
      [
        ...[lived(1, 3, 'worker', failed), lived(0, 4, 'node', failed)],
        lived(5, 9, 'node', { exitCode: 4 }),
      ],
      'node',
    ],
    [
      'what ran longest tells if nothing failed',
      [lived(0, 1, 'a'), lived(1, 4, 'b'), lived(4, 5, 'c')],
      'b',
    ],
    [
      'what outlived it, until systemd gave up, does not tell',
      [lived(0, 5, 'node', failed), lived(1, 95, 'stubborn', givenUp(95))],
      'node',
    ],
    [
      'what an earlier run has left behind does not tell',
      [lived(0, 95, 'shim'), lived(50, 200, 'containerd', failed)],
      'containerd',
    ],
    [
      'what that ran does not tell',
      [lived(2, 3, 'sh', failed), lived(0, 5, 'node'), lived(4, 6, 'sh', failed)],
      'node',
    ],
  ])('%s', async (_, ends, told) => {
    using folder = new Folder();
    await write(folder.journal, ends);
    const end = await findEnd(
      await JournalDirectory.open(folder.journal),
      { unit: 'web.service' },
      undefined,
    );
    expect(end).toMatchObject({
      end: { name: told, id: ends.findLast(({ name }) => name === told)?.id },
      run: null,
    });
  });

  test('what ends in a run that goes on does not tell', async () => {
    using folder = new Folder();
    const main = lived(0, 10, 'dockerd', killedBy('deploy', 77, 10));
    await write(folder.journal, [main, lived(700, 701, 'runc'), lived(800, 801, 'proxy')]);
    const began = endOf(11);
    const run = { at: began.exitedAt, moment: momentOf({ ...began, seq: 0 }) };
    const find = async (name: string, since?: Date) =>
      findEnd(await JournalDirectory.open(folder.journal), { unit: name }, since, () => run);
    expect(await find('web.service')).toMatchObject({
      ...{ end: { name: 'dockerd' }, run: { at: began.exitedAt, hasEnd: false } },
    });
    // What there is, if there was no earlier run.
    expect(await find('web.service', endOf(600).exitedAt)).toMatchObject({
      ...{ end: { name: 'proxy' }, run: { at: began.exitedAt, hasEnd: true } },
    });
    expect(await find('other.service')).toBeNull();
  });

  test('a clock that was set back does not make the first run the last one', async () => {
    using folder = new Folder();
    const hour = 3600;
    const early = lived(0, 2 * hour, 'node', failed);
    // An hour by the wall clock before the end of the first one, and after it in truth.
    const { exitedNs } = endOf(2 * hour + 300);
    const late = lived(hour, hour + 240, 'node', { exitedNs, exitCode: 4 });
    await write(folder.journal, [early, late]);
    const end = await findEnd(
      await JournalDirectory.open(folder.journal),
      { unit: 'web.service' },
      undefined,
    );
    expect(end?.end).toMatchObject({ exitCode: 4 });
    const coverage = await Coverage.of(await JournalDirectory.open(folder.journal));
    const story = await storyOf(
      await JournalDirectory.open(folder.journal),
      { ...late, seq: 2 },
      null,
      coverage,
    );
    expect(story.samePlace).toEqual([]);
  });
});
