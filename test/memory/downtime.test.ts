import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

import { ExitMonitor, type ExitEvent, type Gap } from '../../src';

import { MemoryFolder } from '../support/bpffs';
import { CGROUP2, cgroupName } from '../support/cgroup2';
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
  const loop = `echo ready; while :; do sleep 0.01; done`;
  const child = new LineProcess('sh', ['-c', `trap '${script}' TERM; trap : USR1; ${loop}`]);
  expect(await child.line()).toBe('ready');
  return child;
}

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
    await shell(`for i in $(seq 700); do kill -USR1 ${target.pid}; done`);
    const sender = await shell(`kill ${target.pid}`);
    await target.ended;
    for (const cgroup of cgroups) rmdirSync(cgroup);
    const told = await open(memory);
    const event = await recorded(told, target.pid);
    expect(event.signalsReceived.at(-1)).toMatchObject({ signal: 'SIGTERM', pid: sender });
    await told.monitor.close({ forget: true });
  });

  itAsRecorder('the cgroup is known of which an earlier monitor had been told', async () => {
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

  itAsRecorder('the children with which exitwatch tries the kernel are not told', async () => {
    using memory = new MemoryFolder();
    for (let i = 0; i < 2; i++) {
      const told = await open(memory);
      const { pid } = new LineProcess('true', []);
      await until('an end', () => told.exits.find((each) => each.pid === pid));
      const names = told.exits.map(({ name }) => name);
      expect(names).not.toContain('exitwatch-trial');
      await told.monitor.close();
    }
  });
});
