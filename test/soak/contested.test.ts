// Lane: storm

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ExitMonitor, type ExitEvent } from '../../src';

import { itAsRootWith } from '../support/controllers';
import { exitOf } from '../support/ends';
import { describeForEachFilter } from '../support/filters';
import { HAS_CONNECTOR, KERNEL } from '../support/kernel';
import { itAsRoot, itAsRootOfHost } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

const REPEATS = 4 * ROUNDS;

/**
 * An interrupt sends in the name of whoever it interrupts, and there are hosts whose kernel runs no BPF
 * program in the name of its first process: such a round, in which nothing is claimed, is repeated.
 */
const INTERRUPTS = ['own-timer'];
/** One in some 2,000 beside busy processes. */
const MOST_UNSEEN = Math.ceil(REPEATS / 100);

interface Contest {
  event: ExitEvent;
  status: number;
  /** The pid in the siginfo of the fatal signal; 0: the kernel. */
  truth: number;
}

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-cores-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

async function* contests(way: string, options: object): AsyncGenerator<Contest> {
  await using monitor = new ExitMonitor({ trace: 'on', ...options });
  await monitor.start();
  const rounds = String(REPEATS + MOST_UNSEEN);
  const contest = new LineProcess(program('contest'), [way, rounds], { cwd: folder });
  let unseen = 0;
  for (let round = 0; round < REPEATS + unseen; round++) {
    const [, pid] = ((await contest.line()) ?? '').split(' ');
    const watch = monitor.watch(Number(pid));
    contest.child.stdin.write('go\n');
    const [, status, truth] = ((await contest.line()) ?? '').split(' ').map(Number);
    const event = await exitOf(watch);
    const isUnseen = !event.traced && event.sender === null && INTERRUPTS.includes(way);
    if (isUnseen && unseen < MOST_UNSEEN) unseen++;
    else yield { event, status: status ?? -1, truth: truth ?? -1 };
  }
  contest.child.stdin.end();
  await contest.ended;
  expect(contest.stderr).toBe('');
}

/** The sender that an event names. 0 is the kernel or the process itself. */
const named = ({ sender }: ExitEvent) => (sender === null ? 'nobody' : (sender.pid ?? 0));

/** Whether the event claims something wrong. Without `traced` it claims nothing. */
const isWrong = ({ event, truth }: Contest) =>
  event.traced && (named(event) !== truth || event.oom !== false);

/** In these ways the sender must always be named. */
const MOSTLY_CERTAIN: [string, string[]][] = [
  ['one', ['kill']],
  ['abort', ['tgkill']],
  ['two-dump', ['kill']],
  ['held', ['kill']],
  ['held-dump', ['kill']],
  ['injected', ['ptrace']],
  ['injected-dump', ['ptrace']],
  ['injected-blocked-late', ['kill']],
  ['own-timer', ['timer']],
  ['by-file', ['sigio']],
  ['by-file-default', ['sigio']],
];

const isCertain = ([way]: [string, string[]]) =>
  (KERNEL.tellsInterrupts || !way.startsWith('by-file')) &&
  (KERNEL.tellsInjected || way !== 'injected-blocked-late');

const CERTAIN = MOSTLY_CERTAIN.filter(isCertain);

/** In these ways it may have been either sender. */
const UNCERTAIN = [
  'three-dump-threads',
  'injected-blocked',
  'injected-blocked-detached',
  'detached',
  ...MOSTLY_CERTAIN.filter((way) => !isCertain(way)).map(([way]) => way),
];

const SOURCES = [
  { scope: 'watched', source: 'auto' },
  { scope: 'all', source: 'connector' },
];

describeForEachFilter(() => {
  describe.each(SOURCES)('and %j', (options) => {
    itAsRoot.each(CERTAIN)(
      `%s, ${REPEATS} times: names the sender of the signal that the process took`,
      async (way, origins) => {
        const wrong = [];
        for await (const contest of contests(way, options)) {
          const { traced, sender, signalsReceived } = contest.event;
          const isRight = traced && !isWrong(contest) && origins.includes(sender?.origin ?? '');
          const received = signalsReceived.map(({ origin }) => origin);
          if (!isRight) wrong.push({ ...contest, received, sender: sender?.origin, traced });
        }
        expect(wrong).toEqual([]);
      },
      60_000 + REPEATS * 200,
    );

    itAsRoot.each(UNCERTAIN)(
      `%s, ${REPEATS} times: never names the wrong sender`,
      async (way) => {
        const wrong = [];
        for await (const contest of contests(way, options))
          if (isWrong(contest)) wrong.push(contest);
        expect(wrong).toEqual([]);
      },
      60_000 + REPEATS * 200,
    );
  });
});

(HAS_CONNECTOR ? itAsRootWith('memory') : itAsRootOfHost)(
  'the end of a pid namespace is not attributed to the OOM killer, however soon it follows an OOM kill',
  async () => {
    const MEMBERS = 20;
    const NAMESPACES = 80;
    await using monitor = new ExitMonitor({ scope: 'all', trace: 'on' });
    const ends: ExitEvent[] = [];
    // Other tests have targets, too.
    const parents = new Set<number | null>();
    monitor.on('exit', (event) => {
      const { name, parentPid, signal } = event;
      if (signal !== 'SIGKILL') return;
      if (name === 'member' || (name === 'target' && parents.has(parentPid))) ends.push(event);
    });
    await monitor.start();
    const rounds = Math.ceil(REPEATS / 40);
    for (let round = 0; round < rounds; round++) {
      const fates = new LineProcess(program('fates'), ['out-of-memory']);
      parents.add(fates.pid);
      await fates.line();
      fates.child.stdin.write('go\n');
      await fates.rest();
      // The kernel reuses the memory of the victim some seconds later.
      const many = [String(NAMESPACES), String(MEMBERS)];
      expect(await new LineProcess(program('namespaces'), many).line()).toBe(
        `killed ${NAMESPACES * MEMBERS}`,
      );
    }
    const wanted = rounds * (NAMESPACES * MEMBERS + 1);
    const told = () => `${ends.length} were reported`;
    await until(`${wanted} ends`, () => ends.length >= wanted, told);
    const victims = ends.filter(({ oom }) => oom !== false);
    expect(victims.map(({ name, oom, traced }) => ({ name, oom, traced }))).toEqual(
      Array.from({ length: rounds }, () => ({ name: 'target', oom: true, traced: true })),
    );
    expect(ends.filter(({ traced, sender }) => !traced || sender?.origin !== 'kernel')).toEqual([]);
  },
  60_000 + REPEATS * 1000,
);
