// Lane: patient

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { identify } from '../../src';
import {
  qmpDriver,
  shouldRestart,
  VmMonitor,
  type VmDriver,
  type VmOptions,
  type VmVerdict,
} from '../../src/vm';
import { QmpLink } from '../../src/vm/qemu/qmp-link';

import { endOf, stopOf } from '../support/ends';
import { itWithQemu, TestVm, type VmSettings } from '../support/qemu';
import { arrives, until } from '../support/wait';

const IS_ROOT = process.getuid?.() === 0;

const vms: TestVm[] = [];
let monitor: VmMonitor;

beforeEach(async () => {
  monitor = new VmMonitor();
  await monitor.start();
});

afterEach(async () => {
  await monitor.close();
  for (const vm of vms.splice(0)) vm.remove();
});

function start(settings: VmSettings = {}): TestVm {
  const vm = new TestVm(settings);
  vms.push(vm);
  return vm;
}

function watch(vm: TestVm, options: Partial<VmOptions> = {}): Promise<VmVerdict> {
  return stopOf(monitor.watch({ name: 'web', pid: vm.pid, ...options }));
}

/** Waits until the machine accepts clients. */
async function isUp(vm: TestVm): Promise<void> {
  await vm.booted();
  await vm.status();
}

itWithQemu('a press in the first second, before exitwatch connects, leaves it open', async () => {
  const vm = start();
  await isUp(vm);
  await vm.press('a');
  await vm.press('a'); // the guest checks its button between two ticks
  const stopped = watch(vm, { qmp: vm.sockets[0] ?? '' });
  await arrives('the machine to run', once(monitor, 'running'));
  await vm.press('p');
  const stop = await stopped;
  expect(stop.certainty).not.toBe('sure');
  expect(stop.userShutdown).toBeNull();
  expect(stop.candidates).toEqual(expect.arrayContaining(['guest-shutdown', 'other-powerdown']));
  expect(shouldRestart(stop).restart).toBe(false);
});

itWithQemu('a pause no longer counts once the machine resumes', async () => {
  const vm = start();
  await isUp(vm);
  const ignored = { ready: () => undefined, warning: () => undefined };
  const link = new QmpLink(vm.sockets[0] ?? '', vm.pid, ignored);
  const isPaused = () => link.status.last === 'paused';
  try {
    await until('the link to be ready', () => link.readyAt !== null);
    await link.execute('stop');
    await until('the pause to be known', isPaused);
    await link.execute('cont');
    await until('RESUME', () => link.events.every(({ event }) => event !== 'STOP'));
    expect(isPaused()).toBe(false);
  } finally {
    link.close();
  }
});

(IS_ROOT ? describe : describe.skip)('an event log on a full disk (needs root)', () => {
  let disk: string;

  beforeEach(() => {
    disk = mkdtempSync(join(tmpdir(), 'exitwatch-disk-'));
    const mount = ['-t', 'tmpfs', '-o', 'size=1M', 'tmpfs', disk];
    expect(spawnSync('mount', mount).status).toBe(0);
    mkdirSync(join(disk, 'run'));
  });

  afterEach(() => {
    spawnSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true, force: true });
  });

  itWithQemu('does not attribute another’s press to the user', async () => {
    const folder = join(disk, 'run');
    const vm = start({ control: { folder, name: 'web' } });
    const stopped = watch(vm, { eventLog: vm.eventLog });
    await isUp(vm);
    const filler = join(disk, 'filler');
    writeFileSync(filler, Buffer.alloc(statfsSync(disk).bavail * statfsSync(disk).bsize));
    // The rest of its last page can still be written.
    for (let i = 0; i < 60; i++) await vm.ask('system_powerdown');
    rmSync(filler);
    await vm.press('p');
    const stop = await stopped;
    expect(stop.userShutdown).not.toBe(true);
    expect(stop.candidates).toContain('other-powerdown');
  });
});

describe('the source of a migration whose manager has not requested migration events', () => {
  itWithQemu.each(['quit', 'SIGTERM', 'SIGKILL'] as const)(
    'has migrated, even after %s',
    async (by) => {
      const vm = start();
      const stopped = watch(vm, { qmp: vm.sockets[0] ?? '', eventLog: vm.eventLog });
      await isUp(vm);
      await vm.ask('migrate', { uri: 'exec:cat >/dev/null' });
      await vm.untilStatus('postmigrate');
      await setTimeout(300); // the watch has asked as well by now
      if (by === 'quit') await vm.ask('quit').catch(() => undefined);
      else vm.child.kill(by);
      const stop = await stopped;
      expect(stop).toMatchObject({
        cause: 'migrated-away',
        certainty: 'likely',
        initiator: 'unknown',
      });
      expect(stop.candidates).toEqual(['migrated-away', 'saved']);
      expect(shouldRestart(stop).restart).toBe(false);
    },
  );

  itWithQemu('may have migrated if there is only its event log', async () => {
    const vm = start();
    const stopped = watch(vm, { eventLog: vm.eventLog });
    await isUp(vm);
    await vm.ask('migrate', { uri: 'exec:cat >/dev/null' });
    await vm.untilStatus('postmigrate');
    await vm.ask('quit').catch(() => undefined);
    const stop = await stopped;
    expect(stop).toMatchObject({ cause: 'other-quit', certainty: 'likely' });
    expect(stop.candidates).toEqual(['other-quit', 'migrated-away', 'saved']);
    expect(shouldRestart(stop).restart).toBe(false);
  });

  itWithQemu('has migrated, even if the watch begins after the migration', async () => {
    const vm = start();
    await isUp(vm);
    await vm.ask('migrate', { uri: 'exec:cat >/dev/null' });
    await vm.untilStatus('postmigrate');
    const stopped = watch(vm, { qmp: vm.sockets[0] ?? '', eventLog: vm.eventLog });
    await arrives('the machine to run', once(monitor, 'running'));
    await vm.ask('quit').catch(() => undefined);
    expect(await stopped).toMatchObject({ cause: 'migrated-away', userShutdown: false });
  });
});

itWithQemu('a paused machine that reports migrations has not migrated', async () => {
  const vm = start();
  await isUp(vm);
  await vm.ask('migrate-set-capabilities', {
    capabilities: [{ capability: 'events', state: true }],
  });
  const stopped = watch(vm, { qmp: vm.sockets[0] ?? '', eventLog: vm.eventLog });
  await arrives('the machine to run', once(monitor, 'running'));
  await vm.ask('stop');
  await setTimeout(500); // the watch has asked for its state by now
  await vm.ask('quit').catch(() => undefined);
  const stop = await stopped;
  expect(stop).toMatchObject({ cause: 'other-quit', certainty: 'sure', initiator: 'host' });
  expect(shouldRestart(stop).restart).toBe(true);
});

itWithQemu(
  'after a press on the source, the target of a migration does not attribute its end to the user',
  async () => {
    const target = start({ args: ['-incoming', 'defer'], isEarly: true });
    const stopped = watch(target, { qmp: target.sockets[0] ?? '', eventLog: target.eventLog });
    const source = start();
    await isUp(source);
    await source.press('a');
    await source.ask('stop'); // it will see its button when it resumes
    await source.ask('system_powerdown');
    const uri = `unix:${join(target.folder, 'move')}`;
    await target.ask('migrate-incoming', { uri });
    await source.ask('migrate', { uri });
    await target.untilStatus('paused');
    await target.ask('cont');
    const stop = await stopped;
    expect(stop.userShutdown).toBeNull();
    expect(stop.candidates).toEqual(expect.arrayContaining(['guest-shutdown', 'other-powerdown']));
  },
);

itWithQemu('a press that failed does not explain a shutdown, even without a log', async () => {
  const vm = start({ args: ['-no-shutdown'] });
  await isUp(vm);
  const driver: VmDriver = {
    ...qmpDriver({ socket: vm.sockets[1] ?? '' }),
    powerDown: async () => {
      await vm.press('p');
      await vm.untilStatus('shutdown');
      throw Object.assign(new Error('nobody was there'), { code: 'ENOENT' });
    },
  };
  const machine = { name: 'web', pid: vm.pid, qmp: vm.sockets[0] ?? '', eventLog: vm.eventLog };
  const stop = await monitor.watch({ ...machine, driver }).stop({ quitTimeoutMs: 0 });
  expect(stop.candidates).toContain('guest-shutdown');
  expect(stop.candidates).not.toContain('admin-powerdown');
});

itWithQemu('the log of an earlier start does not count for this one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-log-'));
  const log = join(folder, 'log');
  writeFileSync(log, 'qemu-system-x86_64: terminating on signal 15 from pid 7 (/bin/sh)\n');
  await setTimeout(1500); // so that the log is clearly older than the machine
  const vm = start();
  await isUp(vm);
  const identity = identify(vm.pid);
  if (identity === null) throw new Error('it is not there');
  vm.child.kill('SIGKILL');
  await endOf(vm.child);
  const { pidfile, eventLog } = vm;
  const stop = await stopOf(monitor.watch({ name: 'web', identity, pidfile, eventLog, log }));
  expect(stop.candidates).toContain('killed');
  expect(stop.candidates).not.toContain('forced-stop');
  rmSync(folder, { recursive: true });
});

itWithQemu('an incomplete incoming stream is a failed start', async () => {
  const vm = start({ args: ['-incoming', 'exec:head -c 100 /dev/zero'], isEarly: true });
  const stopped = watch(vm, { qmp: vm.sockets[0] ?? '', eventLog: vm.eventLog, log: vm.log });
  const stop = await stopped;
  expect(stop).toMatchObject({ cause: 'start-failed', userShutdown: false });
});
