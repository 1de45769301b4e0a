// Lane: patient

import { copyFileSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { identify } from '../../src';
import { writePidfile } from '../../src/process';
import { ownerOf } from '../../src/vm/directory/vm-owner';
import type { ControlFiles } from '../../src/vm/directory/control-files';
import { runsHypervisor } from '../../src/vm/vm-program';
import { listenerOf } from '../../src/native/socket-peer';

import { KERNEL } from '../support/kernel';
import { itAsRoot, itIf } from '../support/privilege';
import { LineProcess, REPOSITORY, run } from '../support/programs';
import { itWithQemu, TestVm } from '../support/qemu';
import { until } from '../support/wait';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-owner-'));
  path = join(folder, 'web.qmp');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Starts a process that listens on the socket. */
async function listener(): Promise<LineProcess> {
  const script =
    "require('node:net').createServer().listen(process.argv[1], () => console.log('listens'))";
  const server = new LineProcess(process.execPath, ['-e', script, path]);
  expect(await server.line()).toBe('listens');
  return server;
}

/** Before any process of this test began. */
const LONG_AGO = new Date(Date.now() - 3_600_000);

const files = (more: Partial<ControlFiles> = {}): ControlFiles => ({
  ...{ name: 'web', qmp: path, pidfile: null, eventLog: null, log: null, signature: '' },
  ...more,
});

test('listenerOf() identifies the listener of a socket while there is one', async () => {
  expect(await listenerOf(path)).toBe('nobody');
  const server = await listener();
  const identity = identify(server.pid);
  expect(await listenerOf(path)).toEqual({
    pid: server.pid,
    uid: process.geteuid?.(),
    inode: identity?.inode ?? 0,
  });
  server.child.kill('SIGKILL');
  await server.ended;
  expect(await listenerOf(path)).toBe('nobody');
  expect(await ownerOf(files())).toMatchObject({ state: 'ended' });
});

itIf(KERNEL.pidfdInodes, 'needs Linux 6.9')(
  'the listener owns the machine, whatever the date of the socket',
  async () => {
    const server = await listener();
    utimesSync(path, LONG_AGO, LONG_AGO);
    expect(await ownerOf(files())).toMatchObject({
      state: 'found',
      identity: { id: identify(server.pid)?.id },
    });
    server.child.kill();
    await server.ended;
  },
);

/** A process whose executable has this name. */
function running(name: string): LineProcess {
  const executable = join(folder, name);
  copyFileSync('/bin/sleep', executable);
  return new LineProcess(executable, ['1000']);
}

function numbered(pid: number): string {
  const pidfile = join(folder, 'web.pid');
  writeFileSync(pidfile, String(pid), { mode: 0o600 });
  return pidfile;
}

const UNVERIFIED = { state: 'unknown', error: { code: 'ERR_EXITWATCH_NOT_VERIFIED' } };

itAsRoot(
  'a listener outside of the pid namespace is not the process that it should be',
  async () => {
    const server = await listener();
    const script = `
    const { QmpClient } = require(process.argv[1]);
    const { GuestAgentClient } = require(process.argv[2]);
    const { stateOf } = require(process.argv[3]);
    const [, , , , path] = process.argv;
    new QmpClient(path, 1).on('error', ({ message }) => console.log(message)).on('close', async () => {
      await new GuestAgentClient(path, 1).synchronize(500).catch(({ message }) => console.log(message));
      await stateOf(path, undefined, 1).catch(({ message }) => console.log(message));
      process.exit();
    });
    setTimeout(() => process.exit(), 5000);
  `;
    const modules = ['qemu/qmp-client', 'qemu/guest-agent-client', 'vfkit/vfkit-service'];
    const paths = modules.map((name) => join(REPOSITORY, 'dist', 'vm', `${name}.js`));
    const inside = ['-pf', process.execPath, '-e', script, ...paths, path];
    const { stdout } = await run('unshare', inside);
    const stranger = /belongs to a process outside of this pid namespace, not to process 1/;
    expect(stdout.trim().split('\n')).toEqual([
      ...modules.map(() => expect.stringMatching(stranger) as string),
    ]);
    server.child.kill();
    await server.ended;
  },
);

test('a number is believed only of a hypervisor, as it may be of another pid namespace', async () => {
  const stranger = new LineProcess('sleep', ['1000']);
  expect(await ownerOf(files({ qmp: null, pidfile: numbered(stranger.pid) }))).toMatchObject(
    UNVERIFIED,
  );
  await writePidfile(join(folder, 'web.pid'), stranger.pid);
  expect(await ownerOf(files({ qmp: null, pidfile: join(folder, 'web.pid') }))).toMatchObject({
    ...{ state: 'found', identity: { pid: stranger.pid } },
  });
  rmSync(join(folder, 'web.pid.id'));
  for (const name of ['qemu-system-x86_64', 'cloud-hypervisor', 'vfkit']) {
    const machine = running(name);
    await until(`${name} to run`, () => runsHypervisor(machine.pid));
    expect(await ownerOf(files({ qmp: null, pidfile: numbered(machine.pid) }))).toMatchObject({
      ...{ state: 'found', identity: { pid: machine.pid } },
    });
    machine.child.kill();
    await machine.ended;
  }
  stranger.child.kill();
  await stranger.ended;
});

itIf(KERNEL.pidfdInodes, 'needs Linux 6.9')(
  'a number that is not that of a stranger at the socket is believed, and no other is',
  async () => {
    const server = await listener();
    const found = { state: 'found', identity: { pid: server.pid } };
    expect(await ownerOf(files({ pidfile: numbered(server.pid) }))).toMatchObject(found);
    const stranger = new LineProcess('sleep', ['1000']);
    expect(await ownerOf(files({ pidfile: numbered(stranger.pid) }))).toMatchObject(found);
    // A manager has opened the socket for its machine.
    const machine = running('qemu-kvm');
    await until('qemu-kvm to run', () => runsHypervisor(machine.pid));
    expect(await ownerOf(files({ pidfile: numbered(machine.pid) }))).toMatchObject({
      ...{ state: 'found', identity: { pid: machine.pid } },
    });
    for (const each of [server, stranger, machine]) {
      each.child.kill();
      await each.ended;
    }
  },
);

itWithQemu(
  'the socket of one machine and the number of another contradict each other',
  async () => {
    const [vm, other] = [new TestVm({}), new TestVm({})];
    await Promise.all([vm.booted(), other.booted()]);
    const qmp = vm.sockets[0] ?? '';
    expect(await ownerOf(files({ qmp, pidfile: numbered(other.pid) }))).toMatchObject(UNVERIFIED);
    expect(await ownerOf(files({ qmp, pidfile: numbered(vm.pid) }))).toMatchObject({
      ...{ state: 'found', identity: { pid: vm.pid } },
    });
    vm.remove();
    other.remove();
  },
);

test('a pidfile that is older than the process with its pid identifies nothing', async () => {
  const later = running('qemu-system-x86_64');
  await until('it to run', () => runsHypervisor(later.pid));
  const pidfile = join(folder, 'web.pid');
  writeFileSync(pidfile, String(later.pid), { mode: 0o600 });
  expect(await ownerOf(files({ qmp: null, pidfile }))).toMatchObject({ state: 'found' });
  utimesSync(pidfile, LONG_AGO, LONG_AGO);
  expect(await ownerOf(files({ qmp: null, pidfile }))).toMatchObject({
    state: 'unknown',
    error: { message: expect.stringContaining('is older than process') as string },
  });
  later.child.kill();
  await later.ended;
});
