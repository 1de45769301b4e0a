// Lane: patient

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { VmMonitor } from '../../src/vm';
import { readQemuCommand } from '../../src/vm/qemu/qemu-command';

import { stopOf } from '../support/ends';
import { mortal, release } from '../support/mortal';
import { LineProcess } from '../support/programs';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-port-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

const SPICE = { event: 'VSERPORT_CHANGE', data: { id: 'channel1', open: true } };
const AGENT = { event: 'VSERPORT_CHANGE', data: { id: 'plugged', open: true } };

/** The verdict on a power-off by the guest of a QEMU whose command line has no agent's channel. */
function powerOffAfter(...events: object[]) {
  return powerOff({ otherPorts: ['channel1'] }, events);
}

/** `ports`: what is known of the ports on its command line. */
async function powerOff(ports: { otherPorts?: string[] }, events: object[]) {
  const eventLog = join(folder, 'events');
  const child = await mortal();
  const end = Date.now() + 1000;
  const log = [
    { event: 'RESUME' },
    ...events,
    { event: 'SHUTDOWN', data: { guest: true, reason: 'guest-shutdown' } },
  ];
  const lines = log.map((event, index) => {
    const ms = end - (log.length - index) * 100;
    const seconds = Math.floor(ms / 1000);
    const microseconds = (ms - seconds * 1000) * 1000;
    return JSON.stringify({ ...event, timestamp: { seconds, microseconds } });
  });
  writeFileSync(eventLog, `${lines.join('\n')}\n`, { mode: 0o600 });
  await using monitor = new VmMonitor();
  const no = { mayLinger: false, isDaemonized: false, isIncoming: false, hasDebugExit: false };
  const command = { ...no, hasAgent: false, tellsAgent: false, ...ports };
  const watch = monitor.watch({ name: 'vm', pid: child.pid, eventLog, command });
  await monitor.start();
  await setTimeout(end - Date.now());
  await release(child);
  return await stopOf(watch);
}

test('a port that may be an agent’s, and is not on the command line, lets others power the guest off', async () => {
  expect(await powerOffAfter()).toMatchObject({ userShutdown: true, certainty: 'sure' });
  const { userShutdown, candidates } = await powerOffAfter(SPICE, AGENT);
  expect(userShutdown).toBeNull();
  expect(candidates).toEqual(['guest-shutdown', 'other-powerdown']);
  expect(await powerOffAfter(SPICE)).toMatchObject({ userShutdown: true, certainty: 'sure' });
});

test('of a machine whose ports an earlier version did not note, it is told as before', async () => {
  expect(await powerOff({}, [SPICE])).toMatchObject({ userShutdown: true, certainty: 'sure' });
});

test('a command line tells which ports are not an agent’s', async () => {
  const devices = [
    'virtserialport,chardev=a,id=channel0,name=org.qemu.guest_agent.0',
    'virtserialport,chardev=b,name=com.redhat.spice.0,id=channel1',
    '{"driver":"virtserialport","id":"channel2","name":"org.spice-space.webdav.0"}',
    'virtserialport,chardev=c,id=nameless',
    'virtconsole,chardev=e,id=console0',
    'virtserialport,chardev=d,name=without.an.id',
    'virtio-net-pci,id=net0,name=x',
  ];
  const args = devices.flatMap((device) => ['-device', device]);
  const script = 'console.log(1); setInterval(() => {}, 1000)';
  const qemu = new LineProcess(process.execPath, ['-e', script, '--', ...args]);
  await qemu.line();
  expect(readQemuCommand(qemu.pid)).toMatchObject({
    ...{ hasAgent: true, tellsAgent: true, otherPorts: ['channel1', 'channel2', 'console0'] },
  });
  qemu.child.kill();
  await qemu.ended;
});
