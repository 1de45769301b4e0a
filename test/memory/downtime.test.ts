// Lane: storm

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

import { ExitMonitor, type ExitEvent, type Gap } from '../../src';
import { ExitRing } from '../../src/memory/exit-ring';
import { RecordedExits } from '../../src/memory/recorded-exits';
import { Refusal } from '../../src/native/abi';
import { loadAddon } from '../../src/native/load-addon';
import { judgeTrial } from '../../src/trace/trial';

import { MemoryFolder } from '../support/bpffs';
import { CGROUP2, cgroupName, itWithCgroup } from '../support/cgroup2';
import { itAsRecorder } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { until } from '../support/wait';

interface Told {
  monitor: ExitMonitor;
  exits: ExitEvent[];
  gaps: Gap[];
}

async function open(memory: MemoryFolder, size: object = {}): Promise<Told> {
  const { stateDir, recorder } = memory.options;
  const monitor = new ExitMonitor({ scope: 'all', stateDir, recorder: { ...recorder, ...size } });
  const [exits, gaps]: [ExitEvent[], Gap[]] = [[], []];
  monitor.on('exit', (event) => exits.push(event)).on('gap', (gap) => gaps.push(gap));
  expect(await monitor.start()).toMatchObject({ memory: 'recorder' });
  return { monitor, exits, gaps };
}

/** The end of this process, which was recorded. */
const recorded = async ({ exits }: Told, pid: number) => {
  const event = await until(`the end of ${pid}`, () => exits.find((each) => each.pid === pid));
  expect(event).toMatchObject({ source: 'recorder', lossless: true, traced: true });
  return event;
};

/** Runs in another process, whose pid is returned. */
async function shell(script: string): Promise<number> {
  const sender = new LineProcess('sh', ['-c', `${script}; :`]);
  expect(await sender.ended).toBe(0);
  return sender.pid;
}

async function trapping(script: string): Promise<LineProcess> {
  const loop = `echo ready; while :; do sleep 0.05; done`;
  const child = new LineProcess('sh', ['-c', `trap '${script}' TERM; trap : USR1; ${loop}`]);
  expect(await child.line()).toBe('ready');
  return child;
}

/** A recorder that is not pinned. */
class OwnRecorder {
  readonly recorder = new (loadAddon().Recorder)();
  readonly exits: RecordedExits;

  constructor() {
    const size = { slots: 16, ringBytes: 1024 * 1024, signalBytes: 256 * 1024 };
    const refusal = this.recorder.create({ ...size, owner: 0, version: '', stateDir: '' });
    expect(refusal).toMatchObject({ refusal: Refusal.none });
    this.recorder.setLease(60_000);
    expect(judgeTrial(this.recorder.trial())).toBeNull();
    this.recorder.trust();
    this.exits = new RecordedExits(this.recorder);
  }

  [Symbol.dispose](): void {
    this.recorder.close();
  }
}

const itWithPaths = CGROUP2 === undefined ? itWithCgroup : itAsRecorder;

describe('of what ended while nobody watched', () => {
  itAsRecorder('it is known who asked a process to exit', async () => {
    using memory = new MemoryFolder();
    await (await open(memory)).monitor.close();
    const target = await trapping('exit 0');
    const sender = await shell(`kill ${target.pid}`);
    await target.ended;
    const told = await open(memory);
    const event = await recorded(told, target.pid);
    expect(event).toMatchObject({ how: 'exited', exitCode: 0, sender: null });
    expect(event.signalsReceived).toMatchObject([{ signal: 'SIGTERM', pid: sender, name: 'sh' }]);
    const [request] = event.signalsReceived;
    expect(event.exitedAt.getTime() - (request?.sentAt.getTime() ?? 0)).toBeLessThan(10_000);
    await told.monitor.close({ forget: true });
  });

  itAsRecorder('it is known who asked, if the process then sent that to itself', async () => {
    using memory = new MemoryFolder();
    await (await open(memory)).monitor.close();
    const target = await trapping('trap - TERM; kill -TERM $$');
    const sender = await shell(`kill ${target.pid}`);
    await target.ended;
    const told = await open(memory);
    expect(await recorded(told, target.pid)).toMatchObject({
      ...{ how: 'killed', signal: 'SIGTERM' },
      sender: { pid: target.pid },
      raisedAfter: { pid: sender, name: 'sh' },
    });
    await told.monitor.close({ forget: true });
  });

  itAsRecorder('it is known behind more signals and cgroups than are read at once', async () => {
    using memory = new MemoryFolder();
    await (await open(memory)).monitor.close();
    const target = await trapping('exit 0');
    const cgroups = CGROUP2 === undefined ? [] : [cgroupName(), cgroupName()];
    for (const cgroup of cgroups) {
      mkdirSync(cgroup);
      await shell(`echo $$ > ${join(cgroup, 'cgroup.procs')}; kill -USR1 ${target.pid}`);
    }
    const flood = new LineProcess(program('flood'), ['700', 'blocked']);
    expect(await flood.ended).toBe(0);
    const sender = await shell(`kill ${target.pid}`);
    await target.ended;
    for (const cgroup of cgroups) rmdirSync(cgroup);
    const told = await open(memory);
    const event = await recorded(told, target.pid);
    expect(event.signalsReceived.at(-1)).toMatchObject({ signal: 'SIGTERM', pid: sender });
    await told.monitor.close({ forget: true });
  });

  itWithPaths('the cgroup is known of which an earlier monitor had been told', async () => {
    using memory = new MemoryFolder();
    const before = await open(memory);
    const cgroup = cgroupName();
    mkdirSync(cgroup);
    const enter = `echo $$ > ${join(cgroup, 'cgroup.procs')}`;
    const first = await shell(enter);
    await until('the first end', () => before.exits.find(({ pid }) => pid === first));
    await before.monitor.close();
    const target = new LineProcess('sleep', ['1000']);
    const second = await shell(`${enter}; kill ${target.pid}`);
    await target.ended;
    rmdirSync(cgroup);
    const told = await open(memory);
    const path = cgroup.slice(CGROUP2?.length);
    expect(await recorded(told, second)).toMatchObject({ cgroup: path });
    expect(await recorded(told, target.pid)).toMatchObject({ sender: { cgroup: path } });
    await told.monitor.close({ forget: true });
  });

  itAsRecorder('nothing is lost by signals that a process blocks and waits for', async () => {
    using memory = new MemoryFolder();
    const size = { ringBytes: 256 * 1024, signalBytes: 64 * 1024 };
    await (await open(memory, size)).monitor.close();
    const flood = new LineProcess(program('flood'), ['5000', 'blocked']);
    expect(await flood.ended).toBe(0);
    const target = new LineProcess('sleep', ['1000']);
    await shell(`kill -KILL ${target.pid}`);
    await target.ended;
    const told = await open(memory, size);
    await until('the end', () => told.exits.find(({ pid }) => pid === target.pid));
    expect(told.gaps).toEqual([]);
    await told.monitor.close({ forget: true });
  });

  itAsRecorder('signals stay until the exits that need them are committed', async () => {
    using own = new OwnRecorder();
    const { recorder, exits } = own;
    const ring = new ExitRing([{ recorder, exits }], 0);
    const target = await trapping('exit 0');
    await shell(`kill ${target.pid}`);
    await target.ended;
    const events = ring.drain(() => true);
    const { signals } = recorder.used();
    expect(signals).toBeGreaterThan(0);

    const clock = jest.spyOn(performance, 'now');
    const later = performance.now() + 300_000;
    clock.mockImplementation(() => later);
    const letGo = () => {
      for (let i = 0; i < 2; i++) exits.letGo(ring.uncommittedSince(recorder) ?? later);
    };
    letGo();
    expect(recorder.used().signals).toBe(signals);
    for (const { id } of events) ring.commit(id);
    expect(ring.uncommittedSince(recorder)).toBeNull();
    letGo();
    expect(recorder.used().signals).toBeLessThan(signals);
    clock.mockRestore();
  });

  itAsRecorder('the kernel checks the programs in a moment', () => {
    using own = new OwnRecorder();
    expect(own.recorder.about()).toMatchObject({ isRecording: true });
    const folder = '/proc/self/fdinfo';
    const checked = readdirSync(folder).flatMap((fd) => {
      const info = existsSync(join(folder, fd)) ? readFileSync(join(folder, fd), 'latin1') : '';
      return Number(/^verified_insns:\t(\d+)$/m.exec(info)?.[1] ?? 0); // Linux 5.16
    });
    // It refuses one of which it has followed a million.
    expect(Math.max(...checked)).toBeLessThan(100_000);
  });

  itAsRecorder('the children with which exitwatch tries the kernel are not told', async () => {
    using memory = new MemoryFolder();
    for (let i = 0; i < 2; i++) {
      const told = await open(memory);
      const { pid } = new LineProcess('true', []);
      await until('an end', () => told.exits.find((each) => each.pid === pid));
      const ours = told.exits.filter(({ parentPid }) => parentPid === process.pid);
      expect(ours.map(({ name }) => name)).not.toContain('exitwatch-trial');
      await told.monitor.close();
    }
  });
});
