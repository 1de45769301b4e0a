// Lane: patient

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { VmMonitor, type QmpEvent, type VmVerdict } from '../../src/vm';
import { GrowingFile } from '../../src/vm/evidence/growing-file';
import { parseLogLine } from '../../src/vm/qemu/event-log-line';

import { folderOfController, itAsRootWith, MemoryCgroup } from '../support/controllers';
import { stopOf } from '../support/ends';
import { backportedQemu, INSTALLED, TestVm, type Qemu } from '../support/qemu';
import { ROUNDS } from '../support/rounds';
import { arrives } from '../support/wait';
import { compare, HEADER } from '../vm/other-rules';
import { OUT_OF_MEMORY, SCENARIOS, type Scenario } from '../vm/scenarios';

/** A single round plays one scenario per cause with the other QEMU. */
const isSampled = ROUNDS === 1;

/** The file for the table of `npm run docs:vms`. */
const TABLE = process.env['EXITWATCH_TABLE'];

interface Run {
  stop: VmVerdict;
  /** By the name of the missing evidence. */
  reduced: Map<string, VmVerdict>;
  events: QmpEvent[];
}

/** Plays a scenario for one watch with all witnesses and others with fewer. */
async function play(scenario: Scenario, hasLateClient: boolean): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-vms-'));
  const intentLog = join(folder, 'intents');
  const traced = new VmMonitor({ intentLog });
  const untraced = new VmMonitor({ intentLog, trace: 'off' });
  // A signal that is sent before the trace starts has no known sender.
  await Promise.all([traced.start(), untraced.start()]);
  const vm = new TestVm({ ...scenario.settings, isEarly: scenario.isEarly === true });
  for (const monitor of [traced, untraced]) monitor.on('warning', () => undefined);
  try {
    const pid = scenario.settings?.daemonize === true ? await vm.daemonPid() : vm.pid;
    const target = { pid };
    const [qmp = '', lateQmp = ''] = vm.sockets;
    const { eventLog, log } = vm;
    const running = new Promise<void>((resolve) => {
      traced.on('running', (name) => {
        if (name === 'all') resolve();
      });
    });
    const watch = traced.watch({ name: 'all', ...target, qmp, eventLog, log });
    const others = [
      traced.watch({ name: 'without QMP', ...target, log }),
      untraced.watch({ name: 'without the signal trace', ...target, eventLog, log }),
      traced.watch({ name: 'without log', ...target }),
      untraced.watch({ name: 'with nothing but the exit', ...target }),
    ];
    const late = async () => {
      if (!hasLateClient) return;
      await setTimeout(Math.max(0, vm.startedAt + 1500 - Date.now()));
      const isThere = new Promise<void>((resolve) => {
        untraced.on('running', (name) => {
          if (name === 'with a late client') resolve();
        });
      });
      others.push(untraced.watch({ name: 'with a late client', ...target, qmp: lateQmp }));
      await arrives('the late client', isThere);
    };
    if (scenario.isEarly !== true) {
      await arrives('the machine to run', running);
      await vm.booted();
    }
    await scenario.act({ vm, watch, pid, late });
    const stop = await stopOf(watch);
    const reduced = await Promise.all(others.map(stopOf));
    return {
      stop,
      reduced: new Map(reduced.map((each) => [each.name, each])),
      events: await eventsOf(vm),
    };
  } finally {
    await Promise.all([traced.close(), untraced.close()]);
    vm.remove();
    rmSync(folder, { recursive: true });
  }
}

async function eventsOf(vm: TestVm): Promise<QmpEvent[]> {
  const events: QmpEvent[] = [];
  const file = new GrowingFile(vm.eventLog, (line) => {
    const event = parseLogLine(line);
    if (event !== null && event !== 'torn') events.push(event);
  });
  await file.read();
  return events;
}

/** The wrong claims of a verdict with less evidence. It may know less, but must not claim more. */
function claims(scenario: Scenario, stop: VmVerdict): string[] {
  const wrong: string[] = [];
  const { cause, userShutdown, certainty, candidates } = stop;
  const isRight = cause === scenario.cause || cause === scenario.orCause;
  if (certainty === 'sure' && !isRight) wrong.push(`sure of ${cause}`);
  if (certainty === 'one-of' && !candidates.includes(scenario.cause))
    wrong.push(`none of ${candidates.join()}`);
  if (userShutdown === true && !scenario.userShutdown) wrong.push('claims that the user did it');
  if (userShutdown === false && scenario.userShutdown) wrong.push('denies that the user did it');
  return wrong.map((each) => `${stop.name}: ${each}`);
}

const rows: string[] = [];

function check(scenario: Scenario, rounds = ROUNDS): () => Promise<void> {
  return async () => {
    for (let round = 0; round < rounds; round++) {
      const { stop, reduced, events } = await play(scenario, round === 0 && TABLE === undefined);
      const { cause, userShutdown, initiator, certainty } = stop;
      expect({ cause, userShutdown, initiator, certainty, facts: stop.evidence }).toMatchObject({
        cause: scenario.cause,
        userShutdown: scenario.userShutdown,
        initiator: scenario.initiator,
        ...(scenario.isLikely === 'perhaps'
          ? {}
          : { certainty: scenario.isLikely === true ? 'likely' : 'sure' }),
      });
      expect(stop.evidence.length).toBeGreaterThan(0);
      expect(JSON.parse(JSON.stringify(stop))).toMatchObject({ event: 'stopped', cause });
      expect([...reduced.values()].flatMap((each) => claims(scenario, each))).toEqual([]);
      if (round === 0) rows.push(compare(scenario, stop, events));
    }
  };
}

declareWith(INSTALLED, SCENARIOS, ROUNDS);

// The comparison describes the installed QEMU.
if (TABLE === undefined) {
  const isFirstOfCause = ({ cause, on }: Scenario, i: number) =>
    on !== undefined || SCENARIOS.findIndex((each) => each.cause === cause) === i;
  describe("Debian's backport", () => {
    const sample = SCENARIOS.filter(isFirstOfCause);
    declareWith(backportedQemu(), isSampled ? sample : SCENARIOS, ROUNDS);
  });
}

function declareWith(qemu: Qemu, scenarios: readonly Scenario[], rounds: number): void {
  const { binary, major } = qemu;
  for (const scenario of scenarios) {
    const settings = { ...scenario.settings, qemu: binary };
    const here = { ...scenario, ...scenario.on?.[major ?? 0], settings };
    qemu.it(
      `${here.name}: ${here.cause}, ${here.userShutdown ? 'by the user' : 'not by the user'}`,
      check(here, rounds),
      20_000 * rounds,
    );
  }
  const settings = { ...OUT_OF_MEMORY.settings, qemu: binary };
  const itRunsOut = folderOfController('memory') === null ? itAsRootWith('memory') : qemu.it;
  itRunsOut(
    'out of memory: oom-killed',
    runOutOfMemory({ ...OUT_OF_MEMORY, settings }, rounds),
    20_000 * rounds,
  );
}

function runOutOfMemory(scenario: Scenario, rounds: number): () => Promise<void> {
  return async () => {
    await using cgroup = new MemoryCgroup(160 * 1024 * 1024);
    const before = ['sh', '-c', `echo 0 > ${cgroup.path}/cgroup.procs; exec "$@"`, 'sh'];
    await check({ ...scenario, settings: { ...scenario.settings, before } }, rounds)();
  };
}

afterAll(() => {
  if (TABLE === undefined) return;
  const text = readFileSync(TABLE, 'utf8');
  const [head = ''] = text.split('<!-- generated -->');
  writeFileSync(TABLE, `${head}<!-- generated -->\n\n${[...HEADER, ...rows].join('\n')}\n`);
});
