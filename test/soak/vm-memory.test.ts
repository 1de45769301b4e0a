// Lane: patient

import { setTimeout } from 'node:timers/promises';

import { identify } from '../../src';
import type { Cause } from '../../src/vm';

import { MemoryFolder } from '../support/bpffs';
import { TestDaemon } from '../support/daemon';
import { LineProcess } from '../support/programs';
import { itWithQemuAsRoot, type TestVm } from '../support/qemu';
import { ROUNDS } from '../support/rounds';
import { arrives } from '../support/wait';

const VMS = 30 * ROUNDS;

const AT_ONCE = 4;

type Way = 'p' | 'TERM' | 'KILL' | 'quit';

const WAYS: Way[] = ['p', 'TERM', 'KILL', 'quit'];

const EXPECTED: Record<Way, { cause: Cause; userShutdown: boolean; exit: object }> = {
  p: { cause: 'guest-shutdown', userShutdown: true, exit: { exitCode: 0, traced: true } },
  TERM: { cause: 'forced-stop', userShutdown: false, exit: { exitCode: 0, traced: true } },
  KILL: { cause: 'killed', userShutdown: false, exit: { signal: 'SIGKILL', traced: true } },
  quit: { cause: 'other-quit', userShutdown: false, exit: { exitCode: 0, traced: true } },
};

/** Ends a machine; resolves with the pid of the process that signalled it. */
async function end(vm: TestVm, way: Way): Promise<number | null> {
  if (way === 'p') await vm.press('p');
  else if (way === 'quit') await vm.ask('quit').catch(() => undefined);
  else {
    const killer = new LineProcess('sh', ['-c', `kill -${way} ${vm.pid}; true`]);
    await killer.ended;
    return killer.pid;
  }
  return null;
}

itWithQemuAsRoot(
  `${VMS} machines end while the daemon is killed again and again: each verdict is as certain as if it had been there`,
  async () => {
    using memory = new MemoryFolder();
    const daemon = new TestDaemon();
    const args = ['--pin-dir', memory.pinDir];
    try {
      await daemon.start(args);
      const wrong: unknown[] = [];
      const sources = new Set<unknown>();
      let begun = 0;
      let isDown = false;
      const play = async (name: string) => {
        while (begun < VMS) {
          const way = WAYS[begun++ % WAYS.length] ?? 'p';
          const vm = await daemon.vm(name);
          const identity = identify(vm.pid);
          await daemon.recorded(name, (record) => record.identity?.id === identity?.id);
          // Most end while there is no daemon.
          for (let i = 0; i < 20 && !isDown; i++) await setTimeout(50);
          const sender = await end(vm, way);
          const { lastStop } = await daemon.recorded(
            name,
            ({ state, lastStopped }) => state === 'stopped' && lastStopped?.id === identity?.id,
          );
          const { cause, userShutdown, exit } = EXPECTED[way];
          const received = lastStop?.exit?.sender ?? lastStop?.exit?.signalsReceived.at(-1) ?? null;
          sources.add(lastStop?.exit?.source);
          const isRight =
            lastStop?.cause === cause &&
            lastStop.userShutdown === userShutdown &&
            lastStop.certainty === 'sure' &&
            Object.entries(exit).every(([key, value]) => lastStop.exit?.[key as 'pid'] === value) &&
            (received?.pid ?? null) === sender;
          if (!isRight) wrong.push({ way, sender, lastStop });
          vm.remove();
        }
      };
      let isOver = false;
      const harass = async () => {
        while (!isOver) {
          await setTimeout(500 + Math.random() * 500);
          await daemon.end('SIGKILL');
          isDown = true;
          await setTimeout(500 + Math.random() * 500);
          isDown = false;
          await daemon.start(args);
        }
      };
      const harassing = harass();
      harassing.catch(() => undefined);
      await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => play(`vm${index}`)));
      isOver = true;
      await arrives('the last daemon to start', harassing);
      expect(wrong).toEqual([]);
      expect(sources).toContain('recorder');
    } finally {
      await daemon.remove();
    }
  },
  60_000 + VMS * 5000,
);
