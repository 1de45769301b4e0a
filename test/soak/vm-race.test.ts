// Lane: storm

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { identify } from '../../src';
import { stop } from '../../src/process';
import { readShutdownMarker, type VmEnd } from '../../src/vm';

import { TestDaemon } from '../support/daemon';
import { itWithQemu, type TestVm } from '../support/qemu';
import { ROUNDS } from '../support/rounds';
import { arrives, until } from '../support/wait';

const REPEATS = 15 * ROUNDS;

const AT_ONCE = 4;

/** Each name has many starts, whose events share one log. */
type Way = 'ours' | 'users' | 'both';

interface Round {
  name: string;
  way: Way;
  id: string;
  /** According to the hypervisor. */
  isUsers: boolean;
}

/** Waits between 0 and `most` ms. */
const randomMs = (most: number) => setTimeout(Math.random() * most);

/** Whether the guest was first in the last start of the event log. */
function wasGuestFirst(vm: TestVm, startedAt: number): boolean {
  const events = readFileSync(vm.eventLog, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"SHUTDOWN"'))
    .map((line) => JSON.parse(line) as { timestamp: { seconds: number }; data: { reason: string } })
    .filter(({ timestamp }) => timestamp.seconds >= startedAt - 1);
  return events.at(-1)?.data.reason === 'guest-shutdown';
}

let daemon: TestDaemon;

afterEach(() => daemon.remove());

itWithQemu(
  `${REPEATS} rounds of a stop by exitwatch, by the user, or by both at once, while the daemon is killed: each gets its verdict and the right mark`,
  async () => {
    daemon = new TestDaemon();
    const told = join(daemon.folder, 'told');
    const hook = [
      '--hook',
      `echo $EXITWATCH_ID $EXITWATCH_USER_SHUTDOWN $EXITWATCH_REPEATED >> ${told}`,
    ];
    await daemon.start(hook);
    const rounds: Round[] = [];
    const wrong: unknown[] = [];
    let begun = 0;

    const play = async (name: string, isRegistered: boolean) => {
      while (begun < REPEATS) {
        const way = (['ours', 'users', 'both'] as const)[begun++ % 3] ?? 'ours';
        const startedAt = Date.now() / 1000;
        const vm = await (isRegistered ? daemon.registeredVm(name) : daemon.vm(name));
        const identity = identify(vm.pid);
        if (identity === null) throw new Error('it ended');
        // If the pidfile disappears with the machine, the daemon must see it first to know the
        // process.
        if (!isRegistered) {
          await daemon.recorded(name, (record) => record.identity?.id === identity.id);
        }
        await randomMs(100);
        const { intentLog } = daemon;
        const ours = async () => {
          await randomMs(30);
          await stop(identity, { intentLog, forceKillAfterDelayMs: 20_000 });
        };
        const users = async () => {
          await randomMs(60);
          await vm.press('p');
        };
        await Promise.all([
          ...(way === 'users' ? [] : [ours()]),
          ...(way === 'ours' ? [] : [users()]),
        ]);
        const record = await daemon.recorded(name, ({ state, lastStopped }) => {
          return state === 'stopped' && lastStopped?.id === identity.id;
        });
        const isUsers = way === 'users' || (way === 'both' && wasGuestFirst(vm, startedAt));
        rounds.push({ name, way, id: identity.id, isUsers });
        const { lastStop } = record;
        const marker = await readShutdownMarker(daemon.stateDir, name, identity);
        const isRight =
          lastStop?.userShutdown === isUsers &&
          lastStop.initiator === (isUsers ? 'guest' : 'manager') &&
          (marker !== null) === isUsers;
        if (!isRight) wrong.push({ way, isUsers, lastStop, marker });
        vm.remove();
      }
    };

    let isOver = false;
    const harass = async () => {
      while (!isOver) {
        await randomMs(1500);
        await daemon.end('SIGKILL');
        await randomMs(300);
        await daemon.start(hook);
      }
    };
    const harassing = harass();
    harassing.catch(() => undefined); // If the test has failed before, nothing awaits this promise.
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, index) => play(`race${index}`, index % 2 === 0)),
    );
    isOver = true;
    await arrives('the last daemon to start', harassing);

    // Every end is reported, and repeated reports are marked as such.
    const reports = () =>
      existsSync(told)
        ? readFileSync(told, 'utf8')
            .trim()
            .split('\n')
            .map((line) => line.split(' '))
        : [];
    const areReported = () => new Set(reports().map(([id]) => id)).size >= REPEATS;
    await until(`${REPEATS} reported ends`, areReported, () => reports().join('\n'));
    const first = reports().filter(([, , isRepeated]) => isRepeated === 'false');
    expect(new Set(first.map(([id]) => id)).size).toBe(first.length);
    const byId = new Map(rounds.map(({ id, isUsers }) => [id, String(isUsers)]));
    expect(reports().filter(([id = '', isUsers]) => byId.get(id) !== isUsers)).toEqual([]);
    const verdicts = new Map<string, Set<unknown>>();
    for (const { event, id = '', cause } of daemon.said as (VmEnd & {
      event: string;
      cause: string;
    })[]) {
      if (event === 'stopped') verdicts.set(id, (verdicts.get(id) ?? new Set()).add(cause));
    }
    expect([...verdicts.values()].filter((causes) => causes.size !== 1)).toEqual([]);
    expect(wrong).toEqual([]);
    expect(rounds.length).toBe(REPEATS);
  },
  60_000 + REPEATS * 2000,
);
