// Lane: patient

import { spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { identify } from '../../src';
import { writePidfile } from '../../src/process';
import { qmpDriver, readShutdownMarker, VmControl, VmDaemon, type VmRecord } from '../../src/vm';

import { call, MAIN } from '../support/command';
import { TestDaemon } from '../support/daemon';
import { dead, endOf } from '../support/ends';
import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { LineProcess } from '../support/programs';
import { itWithQemu, type TestVm } from '../support/qemu';
import { arrives, until } from '../support/wait';

let daemon: TestDaemon;

beforeEach(() => {
  daemon = new TestDaemon();
});

afterEach(() => daemon.remove());

const told = () => daemon.said.filter(({ event }) => event === 'stopped');

const gone = (vm: TestVm) => dead(vm.pid);

/** Starts a machine whose user shuts it down, and waits until the daemon knows. */
async function shutDownByUser(name: string): Promise<void> {
  const vm = await daemon.vm(name);
  await daemon.found(vm);
  await vm.press('p');
  await daemon.stopped(vm);
}

itWithQemu('after a power loss of the host, a new start is not taken for the old one', async () => {
  await daemon.start();
  await shutDownByUser('web');
  const vm = await daemon.vm('web');
  await daemon.found(vm);
  await daemon.end('SIGKILL');
  vm.child.kill('SIGKILL');
  await gone(vm);
  for (const file of ['web.pid', 'web.qmp']) rmSync(join(daemon.controlDir, file));
  const path = join(daemon.stateDir, 'web.json');
  const record = JSON.parse(readFileSync(path, 'utf8')) as VmRecord;
  if (record.identity === null) throw new Error('it was not found');
  record.identity.bootId = '11111111-2222-3333-4444-555555555555';
  record.identity.id = `111111112222${record.identity.id.slice(12)}`;
  writeFileSync(path, JSON.stringify(record), { mode: 0o600 });
  await daemon.start();
  const { id } = record.identity;
  const end = await daemon.until((said) => said.event === 'stopped' && said.id === id);
  expect(end).toMatchObject({ cause: 'unknown', userShutdown: null });
  expect(end.candidates).toContain('killed');
  expect(await readShutdownMarker(daemon.stateDir, 'web')).toBeNull();
});

itWithQemu('an unseen start that never ran is not mistaken for the previous one', async () => {
  await daemon.start();
  await shutDownByUser('web');
  await daemon.end();
  const at = (file: string) => join(daemon.controlDir, `web.${file}`);
  const paused = spawn('qemu-system-x86_64', [
    ...[
      '-accel',
      'tcg',
      '-m',
      '32',
      '-nodefaults',
      '-display',
      'none',
      '-S',
      '-pidfile',
      at('pid'),
    ],
    ...['-qmp', `unix:${at('qmp')},server=on,wait=off`],
    ...['-chardev', `null,id=e,logfile=${at('events')},logappend=on`],
    ...['-mon', 'chardev=e,mode=control'],
  ]);
  // QEMU handles signals once it answers. Before that a signal kills it, and its files stay.
  const machine = qmpDriver({ socket: at('qmp') });
  const isPrelaunch = async () => (await machine.state().catch(() => null)) === 'prelaunch';
  await until('QEMU to answer', isPrelaunch);
  const before = readFileSync(at('events'), 'utf8');
  paused.kill('SIGTERM');
  await until(`${at('pid')} to be removed`, () => !existsSync(at('pid')));
  expect(readFileSync(at('events'), 'utf8').slice(before.length)).toMatch(/host-signal/);
  await daemon.start();
  const end = await daemon.until(({ event, identity }) => event === 'stopped' && identity === null);
  expect(end).toMatchObject({ cause: 'forced-stop' });
  expect(end.userShutdown).not.toBe(true);
  expect(existsSync(join(daemon.stateDir, 'web.shutdown'))).toBe(false);
});

itWithQemu('a start whose log was removed inherits nothing from the next one’s log', async () => {
  await daemon.start();
  const vm = await daemon.vm('web');
  const identity = identify(vm.pid);
  await daemon.found(vm);
  await daemon.recorded('web', ({ eventLog }) => eventLog !== null);
  await daemon.end('SIGKILL');
  vm.child.kill('SIGKILL');
  await gone(vm);
  rmSync(vm.eventLog);
  const next = await daemon.vm('web');
  await next.press('p');
  await gone(next);
  await daemon.start();
  const first = await daemon.until((said) => said.event === 'stopped' && said.id === identity?.id);
  expect(first).toMatchObject({ userShutdown: null });
  // The later verdict comes from its own log.
  const second = await daemon.until((said) => said.event === 'stopped' && said.identity === null);
  expect(second).toMatchObject({ cause: 'guest-shutdown', userShutdown: true });
});

const logPath = () => join(daemon.controlDir, 'web.events');

function writeLog(...events: [event: string, data?: object][]): void {
  const seconds = Math.floor(Date.now() / 1000);
  const timestamp = { seconds, microseconds: (Date.now() % 1000) * 1000 };
  const lines = events.map(([event, data = {}]) => JSON.stringify({ timestamp, event, data }));
  writeFileSync(logPath(), `${lines.join('\n')}\n`, { mode: 0o600 });
}

/** Starts a process that the daemon finds before it has an event log. */
async function foundWithoutLog(): Promise<LineProcess> {
  const first = await mortal();
  await writePidfile(join(daemon.controlDir, 'web.pid'), first.pid);
  await daemon.until(({ event, identity }) => event === 'found' && identity?.pid === first.pid);
  expect(await daemon.record('web')).toMatchObject({ state: 'running', eventLog: null });
  return first;
}

/**
 * The process is killed while no daemon runs, and the user shuts down its successor, whose log
 * stays.
 */
async function replaceUnseen(first: LineProcess): Promise<void> {
  await daemon.end('SIGKILL');
  first.child.kill('SIGKILL');
  await first.ended;
  for (const file of ['events', 'pid', 'pid.id']) {
    rmSync(join(daemon.controlDir, `web.${file}`), { force: true });
  }
  await setTimeout(50); // the clock of a process and that of a log may differ by this much
  writeLog(['RESUME'], ['SHUTDOWN', { guest: true, reason: 'guest-shutdown' }]);
}

/** Checks that both ends are reported, each with its own evidence. */
async function expectSeparateEnds(first: LineProcess): Promise<void> {
  const end = await daemon.until(
    ({ event, identity }) => event === 'stopped' && identity?.pid === first.pid,
  );
  expect(end).toMatchObject({ userShutdown: null });
  const next = await daemon.until(
    ({ event, identity }) => event === 'stopped' && identity === null,
  );
  expect(next).toMatchObject({ cause: 'guest-shutdown', userShutdown: true });
}

test.each([true, false])(
  'a log that appears after its machine was found is not attributed to the next machine (watched then: %s)',
  async (isWatched) => {
    await daemon.start();
    const first = await foundWithoutLog();
    if (!isWatched) await daemon.end('SIGKILL');
    writeLog(['RESUME']);
    if (!isWatched) await daemon.start();
    await daemon.recorded('web', ({ eventLog }) => eventLog !== null);
    await replaceUnseen(first);
    await daemon.start();
    await expectSeparateEnds(first);
  },
);

test('a start without a log inherits nothing from the next one’s log', async () => {
  await daemon.start();
  const first = await foundWithoutLog();
  await replaceUnseen(first);
  const path = join(daemon.stateDir, 'web.json');
  const record = JSON.parse(readFileSync(path, 'utf8')) as VmRecord;
  record.foundAt = new Date(Date.now() - 60_000);
  writeFileSync(path, JSON.stringify(record), { mode: 0o600 });
  await daemon.start();
  await expectSeparateEnds(first);
});

itWithQemu('a machine without QMP that is killed early does not count as starting', async () => {
  await daemon.start();
  const vm = await daemon.vm('web');
  rmSync(join(daemon.controlDir, 'web.qmp'));
  await daemon.found(vm);
  vm.child.kill('SIGKILL');
  expect(await daemon.stopped(vm)).toMatchObject({ cause: 'killed', certainty: 'sure' });
});

itWithQemu('a pidfile that is written late does not repeat the report of an end', async () => {
  await daemon.start();
  const vm = await daemon.vm('web');
  await daemon.found(vm);
  await setTimeout(50);
  writeFileSync(vm.pidfile, String(vm.pid));
  await daemon.end('SIGKILL');
  vm.child.kill('SIGKILL');
  await gone(vm);
  await daemon.start();
  await daemon.stopped(vm);
  await setTimeout(2500); // long enough to report it again
  expect(told().length).toBe(1);
});

itWithQemu('a second name for an ended process does not repeat the report of its end', async () => {
  await daemon.start();
  const vm = await daemon.registeredVm('web');
  await daemon.found(vm);
  for (const file of ['pid.id', 'pid']) {
    copyFileSync(join(daemon.controlDir, `web.${file}`), join(daemon.controlDir, `copy.${file}`));
  }
  await daemon.until(({ event, name }) => event === 'warning' && name === 'copy');
  await vm.press('p');
  await daemon.stopped(vm);
  await setTimeout(1000);
  expect(told()).toMatchObject([{ name: 'web', userShutdown: true }]);
});

test('an end before the first daemon started is not reported', async () => {
  const old = await mortal();
  await writePidfile(join(daemon.controlDir, 'old.pid'), old.pid);
  await release(old);
  await setTimeout(20);
  await daemon.start();
  await setTimeout(2500);
  expect(daemon.said.filter(({ event }) => event === 'found' || event === 'stopped')).toEqual([]);
});

itAsRoot(
  'the unseen end of another user’s machine is found through the pidfile its user registered',
  async () => {
    await daemon.start();
    await daemon.end();
    const own = spawn('setpriv', [
      ...['--reuid', '65534', '--regid', '65534', '--clear-groups', 'sleep', '1000'],
    ]);
    await setTimeout(100);
    const pidfile = join(daemon.controlDir, 'own.pid');
    await writePidfile(pidfile, own.pid ?? 0);
    for (const file of [pidfile, `${pidfile}.id`]) {
      await endOf(spawn('chown', ['65534', file]));
    }
    own.kill('SIGKILL');
    await endOf(own);
    await daemon.start();
    await daemon.until(({ event, identity }) => event === 'stopped' && identity?.pid === own.pid);
  },
);

itWithQemu('a machine’s record stays readable whatever the machine has sent', async () => {
  await daemon.start();
  const vm = await daemon.registeredVm('web');
  await daemon.found(vm);
  const at = Math.floor(Date.now() / 1000) + 1;
  await setTimeout(1500);
  const line = {
    timestamp: { seconds: at, microseconds: 0 },
    event: 'WATCHDOG',
    data: { action: 'none', x: 'x'.repeat(20_000) },
  };
  for (let i = 0; i < 500; i++) appendFileSync(vm.eventLog, `${JSON.stringify(line)}\n`);
  await vm.press('p');
  await daemon.stopped(vm);
  await setTimeout(1000);
  expect(told().length).toBe(1);
  expect(await daemon.record('web')).toMatchObject({ state: 'stopped' });
});

itWithQemu('an unreadable record does not repeat a report', async () => {
  await daemon.start();
  const vm = await daemon.registeredVm('web');
  await daemon.found(vm);
  await vm.press('p');
  await daemon.stopped(vm);
  await daemon.end();
  writeFileSync(join(daemon.stateDir, 'web.json'), '{"event":"vm"');
  await daemon.start();
  await daemon.until(
    ({ event, code }) => event === 'warning' && code === 'ERR_EXITWATCH_STATE_DIR',
  );
  await setTimeout(2500);
  expect(told().length).toBe(1);
});

itWithQemu(
  'a machine with an event log of 60 GB is watched all the same',
  async () => {
    const vm = await daemon.vm('huge');
    truncateSync(vm.eventLog, 60 * 1024 ** 3);
    await daemon.start();
    await daemon.found(vm);
    vm.child.kill('SIGKILL');
    expect(await daemon.stopped(vm)).toMatchObject({ cause: 'killed' });
  },
  20_000,
);

test('a shortage of descriptors loses none of hundreds of ends', async () => {
  const { controlDir, stateDir } = daemon;
  await daemon.start();
  await daemon.end();
  await setTimeout(1100);
  const seconds = Math.floor(Date.now() / 1000);
  const line = (event: string, data: object) =>
    JSON.stringify({ timestamp: { seconds, microseconds: 1 }, event, data });
  const log = [line('RESUME', {}), line('SHUTDOWN', { guest: true, reason: 'guest-shutdown' }), ''];
  for (let i = 0; i < 400; i++) {
    writeFileSync(join(controlDir, `vm${i}.events`), log.join('\n'), { mode: 0o600 });
  }
  const limited = new LineProcess('sh', [
    ...['-c', 'ulimit -n 256; exec "$@"', 'sh', process.execPath, MAIN, 'vm', 'daemon', '--json'],
    ...['--control-dir', controlDir, '--state-dir', stateDir],
  ]);
  const ended = new Set<string>();
  while (ended.size < 400) {
    const [line = ''] = await limited.take(1);
    const said = JSON.parse(line) as { event: string; name: string };
    if (said.event === 'stopped') ended.add(said.name);
  }
  limited.child.kill();
  expect(await limited.ended).toBe(0);
});

test('a state directory that others can write to is refused', async () => {
  mkdirSync(daemon.stateDir);
  chmodSync(daemon.stateDir, 0o777);
  await expect(daemon.start()).rejects.toThrow(/writable by users other than its owner/);
});

test('a daemon that is closed while it starts reports nothing more', async () => {
  const { controlDir, stateDir } = daemon;
  await daemon.start();
  await daemon.end();
  await setTimeout(1100);
  const seconds = Math.floor(Date.now() / 1000);
  const line = (event: string, data: object) =>
    JSON.stringify({ timestamp: { seconds, microseconds: 1 }, event, data });
  const log = [line('RESUME', {}), line('SHUTDOWN', { guest: true, reason: 'guest-shutdown' }), ''];
  for (let i = 0; i < 40; i++) {
    writeFileSync(join(controlDir, `vm${i}.events`), log.join('\n'), { mode: 0o600 });
  }
  for (let round = 0; round < 10; round++) {
    const one = new VmDaemon({ controlDir, stateDir });
    let isClosed = false;
    const late: string[] = [];
    one.on('stopped', ({ id }) => {
      if (isClosed) late.push(id);
    });
    const starting = one.start().catch(() => undefined);
    await setTimeout(round * 10);
    await one.close();
    isClosed = true;
    await arrives('the daemon to start or close', starting);
    await setTimeout(50);
    expect(late).toEqual([]);
  }
});

test('SIGTERM ends a daemon while it starts, also with a systemd watchdog', async () => {
  for (let round = 0; round < 5; round++) {
    const directories = ['--control-dir', daemon.controlDir, '--state-dir', daemon.stateDir];
    const child = spawn(process.execPath, ['dist/cli/main.js', 'vm', 'daemon', ...directories], {
      env: { ...process.env, WATCHDOG_USEC: '30000000' },
    });
    await setTimeout(80 + round * 15);
    child.kill('SIGTERM');
    const code = await endOf(child);
    // Until the daemon handles the signal, SIGTERM kills it.
    expect([0, null]).toContain(code);
  }
}, 20_000);

itWithQemu(
  'a hook that hangs does not prevent the daemon’s end',
  async () => {
    const path = join(daemon.folder, 'hooked');
    const hook = `exec > /dev/null 2>&1; touch ${path}; while test -e ${path} -a ! -e ${path}.go; do sleep 0.1; done`;
    await daemon.start(['--hook', hook]);
    const vm = await daemon.vm('web');
    await daemon.found(vm);
    vm.child.kill('SIGKILL');
    await until(`the hook to make ${path}`, () => existsSync(path));
    expect(await daemon.end()).toBe(0);
    writeFileSync(`${path}.go`, '');
  },
  20_000,
);

test('a pidfile that is older than its process stops nothing', async () => {
  const stranger = await mortal();
  const pidfile = join(daemon.folder, 'stale.pid');
  writeFileSync(pidfile, String(stranger.pid));
  await endOf(spawn('touch', ['-d', '1 hour ago', pidfile]));
  const vm = new VmControl({ process: { pidfile, executable: 'mortal' } });
  expect(await vm.state()).toMatchObject({ state: 'unknown' });
  for (const act of [vm.stop(), vm.kill()]) {
    await expect(act).rejects.toMatchObject({ code: 'ERR_EXITWATCH_NOT_VERIFIED' });
  }
  expect(await release(stranger)).toBe(0);
});

test('the commands exit as their help says', async () => {
  const directories = ['--control-dir', daemon.controlDir, '--state-dir', daemon.stateDir];
  expect(await call('vm', 'daemon', ...directories, '--source', 'bogus')).toMatchObject({
    code: 2,
  });
  const missing = ['--state-dir', join(daemon.folder, 'nothing')];
  expect(await call('vm', 'status', ...missing)).toMatchObject({ code: 125 });
  expect(await call('vm', 'status', 'web', ...missing)).toMatchObject({ code: 125 });
});
