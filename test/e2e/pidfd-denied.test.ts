// Lane: patient

import { mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';

import type { ExitEvent, Filter, Gap, ProcessIdentity } from '../../src';

import {
  DEATH_NAMES,
  DyingProcesses,
  HAVE_CODES_OF_THEIR_OWN,
  isEndOf,
  type Death,
  type DeathName,
} from '../support/deaths';
import { describeForEachFilter } from '../support/filters';
import { mortal } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { LineProcess, PROGRAMS, REPOSITORY } from '../support/programs';
import { ROUNDS } from '../support/rounds';

const COUNT = 60;

/** Every way to die, over and over. */
const NAMES: DeathName[] = Array.from(
  { length: COUNT },
  (_, i) => DEATH_NAMES[i % DEATH_NAMES.length] ?? 'exit-0',
);

interface Ends {
  ends: ExitEvent[];
  told: ExitEvent[];
  gaps: Gap[];
  /** The number of watches that have not reported an end. */
  left: number;
  by: string;
}

/** A monitor in another process, to which pidfd_open(2) can be forbidden on demand. */
class DeniedWatcher implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'exitwatch-denied-'));
  readonly #process: LineProcess;

  constructor(
    error: 'EPERM' | 'ENOSYS',
    settings: { scope: string; source?: string },
    before: readonly string[] = [],
  ) {
    const [command = '', ...args] = [
      ...before,
      ...[process.execPath, join(REPOSITORY, 'test', 'programs', 'denied-watcher.cjs')],
    ];
    this.#process = new LineProcess(command, args, {
      env: {
        ...process.env,
        EXITWATCH: REPOSITORY,
        SCOPE: settings.scope,
        SOURCE: settings.source ?? 'auto',
        LD_PRELOAD: join(PROGRAMS, 'deny.so'),
        DENY_WHEN: join(this.#folder, 'deny'),
        DENY_WITH: String(constants.errno[error]),
      },
    });
  }

  async answer<Answer>(): Promise<Answer> {
    const line = await this.#process.line();
    if (line === undefined) throw new Error(this.#process.stderr);
    return JSON.parse(line) as Answer;
  }

  ask<Answer>(command: string, argument?: object | number): Promise<Answer> {
    this.#process.child.stdin.write(`${command} ${JSON.stringify(argument)}\n`);
    return this.answer();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.child.stdin.end();
    await this.#process.ended;
    rmSync(this.#folder, { recursive: true });
  }
}

/** The wait status that the event implies. */
function statusOf(event: ExitEvent | undefined): number | string | undefined {
  if (event === undefined || event.how === 'unknown') return event?.unknownReason;
  if (event.how === 'exited') return event.exitCode << 8;
  const number =
    event.signal === 'SIGRTMIN+3' ? 37 : constants.signals[event.signal as NodeJS.Signals];
  return number | (event.how === 'dumped' ? 0x80 : 0);
}

const seen = ({ pid, name }: Death, event: ExitEvent | undefined) => ({
  pid,
  name,
  status: statusOf(event),
  lossless: event?.lossless,
});

const expected = ({ pid, name, status }: Death) => ({ pid, name, status, lossless: true });

/**
 * Without a pidfd the cBPF filter cannot determine which thread ended last. The status may then be
 * unknown.
 */
const isCertain = (filter: Filter, { name }: Death) =>
  filter === 'ebpf' || !HAVE_CODES_OF_THEIR_OWN.has(name);

const hasPidfd = (is: boolean): unknown => expect.objectContaining({ hasPidfd: is });

const SETTINGS = [
  { scope: 'watched', source: 'auto' },
  { scope: 'watched', source: 'connector' },
  { scope: 'all', source: 'auto' },
];

describeForEachFilter((filter) => {
  for (const settings of SETTINGS) {
    for (const error of ['EPERM', 'ENOSYS'] as const) {
      itAsRoot(
        `if ${error} forbids pidfd_open while it runs, it still reports every status (${JSON.stringify(settings)})`,
        async () => {
          await using watcher = new DeniedWatcher(error, settings);
          expect(await watcher.answer()).toMatchObject({ source: 'connector', filter });
          const before = await DyingProcesses.spawn(NAMES, 'now');
          const isGuarded = settings.source === 'auto';
          expect(await watcher.ask('watch', before.pids)).toEqual(
            before.pids.map(() => hasPidfd(isGuarded)),
          );
          expect(await watcher.ask('deny')).toEqual({ inode: null, parent: 'alive' });

          const watched = [before];
          const unwatched = [];
          for (let round = 0; round < ROUNDS; round++) {
            const after = await DyingProcesses.spawn(NAMES, 'now');
            const watches = await watcher.ask<{ withoutPidfd: number }[]>('watch', after.pids);
            expect(watches).toEqual(after.pids.map(() => hasPidfd(false)));
            const withoutPidfd = isGuarded ? round + 1 : round + 2;
            expect(watches.at(-1)?.withoutPidfd).toBe(COUNT * withoutPidfd);
            watched.push(after);
            if (settings.scope === 'all') unwatched.push(await DyingProcesses.spawn(NAMES, 'now'));
          }
          const others = (await Promise.all(unwatched.map((dying) => dying.die()))).flat();
          const deaths = (await Promise.all(watched.map((dying) => dying.die()))).flat();
          const { ends, told, gaps, left, by } = await watcher.ask<Ends>(
            'ends',
            others.map(({ pid, spawnedNs }) => ({ pid, spawnedNs })),
          );

          const endOf = new Map(ends.map((event) => [event.pid, event]));
          const certain = deaths.filter((death) => isCertain(filter, death));
          expect(certain.map((death) => seen(death, endOf.get(death.pid)))).toEqual(
            certain.map(expected),
          );
          expect(ends).toHaveLength(deaths.length);
          expect({ gaps, left, by }).toEqual({ gaps: [], left: 0, by: 'connector' });
          // Listeners of the monitor, too, get each end once.
          for (const death of [...deaths, ...others]) {
            const events = told.filter((event) => isEndOf(death, event));
            expect(events).toHaveLength(1);
            if (isCertain(filter, death)) expect(seen(death, events[0])).toEqual(expected(death));
          }
        },
        60_000 + ROUNDS * 10_000,
      );
    }
  }

  itAsRoot(
    'a process that is watched by pid and by identity is reported once to each of its watches',
    async () => {
      await using watcher = new DeniedWatcher('EPERM', { scope: 'watched' });
      await watcher.answer();
      const dying = await DyingProcesses.spawn(['exit-7', 'sigterm', 'worker-fault-core'], 'now');
      const [held = 0, first = 0, last = 0] = dying.pids;
      const identities = new Map<number, ProcessIdentity>();
      for (const pid of dying.pids) identities.set(pid, await watcher.ask('identify', pid));
      await watcher.ask('watch', [held]);
      await watcher.ask('deny');
      for (const pid of dying.pids) {
        const { inode, startTicks } = await watcher.ask<ProcessIdentity>('identify', pid);
        expect({ inode, startTicks }).toEqual({
          inode: null,
          startTicks: identities.get(pid)?.startTicks,
        });
      }
      // By pid and by the identity from before, in either order.
      const watches = await watcher.ask<{ id: string }[]>('watch', [
        ...[held, identities.get(held)],
        ...[first, identities.get(first), first],
        ...[identities.get(last), last, identities.get(last)],
      ]);
      const deaths = await dying.die();
      const { ends, told, left } = await watcher.ask<Ends>('ends');
      const of = (pid: number) => ends.filter((end) => end.pid === pid);
      for (const death of deaths) {
        const each = of(death.pid);
        expect(each.map(statusOf)).toEqual(each.map(() => death.status));
      }
      expect(dying.pids.map((pid) => of(pid).length)).toEqual([3, 3, 3]);
      // All watches share one id. It contains the inode if any of them supplied it.
      const { id: byStart = '' } = watches[2] ?? {};
      expect(byStart).toMatch(/-t\d+$/);
      expect(new Set(of(first).map(({ id }) => id))).toEqual(new Set([byStart]));
      for (const pid of [held, last]) {
        expect(new Set(of(pid).map(({ id }) => id))).toEqual(new Set([identities.get(pid)?.id]));
      }
      expect(told).toHaveLength(3);
      expect(left).toBe(0);
    },
  );

  itAsRoot(
    'the start time reveals that a process is gone and another one has its pid',
    async () => {
      await using watcher = new DeniedWatcher('EPERM', { scope: 'watched' });
      await watcher.answer();
      const child = await mortal();
      const identity = await watcher.ask<ProcessIdentity>('identify', child.pid);
      await watcher.ask('deny');
      const { id, startTicks } = identity;
      const ticks = startTicks - 100;
      const older = {
        ...identity,
        startTicks: ticks,
        inode: null,
        id: id.replace(/-\d+$/, `-t${ticks}`),
      };
      await watcher.ask('watch', [older]);
      expect(await watcher.ask('alive', older)).toBe('dead');
      expect(await watcher.ask('alive', identity)).toBe('alive');
      const stopped = await watcher.ask('terminate', identity);
      expect(stopped).toMatchObject({ outcome: 'requested', isAtomic: false });
      expect(await child.ended).toBeNull();
      await watcher.ask('watch', [identity]);
      const { ends } = await watcher.ask<Ends>('ends');
      expect(ends.map(({ unknownReason }) => unknownReason)).toEqual([
        'gone-before-watch',
        'gone-before-watch',
      ]);
    },
  );
});

itAsRoot(
  'without the connector, pidfds held before still work, and later watches are polled',
  async () => {
    await using watcher = new DeniedWatcher('EPERM', { scope: 'watched' }, ['unshare', '-n']);
    expect(await watcher.answer()).toMatchObject({ source: 'pidfd' });
    const [before, after] = [await DyingProcesses.spawn(NAMES, 'late'), await mortal()];
    await watcher.ask('watch', before.pids);
    await watcher.ask('deny');
    const [later] = await watcher.ask<object[]>('watch', [after.pid]);
    expect(later).toMatchObject({ hasPidfd: false, withoutPidfd: 1 });
    const deaths = await before.die();
    after.child.kill();
    const { ends, left, by } = await watcher.ask<Ends>('ends');
    const endOf = new Map(ends.map((event) => [event.pid, event]));
    expect(deaths.map((death) => seen(death, endOf.get(death.pid)))).toEqual(deaths.map(expected));
    expect(endOf.get(after.pid)).toMatchObject({ how: 'unknown', unknownReason: 'polled' });
    expect({ left, by }).toEqual({ left: 0, by: 'pidfd' });
  },
);
