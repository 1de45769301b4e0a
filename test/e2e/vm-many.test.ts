// Lane: patient

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import { identify } from '../../src';
import type { Cause } from '../../src/vm';

import { TestDaemon } from '../support/daemon';
import { itWithQemu, type TestVm } from '../support/qemu';
import { ROUNDS } from '../support/rounds';
import { arrives, until } from '../support/wait';

const VMS = Math.min(50, 10 * ROUNDS);
const SECONDS = Math.min(120, 12 * ROUNDS);

/** The garbage collector of Node.js makes the memory of a process vary by this much. */
const SLACK_KB = 20 * 1024;

/** A small young generation makes V8 collect garbage early. */
const ENV = { NODE_OPTIONS: '--max-semi-space-size=1' };

type Way = 'p' | 'SIGTERM' | 'SIGKILL' | 'quit';

const CAUSES: Record<Way, Cause> = {
  p: 'guest-shutdown',
  SIGTERM: 'forced-stop',
  SIGKILL: 'killed',
  quit: 'other-quit',
};

async function end(vm: TestVm, way: Way): Promise<void> {
  if (way === 'p') await vm.press('p');
  else if (way === 'quit') await vm.ask('quit').catch(() => undefined);
  else vm.child.kill(way);
}

/** The open descriptors of a process, except those that close during the look. */
function descriptors(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

/** The daemon polls leftover files at growing intervals, and opens them for a moment. */
const LOOKS_MS = 20_000;

async function untilAsFew(pid: number, idle: readonly string[]): Promise<void> {
  const since = Date.now();
  while (descriptors(pid).length > idle.length) {
    if (Date.now() - since > LOOKS_MS) expect(descriptors(pid)).toEqual(idle);
    await setTimeout(50);
  }
}

const residentKb = (pid: number) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]);

let daemon: TestDaemon;

afterEach(() => daemon.remove());

itWithQemu(
  `${VMS} machines at once, started and ended for ${SECONDS} s while the daemon restarts: each end gets one verdict, and the daemon does not grow`,
  async () => {
    daemon = new TestDaemon();
    await daemon.start([], ENV);
    const idle = descriptors(daemon.pid);
    const ends: { id: string; way: Way; startedMs: number; toldMs: number }[] = [];
    /** The times without a daemon. */
    const absences: { fromMs: number; untilMs: number }[] = [];
    const isOver = AbortSignal.timeout(SECONDS * 1000);

    const play = async (name: string) => {
      while (!isOver.aborted) {
        const startedMs = Date.now();
        const vm = await daemon.registeredVm(name);
        const identity = identify(vm.pid);
        if (identity === null) throw new Error('it ended');
        await setTimeout(Math.random() * 5000);
        const way = (['p', 'SIGTERM', 'SIGKILL', 'quit'] as const)[Math.floor(Math.random() * 4)];
        const ended = { id: identity.id, way: way ?? 'p', startedMs, toldMs: Infinity };
        ends.push(ended);
        await end(vm, way ?? 'p');
        const isReported = async () => {
          await setTimeout(20); // the daemons of all machines are busy
          return (await daemon.record(name))?.lastStopped?.id === identity.id;
        };
        await until(`the daemon to record the end of ${name}`, isReported);
        ended.toldMs = Date.now();
        vm.remove();
      }
    };

    const restart = async () => {
      for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
        await setTimeout(SECONDS * 100);
        const fromMs = Date.now();
        await daemon.end(signal);
        await daemon.start([], ENV);
        absences.push({ fromMs, untilMs: Date.now() });
      }
    };
    const playing = Promise.all(Array.from({ length: VMS }, (_, index) => play(`vm${index}`)));
    playing.catch(() => undefined); // If the test has failed before, nothing awaits this promise.
    await restart();
    // From here on the daemon is not restarted.
    await setTimeout(SECONDS * 200);
    const before = residentKb(daemon.pid);
    await arrives('the last machines to be played', playing);
    // The daemon says it when it is on the disk, and after it has looked for a later start.
    const isTold = (id: string) =>
      daemon.said.some((each) => each.event === 'stopped' && each.id === id);
    const untold = () => ends.filter(({ id }) => !isTold(id));
    const isEachTold = () => untold().length === 0;
    await until('each end to be told', isEachTold, () => JSON.stringify(untold()));
    await untilAsFew(daemon.pid, idle);
    console.log(`${ends.length} ends; ${before} kB before, ${residentKb(daemon.pid)} kB after`);
    expect(residentKb(daemon.pid)).toBeLessThan(before + SLACK_KB);

    const told = daemon.said.filter(({ event }) => event === 'stopped');
    const wrong = ends.flatMap((ended) => {
      const verdicts = told.filter(({ id }) => id === ended.id);
      const isOne = new Set(verdicts.map(({ cause }) => cause)).size === 1;
      const [{ cause, certainty, candidates = [], userShutdown } = {}] = verdicts;
      // With the cause 'unknown' nearly every cause is a candidate.
      const isRight =
        certainty === 'sure'
          ? cause === CAUSES[ended.way]
          : certainty !== 'unknown' && candidates.includes(CAUSES[ended.way]);
      // A verdict may be uncertain for an end without a daemon, but not the other way round.
      const mayBeOpen =
        certainty !== 'sure' &&
        absences.some(({ fromMs, untilMs }) => ended.startedMs < untilMs && ended.toldMs > fromMs);
      const isUsers = userShutdown === (ended.way === 'p') || (mayBeOpen && userShutdown === null);
      return isOne && isRight && isUsers ? [] : [{ ended, verdicts }];
    });
    expect(wrong).toEqual([]);
    expect(told.filter(({ isRepeated }) => isRepeated === false).length).toBeLessThanOrEqual(
      ends.length,
    );
    expect(new Set(told.map(({ id }) => id)).size).toBe(ends.length);
  },
  180_000 + SECONDS * 1000,
);
