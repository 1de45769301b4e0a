// Lane: patient

import { setTimeout } from 'node:timers/promises';

import { identify } from '../../src';
import type { VmOptions, VmVerdict } from '../../src/vm';

import { backportedQemu, INSTALLED, TestVm, type Qemu } from '../support/qemu';
import { LineProcess, REPOSITORY } from '../support/programs';
import { ROUNDS } from '../support/rounds';
import { arrives, until } from '../support/wait';

const ENDS = 8 * ROUNDS;

const AT_ONCE = 4;

type Way = 'p' | 'SIGTERM' | 'SIGKILL' | 'quit';

/** The cause of each end if the verdict is sure, and the other permitted verdicts. */
const CAUSES: Record<Way, string> = {
  p: 'guest-shutdown',
  SIGTERM: 'forced-stop',
  SIGKILL: 'killed',
  quit: 'other-quit',
};

interface Played {
  vm: TestVm;
  way: Way;
  options: VmOptions;
}

async function startVm(name: string, qemu: string): Promise<Played> {
  const vm = new TestVm({ qemu });
  const identity = identify(vm.pid);
  if (identity === null) throw new Error('it ended');
  await vm.booted();
  const { eventLog, log, pidfile } = vm;
  const ways: Way[] = ['p', 'SIGTERM', 'SIGKILL', 'quit'];
  const way = ways[Math.floor(Math.random() * ways.length)] ?? 'p';
  return { vm, way, options: { name, identity, pidfile, qmp: vm.sockets[0] ?? '', eventLog, log } };
}

async function end({ vm, way }: Played): Promise<void> {
  await setTimeout(Math.random() * 200);
  if (way === 'p') await vm.press('p');
  else if (way === 'quit') await vm.ask('quit').catch(() => undefined);
  else vm.child.kill(way);
}

const declareWith = (qemu: Qemu) => {
  qemu.it(
    `QEMU ${qemu.major}: ${ENDS} ends get one verdict each while the monitor is killed and restarted, and no sure verdict is wrong`,
    async () => {
      const running = new Map<string, Played>();
      const verdicts = new Map<string, VmVerdict[]>();
      let watcher: LineProcess | undefined;
      let isReady = false;
      const startWatcher = () => {
        isReady = false;
        const started = new LineProcess(process.execPath, [
          `${REPOSITORY}/test/programs/vm-watcher.cjs`,
        ]);
        watcher = started;
        started.child.stdin.on('error', () => undefined); // it may have been killed
        for (const { options } of running.values())
          started.child.stdin.write(`${JSON.stringify(options)}\n`);
        void read(started);
      };
      const read = async (from: LineProcess) => {
        for await (const line of from.lines) {
          if (line === 'ready') {
            isReady = true;
            continue;
          }
          const stop = JSON.parse(line) as VmVerdict;
          verdicts.set(stop.name, [...(verdicts.get(stop.name) ?? []), stop]);
          const played = running.get(stop.name);
          running.delete(stop.name);
          if (played !== undefined) check(played, stop);
        }
      };
      const wrong: unknown[] = [];
      const check = ({ vm, way }: Played, stop: VmVerdict) => {
        const { cause, certainty, userShutdown, candidates } = stop;
        const isRight = cause === CAUSES[way] || candidates.includes(CAUSES[way] as never);
        if (!isRight || certainty === 'unknown') wrong.push({ way, stop });
        else if (certainty === 'sure' && cause !== CAUSES[way]) wrong.push({ way, stop });
        else if (userShutdown !== (way === 'p')) wrong.push({ way, stop });
        vm.remove();
      };
      startWatcher();
      let ends = 0;
      const play = async () => {
        while (ends < ENDS) {
          const name = `vm${++ends}`;
          const played = await startVm(name, qemu.binary);
          running.set(name, played);
          watcher?.child.stdin.write(`${JSON.stringify(played.options)}\n`);
          await end(played);
          await until(
            `the verdict on ${name}`,
            () => !running.has(name),
            () => watcher?.told() ?? '',
          );
        }
      };
      let isOver = false;
      const harass = async () => {
        while (!isOver) {
          // On a busy host it would always be killed before it can tell a verdict.
          await until('the watcher to be ready', () => isReady);
          await setTimeout(300 + Math.random() * 500);
          watcher?.child.kill('SIGKILL');
          await watcher?.ended;
          await setTimeout(Math.random() * 200);
          startWatcher();
        }
      };
      const harassing = harass();
      harassing.catch(() => undefined); // if the test has failed, nothing awaits this
      await Promise.all(Array.from({ length: AT_ONCE }, play));
      isOver = true;
      await arrives('the last watcher to start', harassing);
      watcher?.child.kill('SIGKILL');
      expect(wrong).toEqual([]);
      expect([...verdicts.values()].map((each) => each.length)).toEqual(
        Array.from({ length: ENDS }, () => 1),
      );
    },
    60_000 + ENDS * 2000,
  );
};

declareWith(INSTALLED);
declareWith(backportedQemu());
