// Lane: patient

import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { identify } from '../../src';
import { isAlive, readIntents, readPidfile } from '../../src/process';
import { qmpDriver, VmControl, vfkitDriver, VmMonitor, type VmControlOptions } from '../../src/vm';

import { stopOf } from '../support/ends';
import { mortal, release } from '../support/mortal';
import { LineProcess, REPOSITORY } from '../support/programs';
import { itWithQemu, TestVm } from '../support/qemu';
import { arrives, until } from '../support/wait';

let folder: string;
let socket: string;
let pidfile: string;
const started: LineProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-control-'));
  socket = join(folder, 'rest.sock');
  pidfile = join(folder, 'vfkit.pid');
});

afterEach(async () => {
  for (const each of started.splice(0)) {
    each.child.kill('SIGKILL');
    await each.ended;
  }
  rmSync(folder, { recursive: true });
});

type Ways = Partial<Record<'SAYS' | 'STOP' | 'HARD_STOP' | 'TERM', string>>;

/** Starts a process that answers as vfkit does; see test/programs/vfkit.cjs. */
async function startVfkit(ways: Ways = {}): Promise<LineProcess> {
  const program = join(REPOSITORY, 'test', 'programs', 'vfkit.cjs');
  rmSync(socket, { force: true });
  const vfkit = new LineProcess(process.execPath, [program, socket, pidfile], {
    env: { ...process.env, ...ways },
  });
  started.push(vfkit);
  expect(await vfkit.line()).toBe('ready');
  return vfkit;
}

const executable = basename(process.execPath);

const control = (options: Partial<VmControlOptions> = {}) =>
  new VmControl({
    process: { pidfile, executable },
    driver: vfkitDriver({ socket }),
    ...options,
  });

const WORDS = [
  ...['Running', 'Stopped', 'Starting', 'Stopping', 'Paused', 'Pausing', 'Resuming', 'Error'],
  ...['Saving', 'Restoring'],
].map((word) => `VirtualMachineState${word}`);

test.each([...WORDS, 'SomethingOfNextYear', ''])(
  'a machine that reports %p is running as long as its process lives',
  async (word) => {
    const vfkit = await startVfkit({ SAYS: word });
    expect(await control().state()).toEqual({ state: 'running', said: word, warnings: [] });
    vfkit.child.kill('SIGKILL');
    await vfkit.ended;
    expect(await control().state()).toEqual({ state: 'stopped', said: null, warnings: [] });
  },
);

test.each([
  ['garbage', /did not report a state/],
  ['flood', /more than 65536 bytes/],
  ['eof', /before the answer was complete/],
  ['hang', /did not answer/],
])(
  'a machine that answers with %s counts as running, and the error is reported',
  async (how, reason) => {
    await startVfkit({ SAYS: how });
    const { state, said, warnings } = await control().state();
    expect({ state, said }).toEqual({ state: 'running', said: null });
    expect(warnings).toEqual([expect.stringMatching(reason)]);
  },
);

test('a state request after the process has ended removes its pidfile', async () => {
  const vfkit = await startVfkit();
  vfkit.child.kill('SIGKILL');
  await vfkit.ended;
  expect(await control().state()).toMatchObject({ state: 'stopped' });
  expect(existsSync(pidfile)).toBe(false);
});

test('another process with the pid is not stopped, and nothing is reported as gone', async () => {
  const stranger = await mortal('--stranger');
  writeFileSync(pidfile, String(stranger.pid));
  const { state, warnings } = await control().state();
  expect(state).toBe('unknown');
  expect(warnings[0]).toMatch(/runs ".*mortal", not "node"/);
  for (const act of ['stop', 'kill'] as const) {
    await expect(control()[act]()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_NOT_VERIFIED' });
    expect(existsSync(pidfile)).toBe(true);
  }
  expect(await release(stranger)).toBe(0);
});

test('without a pidfile a machine is stopped, and stays stopped however often stop() is called', async () => {
  expect(await control().state()).toEqual({ state: 'stopped', said: null, warnings: [] });
  expect(await control().stop()).toMatchObject({ outcome: 'already-gone', companions: [] });
  expect(await control().kill()).toMatchObject({ outcome: 'already-gone' });
});

test('a number that no process has, of a machine that answers, is not believed, and its pidfile stays', async () => {
  const vfkit = await startVfkit();
  const gone = await mortal();
  await release(gone);
  writeFileSync(pidfile, String(gone.pid)); // as in a container
  const { state, warnings } = await control().state();
  expect(state).toBe('unknown');
  expect(warnings).toEqual([expect.stringMatching(/names no process here/)]);
  for (const act of ['stop', 'kill', 'quit'] as const) {
    await expect(control()[act]()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_NOT_VERIFIED' });
  }
  expect(existsSync(pidfile)).toBe(true);
  expect(isAlive(vfkit.pid)).toBe('alive');
});

test('a pidfile without a pid is an error, and nothing is signalled', async () => {
  writeFileSync(pidfile, '-1');
  await expect(control().state()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_INVALID_PIDFILE' });
  await expect(control().stop()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_INVALID_PIDFILE' });
});

test('stop() presses the power button, and resolves when the process is gone', async () => {
  const vfkit = await startVfkit();
  const intentLog = join(folder, 'intents');
  const result = await control({ intentLog }).stop({ reason: 'a test' });
  expect(result).toMatchObject({ outcome: 'graceful', via: 'control', exit: { exitCode: 0 } });
  expect(result.warnings).toEqual([]);
  expect(await vfkit.line()).toBe('Stop');
  expect(existsSync(pidfile)).toBe(false);
  expect(await readIntents(intentLog)).toMatchObject([{ what: 'powerdown', why: 'a test' }]);
});

test('a machine that reports stopped three seconds early counts as running until its process ends', async () => {
  const vfkit = await startVfkit({ STOP: 'early' });
  const stopping = control().stop();
  expect(await vfkit.line()).toBe('Stop');
  const saysStopped = async () => {
    const { state, said } = await control().state();
    expect(state).toBe('running');
    return said === 'VirtualMachineStateStopped';
  };
  await until('vfkit to report that it is stopped', saysStopped, vfkit.told);
  expect(isAlive(vfkit.pid)).toBe('alive');
  expect(await stopping).toMatchObject({ outcome: 'graceful', via: 'control' });
  expect(await control().state()).toMatchObject({ state: 'stopped' });
});

test.each(['eof', 'refuse'])(
  'if it answers a Stop by %s, SIGTERM follows at once, and only once',
  async (how) => {
    const vfkit = await startVfkit({ STOP: how });
    const result = await control().stop();
    expect(result).toMatchObject({ outcome: 'graceful', via: 'signal', exit: { exitCode: 0 } });
    expect(result.warnings).toMatchObject([{ code: 'control-failed' }]);
    expect(await vfkit.rest()).toEqual(['Stop']);
  },
);

test('a machine that ignores its button and SIGTERM is killed in the end', async () => {
  await startVfkit({ STOP: 'ignore', TERM: 'ignore' });
  expect(
    await control().stop({ powerdownTimeoutMs: 100, forceKillAfterDelayMs: 100 }),
  ).toMatchObject({ outcome: 'forced', via: 'kill', exit: { signal: 'SIGKILL' } });
});

test('a hard stop that ends vfkit in the middle of its answer is not a failure', async () => {
  const vfkit = await startVfkit({ HARD_STOP: 'die' });
  const result = await control().kill();
  // Its hang-up may be noticed before its end.
  expect(['control', 'kill', null]).toContain(result.via);
  expect(['graceful', 'forced', 'already-gone']).toContain(result.outcome);
  expect(await vfkit.line()).toBe('HardStop');
  expect(isAlive(vfkit.pid)).toBe('dead');
});

test.each(['eof', 'refuse'])('if it answers a HardStop by %s, SIGKILL follows', async (how) => {
  await startVfkit({ HARD_STOP: how });
  const result = await control().kill();
  expect(result).toMatchObject({ outcome: 'forced', via: 'kill', exit: { signal: 'SIGKILL' } });
});

test('companions are stopped even if the machine is gone, and either of them counts as running', async () => {
  const helper = await mortal();
  const helperPidfile = join(folder, 'helper.pid');
  writeFileSync(helperPidfile, String(helper.pid));
  const companions = [{ pidfile: helperPidfile, executable: 'mortal' }];
  const vfkit = await startVfkit();
  expect(await control({ companions }).state()).toMatchObject({ state: 'running' });
  vfkit.child.kill('SIGKILL');
  await vfkit.ended;
  expect(await control({ companions }).state()).toMatchObject({ state: 'running', said: null });
  expect(await control({ companions }).stop()).toMatchObject({
    outcome: 'already-gone',
    companions: [{ outcome: 'graceful', exit: { signal: 'SIGTERM' } }],
  });
  expect(await control({ companions }).state()).toMatchObject({ state: 'stopped' });
  expect([pidfile, helperPidfile].some((path) => existsSync(path))).toBe(false);
});

test.each(['stop', 'powerDown'] as const)(
  'kill() does not wait for a %s() that is under way',
  async (slow) => {
    const vfkit = await startVfkit({ STOP: 'ignore', HARD_STOP: 'refuse' });
    const intentLog = join(folder, 'intents');
    const asked = control({ intentLog })[slow]({ reason: 'maintenance' });
    expect(await vfkit.line()).toBe('Stop');
    const begin = performance.now();
    expect(await control({ intentLog }).kill({ reason: 'now' })).toMatchObject({
      ...{ outcome: 'forced', via: 'kill', exit: { signal: 'SIGKILL' } },
    });
    expect(performance.now() - begin).toBeLessThan(10_000);
    expect(await asked).toMatchObject({ exit: { signal: 'SIGKILL' } });
    expect(await readIntents(intentLog)).toMatchObject([
      { what: 'powerdown', why: 'maintenance' },
      { what: 'quit', why: 'now' },
      { what: 'SIGKILL', why: 'now' },
    ]);
  },
);

test('stop() after a powerDown() that is under way goes on to signals, and another powerDown() joins', async () => {
  const vfkit = await startVfkit({ STOP: 'ignore' });
  const asked = control().powerDown();
  expect(await vfkit.line()).toBe('Stop');
  const stopping = control().stop({ powerdownTimeoutMs: 300 });
  const joined = control().powerDown();
  expect(await stopping).toMatchObject({ outcome: 'graceful', via: 'signal' });
  expect(await asked).toMatchObject({ exit: { exitCode: 0 } });
  expect(await joined).toMatchObject({ exit: { exitCode: 0 } });
  expect(await vfkit.rest()).toEqual([]);
});

test('a restart begins once the end is observed', async () => {
  const first = await startVfkit({ STOP: 'early' });
  const second = await control().restart(() => {
    expect(isAlive(first.pid)).toBe('dead');
    return startVfkit();
  });
  expect((await readPidfile(pidfile)).pid).toBe(second.pid);
});

itWithQemu('the same calls stop QEMU by its power button, or make it quit', async () => {
  const vm = new TestVm({});
  await vm.booted();
  const identity = identify(vm.pid);
  if (identity === null) throw new Error('it ended');
  const driver = qmpDriver({ socket: vm.sockets[0] ?? '' });
  const machine = new VmControl({ process: { identity }, driver });
  expect(await machine.state()).toEqual({ state: 'running', said: 'running', warnings: [] });
  await vm.press('a');
  expect(await machine.stop()).toMatchObject({ outcome: 'graceful', via: 'control' });
  vm.remove();
  const other = new TestVm({});
  await other.booted();
  const process = { pidfile: other.pidfile, executable: 'qemu-system-x86_64' };
  const quit = qmpDriver({ socket: other.sockets[0] ?? '' });
  expect(await new VmControl({ process, driver: quit }).kill()).toMatchObject({
    outcome: 'graceful',
    via: 'control',
    exit: { exitCode: 0 },
  });
  other.remove();
});

test('a watched machine is stopped by its own driver', async () => {
  const vfkit = await startVfkit();
  await using monitor = new VmMonitor();
  await monitor.start();
  const watch = monitor.watch({ name: 'vm', pid: vfkit.pid, driver: vfkitDriver({ socket }) });
  expect(await watch.stop()).toMatchObject({ userShutdown: false, initiator: 'manager' });
  expect(await vfkit.line()).toBe('Stop');
});

test('the verdict also uses what the machine reported while it was watched', async () => {
  const vfkit = await startVfkit({ SAYS: 'VirtualMachineStatePaused' });
  await using monitor = new VmMonitor();
  await monitor.start();
  const running = once(monitor, 'running');
  const watch = monitor.watch({ name: 'vm', pid: vfkit.pid, driver: vfkitDriver({ socket }) });
  await arrives('vfkit to answer', running);
  vfkit.child.kill('SIGKILL');
  const stop = await stopOf(watch);
  expect(stop.candidates).toContain('killed');
  expect(stop.evidence).toContainEqual(
    expect.objectContaining({ text: 'its first known status was VirtualMachineStatePaused' }),
  );
});

test('the answer of another vfkit at the socket is not believed', async () => {
  await startVfkit();
  await using monitor = new VmMonitor();
  await monitor.start();
  const stranger = await mortal();
  const watch = monitor.watch({
    ...{ name: 'vm', pid: stranger.pid, driver: vfkitDriver({ socket }) },
  });
  let isRunning = false;
  monitor.on('running', () => (isRunning = true));
  // The watch has asked by now.
  expect(await vfkitDriver({ socket }).state()).toBe('VirtualMachineStateRunning');
  stranger.child.kill('SIGKILL');
  const { evidence } = await stopOf(watch);
  expect(evidence.filter(({ source }) => source === 'status')).toEqual([]);
  expect(isRunning).toBe(false);
});
