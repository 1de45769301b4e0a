import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { createInterface } from 'node:readline';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { eventLogArguments, QmpClient, type VmOptions } from '../../src/vm';
import { TestVm } from '../support/qemu';
import { arrives } from '../support/wait';
import { kill } from '../support/kill';

/** A machine as started by one of the managers in docs/vm-guides.md. */
export interface GuidedVm {
  vm: TestVm;
  pid: number;
  /** The evidence without any addition. */
  witnesses: Omit<VmOptions, 'name'>;
  /** The manager's own QMP client. */
  client: QmpClient;
  close(): void;
}

export interface Guide {
  name: string;
  /** Whether the manager itself enables migration events. */
  tellsMigrations: boolean;
  /** Whether the guest may have an agent whose channel nobody watches. */
  hasAgent: boolean;
  /** The devices that a machine must have to take over from it. */
  devices(folder: string): string[];
  /** `added`: the control directory if the guide's additions are used. */
  start(added: string | null, qemu: string): Promise<GuidedVm>;
}

/** The additions of docs/vm-guides.md: an event log, and a QMP socket only for exitwatch. */
const additions = (controlDir: string) => [
  ...['-qmp', `unix:${controlDir}/web.qmp,server=on,wait=off`],
  ...eventLogArguments(`${controlDir}/web.events`),
];

/** A folder for everything that exists before the machine. */
const folderOf = () => mkdtempSync(join(tmpdir(), 'exitwatch-guide-'));

async function clientOf(path: string): Promise<QmpClient> {
  const client = new QmpClient(path);
  client.on('error', () => undefined);
  const ready = new Promise<void>((resolve, reject) => {
    client.once('ready', resolve);
    client.once('close', () => {
      reject(new Error(`nothing listens on ${path}`));
    });
  });
  await arrives(`a server on ${path}`, ready);
  return client;
}

function terminate(pid: number): void {
  try {
    kill(pid, 'SIGTERM');
  } catch {
    // It was faster.
  }
}

/** Ends machines that have shut down, as qmeventd does. */
function qmeventd(path: string, pidOf: () => number): Server {
  return createServer((socket) => {
    const say = (execute: string) => socket.write(`${JSON.stringify({ execute })}\n`);
    socket.on('error', () => undefined);
    const lines = createInterface(socket).on('error', () => undefined);
    lines.on('line', (line) => {
      if (line.includes('"QMP"')) say('qmp_capabilities');
      if (line.includes('"SHUTDOWN"')) say('query-status');
      if (line.includes('"status": "shutdown"')) terminate(pidOf());
    });
  }).listen(path);
}

const agent = (path: string) => [
  ...['-chardev', `socket,path=${path},server=on,wait=off,id=qga0`],
  ...['-device', 'virtio-serial,id=qga0,bus=pci.0,addr=0x8'],
  ...['-device', 'virtserialport,chardev=qga0,name=org.qemu.guest_agent.0'],
];

const proxmox = (hasAgent: boolean): Guide => ({
  name: hasAgent ? 'Proxmox' : 'Proxmox, no agent',
  tellsMigrations: false,
  hasAgent,
  devices: (folder) => (hasAgent ? agent(join(folder, 'qga')) : []),
  async start(added, qemu) {
    const folder = folderOf();
    let pid = 0;
    const events = join(folder, 'qmeventd.sock');
    const server = qmeventd(events, () => pid);
    const at = (suffix: string) => join(folder, `100.${suffix}`);
    const vm = new TestVm({
      qemu,
      daemonize: true,
      manager: () => [
        ...['-name', 'web,debug-threads=on', '-no-shutdown'],
        ...['-chardev', `socket,id=qmp,path=${at('qmp')},server=on,wait=off`],
        ...['-mon', 'chardev=qmp,mode=control'],
        ...['-chardev', `socket,id=qmp-event,path=${events},reconnect=5`],
        ...['-mon', 'chardev=qmp-event,mode=control'],
        ...['-pidfile', at('pid')],
        ...(hasAgent ? agent(at('qga')) : []),
        ...(added === null ? [] : additions(added)),
      ],
    });
    pid = await vm.daemonPid(at('pid'));
    const client = await clientOf(at('qmp'));
    const close = () => {
      server.close();
      rmSync(folder, { recursive: true });
    };
    return { vm, pid, client, close, witnesses: { pidfile: at('pid') } };
  },
});

const libvirt: Guide = {
  name: 'libvirt',
  tellsMigrations: true,
  hasAgent: false,
  devices: () => [],
  async start(added, qemu) {
    const folder = folderOf();
    const path = join(folder, 'monitor.sock');
    // This process makes the listening socket and hands it over. It does not accept clients from
    // it, and closing the server must not remove its file.
    const server = createServer().listen(`${path}.new`);
    await arrives(`a server at ${path}`, once(server, 'listening'));
    renameSync(`${path}.new`, path);
    const listener = (server as unknown as { _handle: { fd: number } })._handle.fd;
    const log = join(folder, 'web.log');
    const stderr = openSync(log, 'a', 0o600);
    const vm = new TestVm({
      qemu,
      stdio: ['ignore', stderr, stderr, listener],
      manager: () => [
        ...['-name', 'guest=web,debug-threads=on', '-S', '-no-shutdown', '-msg', 'timestamp=on'],
        '-sandbox',
        'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
        ...['-chardev', 'socket,id=charmonitor,fd=3,server=on,wait=off'],
        ...['-mon', 'chardev=charmonitor,id=monitor,mode=control'],
        ...(added === null ? [] : additions(added)),
      ],
    });
    server.close();
    closeSync(stderr);
    const client = await clientOf(path);
    await tellMigrations(client);
    // libvirt ends a machine that has shut down.
    client.on('event', ({ event }) => {
      if (event === 'SHUTDOWN') terminate(vm.pid);
    });
    await client.execute('cont');
    const close = () => {
      rmSync(folder, { recursive: true });
    };
    return { vm, pid: vm.pid, client, close, witnesses: { pid: vm.pid, log } };
  },
};

const ganeti: Guide = {
  name: 'Ganeti',
  tellsMigrations: false,
  hasAgent: false,
  devices: () => [],
  async start(added, qemu) {
    const folder = folderOf();
    const at = (suffix: string) => join(folder, `web.${suffix}`);
    const vm = new TestVm({
      qemu,
      daemonize: true,
      manager: () => [
        ...['-name', 'web', '-pidfile', at('pid'), '-D', at('log')],
        ...['-monitor', `unix:${at('monitor')},server=on,wait=off`],
        ...['-qmp', `unix:${at('qmp')},server=on,wait=off`],
        ...['-qmp', `unix:${at('kvmd')},server=on,wait=off`],
        ...(added === null ? [] : additions(added)),
      ],
    });
    const pid = await vm.daemonPid(at('pid'));
    const client = await clientOf(at('qmp'));
    const witnesses = { pidfile: at('pid'), qmp: at('kvmd'), log: at('log') };
    const close = () => {
      rmSync(folder, { recursive: true });
    };
    return { vm, pid, client, close, witnesses };
  },
};

export const GUIDES: readonly Guide[] = [proxmox(true), proxmox(false), libvirt, ganeti];

/** It is off by default, and must be set for each machine. */
export async function tellMigrations(client: QmpClient): Promise<void> {
  await client.execute('migrate-set-capabilities', {
    capabilities: [{ capability: 'events', state: true }],
  });
}
