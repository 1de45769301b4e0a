// Lane: patient

import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ExitMonitor, type ExitEvent } from '../../src';
import { pinsOf } from '../../src/memory/pin-folder';
import type { NativeRecorder } from '../../src/native/addon';
import { loadAddon } from '../../src/native/load-addon';

import { countOf, openObjects, remaining } from '../support/bpf-objects';
import { MemoryFolder } from '../support/bpffs';
import { call, callWith } from '../support/command';
import { DyingProcesses } from '../support/deaths';
import { exitOf, exitsOf } from '../support/ends';
import { KERNEL } from '../support/kernel';
import { mortal } from '../support/mortal';
import { itAsRecorder } from '../support/privilege';
import { LineProcess, program, REPOSITORY, run } from '../support/programs';
import { isOfStorms } from '../support/storms';
import { until } from '../support/wait';

const NOBODY = 65534;
const AS_NOBODY = ['--reuid=65534', '--regid=65534', '--clear-groups', '--bounding-set=-all'];

/** Pins a recorder as another version of exitwatch would. */
function pinAs(version: string, memory: MemoryFolder, ringBytes: number): NativeRecorder {
  const recorder = new (loadAddon().Recorder)();
  const { stateDir } = memory;
  const size = { slots: 100, ringBytes, signalBytes: 65536 };
  const { refusal } = recorder.create({ ...size, owner: 0, version, stateDir });
  expect(refusal).toBe(0);
  recorder.setLease(60_000);
  recorder.trial();
  recorder.trust();
  const folder = pinsOf(memory.pinDir, stateDir);
  mkdirSync(folder, { recursive: true });
  recorder.pin(folder);
  return recorder;
}

itAsRecorder('close() leaves the recorder, and forget leaves nothing in the kernel', async () => {
  using memory = new MemoryFolder();
  const others = new Set(openObjects(process.pid)); // of tests in this process before
  const added = () => openObjects(process.pid).filter((object) => !others.has(object));
  const monitor = new ExitMonitor(memory.options);
  await monitor.start();
  const all = added();
  await monitor.close();
  let left: string[] = [];
  const look = async () => (left = await remaining(all));
  const told = () => left.join();
  await until(
    'the live programs to be gone',
    async () => countOf('program', await look()) === 6,
    told,
  );
  expect(countOf('link', left)).toBe(6);
  const next = new ExitMonitor(memory.options);
  await next.start();
  all.push(...added());
  await next.close({ forget: true });
  await until('everything to be gone', async () => (await look()).length === 0, told);
  expect(memory.pinned).toEqual([]);
});

itAsRecorder(
  'exitwatch memory lists recorders, also of a killed owner, and removes them',
  async () => {
    using memory = new MemoryFolder();
    const at = ['--pin-dir', memory.pinDir];
    expect(await call('memory', ...at)).toMatchObject({
      ...{ code: 0, lines: [`no recorder is pinned in ${memory.pinDir}`] },
    });
    const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor(${JSON.stringify(memory.options)});
    monitor.start().then(() => {
      monitor.watch(process.ppid);
      console.log('ready');
    });
  `;
    const owner = new LineProcess(process.execPath, ['-e', script]);
    expect(await owner.line()).toBe('ready');
    const removal = ['memory', '--remove', '--state-dir', memory.stateDir, ...at];
    expect(await call(...removal)).toMatchObject({ code: 125, lines: [] });
    const all = openObjects(owner.pid);
    owner.child.kill('SIGKILL');
    await owner.ended;
    expect(countOf('program', await remaining(all))).toBeGreaterThanOrEqual(6);
    const { lines } = await call('memory', '--json', ...at);
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      {
        ...{ event: 'recorder', stateDir: memory.stateDir, owner: 0 },
        usage: { watched: 1, slots: 16_384, lostExits: 0, programs: Array(6).fill({ misses: 0 }) },
      },
    ]);
    expect((await call('memory', ...at)).lines).toEqual([
      expect.stringContaining(memory.stateDir),
      expect.stringContaining(memory.pinDir),
      '  watched  1 of 16384 processes',
      '  exits    of watched processes only',
      expect.stringMatching(/^ {2}signals {2}\d+ % full$/),
      expect.stringMatching(/^ {2}lost {5}0 exits, 0 signals, 0 runs of programs$/),
      expect.stringMatching(/^ {2}cost {5}/),
      expect.stringMatching(/^ {2}lease {4}/),
    ]);
    expect(await call(...removal)).toMatchObject({
      code: 0,
      lines: [expect.stringMatching(/^removed /)],
    });
    await until('nothing to be left', async () => (await remaining(all)).length === 0);
  },
);

itAsRecorder('programs without a reader return at once when the lease is over', async () => {
  using memory = new MemoryFolder();
  const monitor = new ExitMonitor(memory.options);
  await monitor.start();
  const target = await mortal('7');
  monitor.watch(target.pid);
  await monitor.close();
  const recorder = new (loadAddon().Recorder)();
  expect(recorder.open(pinsOf(memory.pinDir, memory.stateDir))).toBe(0);
  recorder.setLease(0);
  target.child.stdin.end();
  await target.ended;
  recorder.close();
  const next = new ExitMonitor(memory.options);
  const { restored } = await next.start();
  const [event] = await exitsOf(restored);
  expect(event).toMatchObject({ how: 'unknown', unknownReason: 'gone-while-unobserved' });
  await next.close({ forget: true });
});

itAsRecorder('pins of a newer version are left alone, with the reason', async () => {
  using memory = new MemoryFolder();
  const newer = pinAs('99.0.0', memory, 0);
  const pins = readdirSync(pinsOf(memory.pinDir, memory.stateDir)).sort();
  const monitor = new ExitMonitor(memory.options);
  const ready = await monitor.start();
  expect(ready).toMatchObject({
    ...{ memory: 'none', memoryDowngrade: { code: 'newer-recorder' } },
  });
  expect(ready.memoryDowngrade?.detail).toContain('99.0.0');
  await monitor.close();
  expect(readdirSync(pinsOf(memory.pinDir, memory.stateDir)).sort()).toEqual(pins);
  newer.close();
});

itAsRecorder(
  'an older version is replaced while 20000 processes end: none is missing, or comes twice',
  async () => {
    using memory = new MemoryFolder();
    const older = pinAs('0.0.1', memory, 4 * 1024 * 1024);
    older.close();
    const storm = new LineProcess(program('storm'), ['20000', '5000']);
    await until('exits that the older version records', () => {
      const recorder = new (loadAddon().Recorder)();
      recorder.open(pinsOf(memory.pinDir, memory.stateDir));
      const { ring } = recorder.used();
      recorder.close();
      return ring > 1024 * 1024;
    });
    const monitor = new ExitMonitor({ ...memory.options, scope: 'all' });
    const exits: ExitEvent[] = [];
    const gaps: unknown[] = [];
    monitor.on('exit', (event) => exits.push(event)).on('gap', (gap) => gaps.push(gap));
    expect(await monitor.start()).toMatchObject({ memory: 'recorder', memoryDowngrade: null });
    const report = await storm.rest();
    const ofStorm = () => exits.filter(isOfStorms([storm.pid], report));
    await until(
      'all exits',
      () => ofStorm().length >= report.length,
      () => `${ofStorm().length}`,
    );
    expect(
      ofStorm()
        .map(({ pid }) => pid)
        .sort(),
    ).toEqual(report.map((line) => Number(line.split(' ')[0])).sort());
    const known = new Set<string>();
    const isAgain = ({ id }: ExitEvent) => known.has(id) || !known.add(id);
    const repeated = exits.filter(isAgain).map(({ id, name, source }) => ({ id, name, source }));
    expect(repeated).toEqual([]);
    expect(gaps).toEqual([]);
    expect(new Set(ofStorm().map(({ source }) => source))).toEqual(
      new Set(['recorder', 'connector']),
    );
    await until('the older recorder to be removed', () => memory.pinned.length === 1);
    const [recorder] = (await call('memory', '--json', '--pin-dir', memory.pinDir)).lines;
    const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(JSON.parse(recorder ?? 'null')).toMatchObject({ version });
    await monitor.close({ forget: true });
  },
);

describe('a user without capabilities', () => {
  const script = (memory: MemoryFolder) => `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor(${JSON.stringify(memory.options)});
    monitor.start().then(async ({ memory, memoryDowngrade, restored }) => {
      for (const pid of process.argv.slice(1)) monitor.watch(Number(pid));
      const exits = await Promise.all(restored.map(({ exited }) => exited));
      console.log(JSON.stringify({ memory, memoryDowngrade, exits }));
      process.exit();
    });
  `;
  const asNobody = async (memory: MemoryFolder, ...pids: number[]) => {
    const command = [process.execPath, '-e', script(memory), ...pids.map(String)];
    const { stdout } = await run('setpriv', [...AS_NOBODY, ...command]);
    return JSON.parse(stdout) as {
      memory: string;
      memoryDowngrade: { code: string } | null;
      exits: ExitEvent[];
    };
  };

  (KERNEL.sharesPins ? itAsRecorder : it.skip)(
    'uses a recorder that root has made for it: statuses, times and senders (needs Linux 5.19)',
    async () => {
      using memory = new MemoryFolder(NOBODY);
      chmodSync(memory.path, 0o777);
      const forNobody = ['--create', '--owner', 'nobody', '--state-dir', memory.stateDir];
      const created = await call('memory', ...forNobody, '--pin-dir', memory.pinDir);
      expect(created).toMatchObject({ code: 0, stderr: '' });
      const dying = await DyingProcesses.spawn(['exit-7', 'sigkill', 'fault'], 'now');
      const target = await mortal();
      expect(await asNobody(memory, ...dying.pids, target.pid)).toMatchObject({
        memory: 'recorder',
        memoryDowngrade: null,
        exits: [],
      });
      await dying.die();
      const killer = new LineProcess('sh', ['-c', `kill -TERM ${target.pid}; true`]);
      await killer.ended;
      await target.ended;
      const { exits } = await asNobody(memory);
      expect(exits).toMatchObject([
        { exitCode: 7, traced: true, sender: null },
        { signal: 'SIGKILL', traced: true },
        { signal: 'SIGSEGV', traced: true },
        { signal: 'SIGTERM', traced: true, sender: { pid: killer.pid, name: 'sh' } },
      ]);
      for (const event of exits) expect(event.source).toBe('recorder');

      const remove = [
        'memory',
        '--remove',
        '--state-dir',
        memory.stateDir,
        '--pin-dir',
        memory.pinDir,
      ];
      expect(await callWith(['setpriv', ...AS_NOBODY], ...remove)).toMatchObject({
        ...{ code: 125, lines: [], stderr: expect.stringContaining('may not remove') as string },
      });
      expect(await call(...remove)).toMatchObject({ code: 0, stderr: '' });
      expect(memory.pinned).toEqual([]);
    },
  );

  itAsRecorder('without one, remembers nothing, and says why', async () => {
    using memory = new MemoryFolder();
    chmodSync(memory.path, 0o777);
    chmodSync(memory.bpffs, 0o755);
    chownSync(memory.stateDir, NOBODY, NOBODY);
    const target = await mortal('7');
    const first = await asNobody(memory, target.pid);
    expect(first).toMatchObject({ memory: 'none', memoryDowngrade: { code: 'no-capabilities' } });
    target.child.stdin.end();
    await target.ended;
    const { exits } = await asNobody(memory);
    expect(exits).toMatchObject([{ how: 'unknown', unknownReason: 'gone-while-unobserved' }]);
  });
});

describe('elsewhere', () => {
  const ready = (memory: MemoryFolder) => `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor(${JSON.stringify(memory.options)});
    monitor.start().then(({ memory, memoryDowngrade }) => {
      console.log(JSON.stringify({ memory, memoryDowngrade }));
      process.exit();
    });
  `;

  itAsRecorder('a BPF file system in a private mount namespace is not used', async () => {
    using memory = new MemoryFolder();
    execFileSync('umount', [memory.bpffs]);
    const inside = `mount -t bpf bpf ${memory.bpffs} && exec "$@"`;
    const args = ['--mount', 'sh', '-c', inside, 'sh', process.execPath, '-e', ready(memory)];
    const { stdout } = await run('unshare', args);
    execFileSync('mount', ['-t', 'bpf', 'bpf', memory.bpffs]);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ memory: 'none' },
      memoryDowngrade: {
        code: 'no-bpffs',
        detail: expect.stringContaining('mount namespace') as string,
      },
    });
  });

  itAsRecorder('in a container there is no recorder, and the reason is given', async () => {
    using memory = new MemoryFolder();
    const args = ['--pid', '--fork', '--mount-proc', process.execPath, '-e', ready(memory)];
    const { stdout } = await run('unshare', args);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ memory: 'none', memoryDowngrade: { code: 'foreign-pid-namespace' } },
    });
  });
});

itAsRecorder('garbage under the names of pins is replaced', async () => {
  using memory = new MemoryFolder();
  const first = new ExitMonitor(memory.options);
  await first.start();
  await first.close();
  const folder = pinsOf(memory.pinDir, memory.stateDir);
  // Another map under the name of the table.
  execFileSync('sh', [
    '-c',
    `mv ${folder}/watched ${folder}/kept2 && mv ${folder}/exits ${folder}/watched`,
  ]);
  const target = await mortal('7');
  const monitor = new ExitMonitor(memory.options);
  expect(await monitor.start()).toMatchObject({ memory: 'recorder' });
  const watch = monitor.watch(target.pid);
  target.child.stdin.end();
  expect(await exitOf(watch)).toMatchObject({ exitCode: 0 });
  await monitor.close({ forget: true });
  expect(memory.pinned).toEqual([]);
});
