// Lane: storm

import { closeSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { ExitMonitor, type ExitEvent, type Gap } from '../../src';
import { pinsOf } from '../../src/memory/pin-folder';
import { loadAddon } from '../../src/native/load-addon';

import { MemoryFolder } from '../support/bpffs';
import { exitOf, exitsOf } from '../support/ends';
import { mortal, release } from '../support/mortal';
import { itAsRecorder } from '../support/privilege';
import { LineProcess, program, REPOSITORY } from '../support/programs';
import { until } from '../support/wait';

/** Watches processes with a monitor that then goes, and ends them. */
async function endedMeanwhile(memory: MemoryFolder, count: number): Promise<void> {
  const monitor = new ExitMonitor(memory.options);
  await monitor.start();
  const targets = [];
  for (let i = 0; i < count; i++) targets.push(await mortal());
  for (const { pid } of targets) monitor.watch(pid);
  await monitor.close();
  for (const target of targets) await release(target);
}

/** Opens the recorder of a state directory beside its monitor. */
function withRecorder<T>(
  memory: MemoryFolder,
  use: (recorder: InstanceType<ReturnType<typeof loadAddon>['Recorder']>) => T,
): T {
  const recorder = new (loadAddon().Recorder)();
  try {
    expect(recorder.open(pinsOf(memory.pinDir, memory.stateDir))).toBe(0);
    return use(recorder);
  } finally {
    recorder.close();
  }
}

describe('a monitor that is closed', () => {
  itAsRecorder('by a listener delivers no more, and the rest comes again', async () => {
    using memory = new MemoryFolder();
    await endedMeanwhile(memory, 3);
    const monitor = new ExitMonitor(memory.options);
    const first: ExitEvent[] = [];
    monitor.on('exit', (event) => {
      first.push(event);
      void monitor.close();
    });
    await monitor.start();
    await until('the first exit', () => first.length > 0);
    await setTimeout(1500); // longer than a tick
    expect(first).toHaveLength(1);
    const next = new ExitMonitor(memory.options);
    const { restored } = await next.start();
    const others = await exitsOf(restored);
    expect(new Set([...first, ...others].map(({ id }) => id)).size).toBe(3);
    expect(others).toHaveLength(2);
    await next.close({ forget: true });
  });

  itAsRecorder('writes nothing into descriptors that are others’ by now', async () => {
    using memory = new MemoryFolder();
    const monitor = new ExitMonitor({ ...memory.options, autoCommit: false });
    await monitor.start();
    const target = await mortal();
    const watch = monitor.watch(target.pid);
    await release(target);
    const event = await exitOf(watch);
    await monitor.close();
    const files = Array.from({ length: 20 }, (_, i) => join(memory.path, `file${i}`));
    const opened = files.map((file) => openSync(file, 'w'));
    monitor.commit(event);
    watch.close();
    for (const file of files) expect(readFileSync(file, 'utf8')).toBe('');
    for (const fd of opened) closeSync(fd);
    const next = new ExitMonitor(memory.options);
    const { restored } = await next.start();
    expect(await exitsOf(restored)).toMatchObject([{ id: event.id, isRepeated: true }]);
    await next.close({ forget: true });
  });

  itAsRecorder('forgets everything even if its pins are gone, and says no twice', async () => {
    using memory = new MemoryFolder();
    await endedMeanwhile(memory, 1);
    const monitor = new ExitMonitor(memory.options);
    await monitor.start();
    rmSync(pinsOf(memory.pinDir, memory.stateDir), { recursive: true });
    await monitor.close({ forget: true });
    await expect(monitor.close({ forget: true })).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_CLOSED',
    });
    const next = new ExitMonitor(memory.options);
    expect(await next.start()).toMatchObject({ memory: 'recorder', restored: [] });
    await next.close({ forget: true });
  });

  itAsRecorder('forgets everything even if it was never started', async () => {
    using memory = new MemoryFolder();
    await endedMeanwhile(memory, 1);
    await new ExitMonitor(memory.options).close({ forget: true });
    expect(memory.pinned).toEqual([]);
  });
});

itAsRecorder('a loop’s exit is committed when the loop asks for the next one', async () => {
  using memory = new MemoryFolder();
  await endedMeanwhile(memory, 4);
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    (async () => {
      for await (const { event, id } of new ExitMonitor(${JSON.stringify(memory.options)})) {
        if (event !== 'exit') continue;
        console.log(id);
        await new Promise((resolve) => setTimeout(resolve, 300));
        process.kill(process.pid, 'SIGKILL');
      }
    })();
  `;
  const loop = new LineProcess(process.execPath, ['-e', script]);
  const [first = ''] = await loop.rest();
  await loop.ended;
  const next = new ExitMonitor(memory.options);
  const { restored } = await next.start();
  const ids = (await exitsOf(restored)).map(({ id }) => id);
  expect(ids).toHaveLength(4);
  expect(ids).toContain(first);
  await next.close({ forget: true });
});

itAsRecorder('a hole in the lease makes nothing traced, and is a gap', async () => {
  using memory = new MemoryFolder();
  const options = { ...memory.options, scope: 'all' as const };
  const first = new ExitMonitor(options);
  await first.start();
  const target = new LineProcess('sh', ['-c', 'trap : TERM; echo; while :; do sleep 0.05; done']);
  await target.line();
  first.watch(target.pid);
  await first.close();
  withRecorder(memory, (recorder) => {
    recorder.setLease(0);
  });
  await new LineProcess('sh', ['-c', `kill -TERM ${target.pid}; true`]).ended;
  const second = new ExitMonitor(options);
  const gaps: Gap[] = [];
  second.on('gap', (gap) => gaps.push(gap));
  await second.start();
  await until('the gap', () => gaps.length > 0);
  expect(gaps).toMatchObject([{ reason: 'recorder-full' }]);
  expect(gaps[0]?.lost).toBeGreaterThanOrEqual(1);
  await second.close();
  target.child.kill('SIGKILL');
  await target.ended;
  const third = new ExitMonitor(options);
  const { restored } = await third.start();
  expect(await exitsOf(restored)).toMatchObject([{ signal: 'SIGKILL', traced: false }]);
  await third.close({ forget: true });
});

itAsRecorder('a gap is reported again if its reader died before it was delivered', async () => {
  using memory = new MemoryFolder();
  const recorder = { ...memory.options.recorder, ringBytes: 4096 };
  const options = { ...memory.options, scope: 'all' as const, recorder };
  const first = new ExitMonitor(options);
  await first.start();
  await first.close();
  await new LineProcess(program('storm'), ['100']).ended;
  const lost = () => withRecorder(memory, (each) => each.losses().exits.count);
  const before = lost();
  expect(before).toBeGreaterThan(50);
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor(${JSON.stringify(options)});
    monitor.on('ready', () => process.kill(process.pid, 'SIGKILL'));
    monitor.start();
  `;
  await new LineProcess(process.execPath, ['-e', script]).ended;
  expect(lost()).toBeGreaterThanOrEqual(before);
  const next = new ExitMonitor(options);
  const gaps: Gap[] = [];
  next.on('gap', (gap) => gaps.push(gap));
  await next.start();
  await until('the gap', () => gaps.length > 0);
  expect(gaps.reduce((sum, gap) => sum + (gap.lost ?? 0), 0)).toBeGreaterThanOrEqual(before);
  await next.close({ forget: true });
});

itAsRecorder('the directory counts, not the path to it', async () => {
  using memory = new MemoryFolder();
  const link = join(memory.path, 'link');
  symlinkSync(memory.stateDir, link);
  await endedMeanwhile(memory, 1);
  const monitor = new ExitMonitor({ ...memory.options, stateDir: link });
  const { restored } = await monitor.start();
  expect(await exitsOf(restored)).toMatchObject([{ how: 'exited', exitCode: 0 }]);
  await monitor.close({ forget: true });
  expect(memory.pinned).toEqual([]);
});

itAsRecorder('a recorder whose programs are detached is replaced', async () => {
  using memory = new MemoryFolder();
  const first = new ExitMonitor(memory.options);
  await first.start();
  const target = await mortal();
  first.watch(target.pid);
  await first.close();
  const folder = pinsOf(memory.pinDir, memory.stateDir);
  for (const name of ['exit', 'signal', 'taken', 'oom']) {
    rmSync(join(folder, `${name}_link`));
    rmSync(join(folder, `${name}_program`));
  }
  const second = new ExitMonitor(memory.options);
  expect(await second.start()).toMatchObject({ memory: 'recorder', memoryDowngrade: null });
  await second.close();
  await release(target);
  const third = new ExitMonitor(memory.options);
  const { restored } = await third.start();
  expect(await exitsOf(restored)).toMatchObject([{ exitCode: 0, source: 'recorder' }]);
  await third.close({ forget: true });
});

itAsRecorder('more slots than the recorder has are given', async () => {
  using memory = new MemoryFolder();
  const withSlots = (slots: number) => ({
    ...memory.options,
    recorder: { ...memory.options.recorder, slots },
  });
  const first = new ExitMonitor(withSlots(1));
  await first.start();
  const targets = [await mortal(), await mortal()] as const;
  first.watch(targets[0].pid);
  expect(() => first.watch(targets[1].pid)).toThrow('room for 1 watched');
  await first.close();
  const second = new ExitMonitor(withSlots(2));
  await second.start();
  second.watch(targets[1].pid);
  await second.close();
  for (const target of targets) await release(target);
  const third = new ExitMonitor(withSlots(2));
  const { restored } = await third.start();
  const end = { exitCode: 0, traced: true };
  expect(await exitsOf(restored)).toMatchObject([end, end]);
  await third.close({ forget: true });
});

itAsRecorder('a watch that was made before start() is not restored', async () => {
  using memory = new MemoryFolder();
  const target = await mortal();
  const monitor = new ExitMonitor(memory.options);
  const watch = monitor.watch(target.pid);
  expect((await monitor.start()).restored).toEqual([]);
  await release(target);
  expect(await exitOf(watch)).toMatchObject({ exitCode: 0 });
  await monitor.close({ forget: true });
});

itAsRecorder('a damaged exit in the log does not leave a watch without an end', async () => {
  using memory = new MemoryFolder();
  await endedMeanwhile(memory, 1);
  const log = join(memory.stateDir, 'watches');
  const more = [
    '{"event":"exit","watch":1,"exit":{}}',
    '{"event":"exit","watch":1,"exit":{"id":"x"}}',
  ];
  writeFileSync(log, `${readFileSync(log, 'utf8')}${more.join('\n')}\n`);
  const monitor = new ExitMonitor(memory.options);
  const { restored } = await monitor.start();
  expect(await exitsOf(restored)).toMatchObject([{ exitCode: 0 }]);
  await monitor.close({ forget: true });
});
