// A small manager of virtual machines: starts, watches and stops them, and reports why they ended.
// A machine that powers itself off stays off; one that is killed is started again.
//
//   node vm-manager.mjs watch
//   node vm-manager.mjs start NAME [QEMU OPTION]…
//   node vm-manager.mjs stop NAME
//   node vm-manager.mjs why NAME
//
// Files are in $VMS if that is set, otherwise in /run/vms and /var/lib/vms.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive, writePidfile } from 'exitwatch/process';
import {
  eventLogArguments,
  qmpDriver,
  readShutdownMarker,
  readVmRecord,
  shouldRestart,
  VmControl,
  VmDaemon,
} from 'exitwatch/vm';

const { VMS, QEMU = 'qemu-system-x86_64' } = process.env;
const controlDir = VMS === undefined ? '/run/vms' : join(VMS, 'run');
const stateDir = VMS === undefined ? '/var/lib/vms' : join(VMS, 'state');

/** The options that a machine was started with, to start it again. */
const settings = (name) => join(stateDir, `${name}.args`);

/** Two sockets, as QEMU serves one client of each: the watcher has one for itself. */
const path = (name, kind) => join(controlDir, `${name}.${kind}`);

const control = (name) =>
  new VmControl({
    process: { pidfile: path(name, 'pid'), executable: QEMU },
    driver: qmpDriver({ socket: path(name, 'control') }),
    // What we do is on the disk before we do it, so the daemon knows that it was us.
    intentLog: join(stateDir, 'intents'),
  });

async function start(name, args) {
  await mkdir(controlDir, { recursive: true, mode: 0o700 });
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const { state } = await control(name).state();
  if (state !== 'stopped') throw new Error(`${name} is ${state}`);
  await writeFile(settings(name), JSON.stringify(args), { mode: 0o600 });
  const sockets = ['qmp', 'control'].flatMap((kind) => [
    '-qmp',
    `unix:${path(name, kind)},server=on,wait=off`,
  ]);
  const machine = spawn(QEMU, [...args, ...sockets, ...eventLogArguments(path(name, 'events'))], {
    detached: true, // it outlives us, and a ^C at our terminal
    stdio: 'ignore',
  });
  await once(machine, 'spawn');
  // We write the pidfile, not QEMU: so it identifies the process even after that has exited.
  await writePidfile(path(name, 'pid'), machine.pid);
  machine.unref();
  return machine.pid;
}

async function watch() {
  const daemon = new VmDaemon({
    controlDir,
    stateDir,
    // Called again if we restart before it is done: the machine may have been started again by then.
    hook: async (end) => {
      const { stop } = end;
      console.log(stop.summary);
      const { restart, because } = shouldRestart(stop, end);
      if (restart === null) console.log(`${stop.name} stays off until you decide: ${because}`);
      if (restart !== true || (await control(stop.name).state()).state !== 'stopped') return;
      const args = JSON.parse(await readFile(settings(stop.name), 'utf8'));
      console.log(`${stop.name} was started again as process ${await start(stop.name, args)}`);
    },
  });
  daemon.on('warning', (error, name) => console.error(name ?? 'machines', error.message));
  await daemon.start();
  console.log('watching');
  await Promise.race([once(daemon, 'error'), once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  await daemon.close();
}

async function stop(name) {
  const { outcome, warnings } = await control(name).stop({ reason: 'vm-manager stop' });
  for (const { detail } of warnings) console.error(detail);
  if (outcome === 'timed-out') throw new Error(`${name} is still running`);
  const record = await readVmRecord(stateDir, name);
  const isUsers = (await readShutdownMarker(stateDir, name)) !== null;
  return outcome === 'already-gone' && isUsers && record?.state === 'stopped'
    ? `${name} was already off: its user shut it down`
    : `${name}: ${outcome}`;
}

async function why(name) {
  const record = await readVmRecord(stateDir, name);
  if (record === null) return `${name} is unknown`;
  const runs = record.identity !== null && isAlive(record.identity) === 'alive';
  const last = record.lastStop === null ? '' : `; last end: ${record.lastStop.summary}`;
  return runs
    ? `${name} is running as process ${record.identity.pid}${last}`
    : `${name} is off${last}`;
}

const [command, name, ...args] = process.argv.slice(2);
const commands = {
  watch,
  start: () => start(name, args),
  stop: () => stop(name),
  why: () => why(name),
};
try {
  if (!(command in commands) || (command !== 'watch' && !/^[\w-]+$/.test(name ?? ''))) {
    throw new Error('usage: vm-manager.mjs watch | start NAME [OPTION]… | stop NAME | why NAME');
  }
  const answer = await commands[command]();
  if (answer !== undefined) console.log(answer);
} catch (error) {
  console.error(`vm-manager: ${error.message}`);
  process.exitCode = 1;
}
