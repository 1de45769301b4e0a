// Lane: patient

import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { VmMonitor, type VmDriver, type VmWatch } from '../../src/vm';

import { stopOf } from '../support/ends';
import { kill } from '../support/kill';
import { LineProcess, REPOSITORY } from '../support/programs';
import { scriptedDriver } from '../support/scripted-driver';
import { arrives } from '../support/wait';

/**
 * A driver is all it takes to add an unknown hypervisor with words of its own: see
 * support/scripted-driver.ts.
 */

let folder: string;
let socket: string;
let monitor: VmMonitor;
const started: LineProcess[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-driver-'));
  socket = join(folder, 'socket');
  monitor = new VmMonitor();
  await monitor.start();
});

afterEach(async () => {
  await monitor.close();
  for (const each of started.splice(0)) {
    each.child.kill('SIGKILL');
    await each.ended;
  }
  rmSync(folder, { recursive: true });
});

async function startHypervisor(env: NodeJS.ProcessEnv = {}): Promise<LineProcess> {
  const program = join(REPOSITORY, 'test', 'programs', 'hypervisor.cjs');
  const hypervisor = new LineProcess(process.execPath, [program, socket], {
    env: { ...process.env, ...env },
  });
  started.push(hypervisor);
  expect(await hypervisor.line()).toBe('ready');
  return hypervisor;
}

/** Starts a machine and a watch that hears it. */
async function watchOne(driver: VmDriver = scriptedDriver(socket)): Promise<VmWatch> {
  const { pid } = await startHypervisor();
  const running = once(monitor, 'running');
  const watch = monitor.watch({ name: 'vm', pid, driver });
  await arrives('the machine to run', running);
  return watch;
}

/** Sends an order from another client. */
async function order(line: string): Promise<void> {
  const client = connect(socket);
  await once(client, 'connect');
  client.resume().end(`${line}\n`); // unread, it would never close
}

test('a guest that powers itself off is reported as sure, in its hypervisor’s words', async () => {
  const watch = await watchOne();
  await order('guest-off');
  const stop = await stopOf(watch);
  expect(stop).toMatchObject({
    ...{ cause: 'guest-shutdown', certainty: 'sure', initiator: 'guest', userShutdown: true },
    candidates: ['guest-shutdown'],
  });
  const words = stop.evidence.filter(({ source }) => source === 'event').map(({ text }) => text);
  expect(words).toEqual(['started', 'guest-off']);
});

test('a press by exitwatch and a press by another client are told apart', async () => {
  const ours = await watchOne();
  expect(await ours.stop()).toMatchObject({
    ...{ cause: 'admin-powerdown', initiator: 'manager', userShutdown: false },
  });
  const others = await watchOne();
  await order('button');
  expect(await stopOf(others)).toMatchObject({ cause: 'other-powerdown', initiator: 'host' });
});

test('the client that made it end is known for sure', async () => {
  const ours = await watchOne();
  expect(await ours.stop({ powerdownTimeoutMs: 0 })).toMatchObject({
    ...{ cause: 'manager-quit', certainty: 'sure', initiator: 'manager' },
  });
  const others = await watchOne();
  await order('off');
  expect(await stopOf(others)).toMatchObject({ cause: 'other-quit', certainty: 'sure' });
});

test('a guest that ignores its button is ended by the next step', async () => {
  const watch = await watchOne();
  await order('guest-deaf');
  expect(await watch.stop({ powerdownTimeoutMs: 200 })).toMatchObject({ cause: 'manager-quit' });
});

test('a guest that panics is reported as sure', async () => {
  const watch = await watchOne();
  await order('guest-panic');
  expect(await stopOf(watch)).toMatchObject({ cause: 'guest-panic', certainty: 'sure' });
});

test('a signal that the hypervisor does not catch has killed it, not a failed start', async () => {
  const watch = await watchOne();
  kill(watch.identity?.pid, 'SIGTERM');
  expect(await stopOf(watch)).toMatchObject({ cause: 'killed' });
});

test('if the hypervisor does not send its history, it stays open who asked the guest', async () => {
  const { pid } = await startHypervisor({ SILENT: '1' });
  const watch = monitor.watch({ name: 'vm', pid, driver: scriptedDriver(socket) });
  await order('guest-off');
  const stop = await stopOf(watch);
  expect(stop).toMatchObject({ cause: 'unknown', userShutdown: null });
  expect(stop.candidates).toContain('other-powerdown');
});

test.each<[string, VmDriver['witness']]>([
  [
    'cannot begin',
    () => {
      throw new Error('of no use');
    },
  ],
  [
    'cannot testify',
    (run) => {
      run.ready();
      return { testify: () => Promise.reject(new Error('of no use')), close: () => undefined };
    },
  ],
])('a witness that %s causes a warning, and the others go on', async (_, witness) => {
  const { pid } = await startHypervisor();
  const warned = once(monitor, 'warning');
  const driver = { ...scriptedDriver(socket), ...(witness === undefined ? {} : { witness }) };
  const watch = monitor.watch({ name: 'vm', pid, driver });
  kill(pid, 'SIGKILL');
  expect(await stopOf(watch)).toMatchObject({ exit: { signal: 'SIGKILL' } });
  const [error] = (await arrives('a warning', warned)) as [Error];
  expect(error.message).toBe('of no use');
});

test('a witness together with QEMU’s files is refused', () => {
  const watch = (driver: object) =>
    monitor.watch({ name: 'vm', pid: process.pid, qmp: socket, driver: driver as VmDriver });
  expect(() => watch(scriptedDriver(socket))).toThrow(/qmp is for QEMU only/);
  expect(() => watch({ ...scriptedDriver(socket), witness: 1 })).toThrow(/witness/);
});

test('the rules of the verdict know evidence but no hypervisor', () => {
  for (const room of ['evidence', 'verdict', 'verdict/rules']) {
    const path = join(REPOSITORY, 'src', 'vm', room);
    for (const file of readdirSync(path).filter((each) => each.endsWith('.ts'))) {
      expect(readFileSync(join(path, file), 'utf8')).not.toMatch(/from '[./]*(qemu|vfkit)\//);
    }
  }
});
