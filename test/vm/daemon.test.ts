// Lane: patient

import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { identify } from '../../src';
import { stop, writePidfile } from '../../src/process';
import { readShutdownMarker, readVmRecord, VmDaemon, VmMonitor } from '../../src/vm';

import { call, exitwatch } from '../support/command';
import { TestDaemon } from '../support/daemon';
import { dead, endOf } from '../support/ends';
import { mortal, release } from '../support/mortal';
import { LineProcess, REPOSITORY, run } from '../support/programs';
import { itWithQemu, itWithQemuAsRoot, TestVm } from '../support/qemu';
import { until } from '../support/wait';

let daemon: TestDaemon;

beforeEach(() => {
  daemon = new TestDaemon();
});

afterEach(() => daemon.remove());

function identityOf(vm: TestVm) {
  const identity = identify(vm.pid);
  if (identity === null) throw new Error('it ended');
  return identity;
}

const removed = (file: string) => until(`${file} to be removed`, () => !existsSync(file));

const marker = (name: string) => join(daemon.stateDir, `${name}.shutdown`);

itWithQemuAsRoot('only a shutdown by the user is marked', async () => {
  await daemon.start();
  const [users, strangers, ours, killed] = await Promise.all([
    daemon.vm('users'),
    daemon.vm('strangers'),
    daemon.vm('ours'),
    daemon.vm('killed'),
  ]);
  const identity = identityOf(users);
  await Promise.all([users, strangers, ours, killed].map((vm) => daemon.found(vm)));
  expect(await daemon.record('users')).toMatchObject({ state: 'running', identity });
  await users.press('p');
  strangers.child.kill('SIGTERM');
  killed.child.kill('SIGKILL');
  await stop(identityOf(ours), { intentLog: daemon.intentLog, reason: 'a test' });
  expect(await daemon.stopped(users)).toMatchObject({
    cause: 'guest-shutdown',
    userShutdown: true,
  });
  expect(await daemon.stopped(strangers)).toMatchObject({
    cause: 'forced-stop',
    initiator: 'host',
    userShutdown: false,
    certainty: 'sure',
  });
  expect(await daemon.stopped(ours)).toMatchObject({
    cause: 'forced-stop',
    initiator: 'manager',
    userShutdown: false,
  });
  expect(await daemon.stopped(killed)).toMatchObject({ cause: 'killed', userShutdown: false });
  expect(
    ['users', 'strangers', 'ours', 'killed'].filter((name) => existsSync(marker(name))),
  ).toEqual(['users']);
  expect(await daemon.record('users')).toMatchObject({
    state: 'stopped',
    lastStopped: identity,
    lastStop: { cause: 'guest-shutdown', exit: { exitCode: 0 } },
  });
  expect(await readShutdownMarker(daemon.stateDir, 'users', identity)).toMatchObject({
    event: 'shutdown',
    identity,
    cause: 'guest-shutdown',
  });
  expect(statSync(marker('users')).mode & 0o777).toBe(0o600);
});

itWithQemu('a lost event log causes a warning, and one that never existed does not', async () => {
  await daemon.start();
  const path = (suffix: string) => join(daemon.controlDir, `plain.${suffix}`);
  const plain = await daemon.vm('plain', {
    manager: () => ['-pidfile', path('pid'), '-qmp', `unix:${path('qmp')},server=on,wait=off`],
  });
  const losing = await daemon.vm('losing');
  await Promise.all([daemon.found(plain), daemon.found(losing)]);
  await daemon.recorded('losing', ({ eventLog }) => eventLog !== null);
  await setTimeout(500); // the daemon reads the log as soon as it finds it
  rmSync(losing.eventLog);
  await Promise.all([plain.press('p'), losing.press('p')]);
  // Heard over QMP.
  const { candidates } = await daemon.stopped(plain);
  expect(candidates).toContain('guest-shutdown');
  expect(candidates).not.toContain('forced-stop'); // the cause if nobody had heard an event
  await daemon.stopped(losing);
  const warnings = daemon.said.filter(({ event }) => event === 'warning');
  expect(warnings).toMatchObject([
    { name: 'losing', message: `${JSON.stringify(losing.eventLog)} no longer exists` },
  ]);
});

itWithQemu('a machine that runs before the daemon starts is found like a new one', async () => {
  const vm = await daemon.vm('early');
  await daemon.start();
  expect(await daemon.found(vm)).toMatchObject({ name: 'early' });
  expect(daemon.said.find(({ event }) => event === 'ready')).toMatchObject({ watched: 1 });
  await vm.press('p');
  expect(await daemon.stopped(vm)).toMatchObject({ userShutdown: true });
});

itWithQemuAsRoot(
  'a new start under the same name inherits only the history of the previous one',
  async () => {
    await daemon.start();
    const first = await daemon.vm('web');
    const before = identityOf(first);
    await daemon.found(first);
    await first.press('p');
    await daemon.stopped(first);
    const second = await daemon.vm('web');
    const after = identityOf(second);
    await daemon.found(second);
    expect(existsSync(marker('web'))).toBe(false);
    expect(await daemon.record('web')).toMatchObject({
      state: 'running',
      identity: after,
      lastStopped: before,
      lastStop: { cause: 'guest-shutdown' },
    });
    // Names another process than the one in question.
    writeFileSync(
      marker('web'),
      JSON.stringify({
        event: 'shutdown',
        name: 'web',
        identity: before,
        at: new Date(),
        host: null,
      }),
      { mode: 0o600 },
    );
    expect(await readShutdownMarker(daemon.stateDir, 'web', after)).toBeNull();
    second.child.kill('SIGKILL');
    expect(await daemon.stopped(second)).toMatchObject({ cause: 'killed' });
    expect(existsSync(marker('web'))).toBe(false);
  },
);

itWithQemu(
  'a daemon that is late does not interfere with a manager that stops a machine and clears the mark',
  async () => {
    await daemon.start();
    const vm = await daemon.vm('late');
    await daemon.found(vm);
    await daemon.freeze();
    await stop(identityOf(vm), { intentLog: daemon.intentLog });
    rmSync(marker('late'), { force: true });
    daemon.thaw();
    expect(await daemon.stopped(vm)).toMatchObject({ initiator: 'manager', userShutdown: false });
    expect(existsSync(marker('late'))).toBe(false);
  },
);

itWithQemu('ends without a daemon are reported after its start, once each', async () => {
  await daemon.start();
  const users = await daemon.vm('users');
  const ours = await daemon.vm('ours');
  const stays = await daemon.vm('stays');
  await Promise.all([users, ours, stays].map((vm) => daemon.found(vm)));
  await daemon.end('SIGKILL');
  await users.press('p');
  await stop(identityOf(ours), { intentLog: daemon.intentLog });
  await removed(users.pidfile);
  // Two ends that nobody sees.
  const unseen = await daemon.vm('unseen');
  await unseen.press('p');
  await removed(unseen.pidfile);
  const again = await daemon.vm('unseen');
  again.child.kill('SIGTERM');
  await removed(again.pidfile);
  const killed = await daemon.vm('alone');
  const before = identityOf(killed);
  killed.child.kill('SIGKILL');
  await endOf(killed.child);
  const alone = await daemon.vm('alone');
  const identity = identityOf(alone);
  await alone.press('p');
  await removed(alone.pidfile);
  await daemon.start();
  expect(await daemon.stopped(users)).toMatchObject({ userShutdown: true, certainty: 'sure' });
  expect(await daemon.stopped(ours)).toMatchObject({ initiator: 'manager', userShutdown: false });
  await daemon.until(({ event, name, cause }) => {
    return event === 'stopped' && name === 'unseen' && cause === 'forced-stop';
  });
  const told = daemon.said.filter(({ event, name }) => event === 'stopped' && name === 'unseen');
  expect(told).toMatchObject([
    { cause: 'guest-shutdown', userShutdown: true, identity: null, exit: null },
    // An intent names a process, so it cannot show whether this was the manager.
    { cause: 'forced-stop', userShutdown: false, initiator: 'unknown' },
  ]);
  expect(existsSync(marker('users'))).toBe(true);
  expect(existsSync(marker('unseen'))).toBe(false);
  // Whoever started the machine can ask about that start, although its process was never
  // identified.
  await daemon.until(
    ({ event, name, cause }) =>
      event === 'stopped' && name === 'alone' && cause === 'guest-shutdown',
  );
  const startedAt = new Date(alone.startedAt);
  for (const run of [identity, { startedAt }]) {
    expect(await readShutdownMarker(daemon.stateDir, 'alone', run)).toMatchObject({
      ...{ name: 'alone', identity: null, cause: 'guest-shutdown' },
    });
  }
  for (const run of [before, { startedAt: new Date(killed.startedAt) }]) {
    expect(await readShutdownMarker(daemon.stateDir, 'alone', run)).toBeNull();
  }
  // It is not reported again.
  const count = daemon.count('stopped');
  await daemon.end();
  await daemon.start();
  stays.child.kill('SIGKILL');
  await daemon.stopped(stays);
  expect(daemon.count('stopped')).toBe(count + 1);
});

itWithQemu(
  'the verdict on an unseen start whose pidfile identifies its process uses all of exitwatch’s intents',
  async () => {
    await daemon.start();
    await daemon.end();
    const vm = await daemon.vm('named');
    const identity = identityOf(vm);
    await stop(identity, { intentLog: daemon.intentLog });
    // Written by its manager, because QEMU would remove its own file.
    await writePidfile(vm.pidfile, identity);
    await daemon.start();
    expect(await daemon.stopped(vm)).toMatchObject({
      cause: 'forced-stop',
      initiator: 'manager',
      identity,
    });
  },
);

itWithQemuAsRoot(
  'a machine that is enabled while it runs is watched from then on, and no other machine is',
  async () => {
    await daemon.start();
    const elsewhere = new TestVm({});
    await elsewhere.booted();
    mkdirSync(join(daemon.controlDir, 'not-a-machine'));
    writeFileSync(join(daemon.controlDir, 'README'), '');
    await setTimeout(300);
    expect(daemon.said.filter(({ event }) => event === 'found' || event === 'warning')).toEqual([]);
    await writePidfile(join(daemon.controlDir, 'enabled.pid'), elsewhere.pid);
    await daemon.found(elsewhere);
    elsewhere.child.kill('SIGTERM');
    // Without an event log and a QMP client, only the signal trace knows of the signal.
    expect(await daemon.stopped(elsewhere)).toMatchObject({ name: 'enabled', initiator: 'host' });
    elsewhere.remove();
  },
);

itWithQemuAsRoot('machines that a host ends while it shuts down form one group', async () => {
  await daemon.start();
  const vms = await Promise.all(['a', 'b', 'c'].map((name) => daemon.vm(name)));
  const alone = await daemon.vm('alone');
  await Promise.all([...vms, alone].map((vm) => daemon.found(vm)));
  await alone.press('p');
  await run('sh', ['-c', `for pid in ${vms.map(({ pid }) => pid).join(' ')}; do kill $pid; done`]);
  const ends = await Promise.all(vms.map((vm) => daemon.stopped(vm)));
  expect(new Set(ends.map(({ group }) => group)).size).toBe(1);
  expect(ends.map(({ id }) => id)).toContain(ends[0]?.group);
  expect(
    ends.every(({ initiator, userShutdown }) => initiator === 'host' && userShutdown === false),
  ).toBe(true);
  expect((await daemon.stopped(alone)).group).toBeNull();
});

itWithQemu('stopping a machine whose user was first succeeds, and the result says so', async () => {
  const vm = await daemon.vm('mine');
  await using monitor = new VmMonitor({ intentLog: join(daemon.folder, 'intents') });
  await monitor.start();
  const { eventLog, pidfile } = vm;
  const watch = monitor.watch({ name: 'mine', pid: vm.pid, eventLog, pidfile });
  await vm.press('p');
  await dead(vm.pid);
  expect(await watch.stop()).toMatchObject({ cause: 'guest-shutdown', userShutdown: true });
  expect(existsSync(pidfile)).toBe(false);
});

itWithQemu('the hook gets every detail of an end, and its failure is a warning', async () => {
  const told = join(daemon.folder, 'told');
  await daemon.start(['--hook', `env > ${told}.env; cat > ${told}.json; exit 3`]);
  const vm = await daemon.vm('hooked');
  const { id } = identityOf(vm);
  await daemon.found(vm);
  await vm.press('p');
  expect(await daemon.until(({ event }) => event === 'warning')).toMatchObject({
    code: 'ERR_EXITWATCH_HOOK',
    message: expect.stringMatching(/exited with 3/) as unknown,
  });
  const env = readFileSync(`${told}.env`, 'utf8').split('\n');
  expect(env).toEqual(
    expect.arrayContaining([
      `EXITWATCH_ID=${id}`,
      'EXITWATCH_NAME=hooked',
      `EXITWATCH_PID=${vm.pid}`,
      'EXITWATCH_CAUSE=guest-shutdown',
      'EXITWATCH_USER_SHUTDOWN=true',
      'EXITWATCH_INITIATOR=guest',
      'EXITWATCH_CERTAINTY=sure',
      'EXITWATCH_EXIT_CODE=0',
      'EXITWATCH_SIGNAL=',
      'EXITWATCH_REPEATED=false',
    ]),
  );
  expect(JSON.parse(readFileSync(`${told}.json`, 'utf8'))).toMatchObject({
    event: 'stopped',
    id,
    cause: 'guest-shutdown',
    exit: { how: 'exited', exitCode: 0 },
  });
});

itWithQemu(
  'a hook whose end the daemon did not see runs again, and is told that it is a repeat',
  async () => {
    const told = join(daemon.folder, 'told');
    const command = [
      'exec > /dev/null 2>&1', // it outlives the daemon's stderr
      `echo $EXITWATCH_NAME $EXITWATCH_REPEATED >> ${told}`,
      `while test -e ${told} -a ! -e ${told}.go; do sleep 0.05; done`,
    ];
    const hook = ['--hook', command.join('; ')];
    await daemon.start(hook);
    const vm = await daemon.vm('hooked');
    await daemon.found(vm);
    vm.child.kill('SIGKILL');
    await until(`the hook to make ${told}`, () => existsSync(told));
    await daemon.end('SIGKILL');
    writeFileSync(`${told}.go`, '');
    await daemon.start(hook);
    await daemon.recorded('hooked', ({ undelivered }) => undelivered.length === 0);
    expect(readFileSync(told, 'utf8')).toBe('hooked false\nhooked true\n');
    await daemon.end();
    await daemon.start(hook);
    // Any further report would have come before this one.
    const last = await daemon.vm('last');
    await daemon.found(last);
    last.child.kill('SIGKILL');
    await daemon.recorded(
      'last',
      ({ state, undelivered }) => state === 'stopped' && undelivered.length === 0,
    );
    expect(readFileSync(told, 'utf8')).toBe('hooked false\nhooked true\nlast false\n');
  },
);

describe('exitwatch’s own stop of a machine is never taken for a stranger’s, even if its intent log was', () => {
  const stopWhile = async (away: () => void) => {
    await daemon.start();
    const vm = await daemon.vm('ours');
    await daemon.found(vm);
    await daemon.freeze();
    await stop(identityOf(vm), { intentLog: daemon.intentLog });
    away();
    await stop(identityOf(await daemon.vm('other')), { intentLog: daemon.intentLog });
    daemon.thaw();
    return daemon.stopped(vm);
  };

  itWithQemuAsRoot('rotated meanwhile', async () => {
    const end = await stopWhile(() => {
      renameSync(daemon.intentLog, `${daemon.intentLog}.1`);
    });
    expect(end).toMatchObject({ cause: 'forced-stop', initiator: 'manager' });
  });

  itWithQemuAsRoot('removed meanwhile', async () => {
    const end = await stopWhile(() => {
      rmSync(daemon.intentLog);
    });
    expect(end).toMatchObject({ cause: 'forced-stop', initiator: 'unknown' });
    expect(daemon.said).toContainEqual(
      expect.objectContaining({ event: 'warning', code: 'ERR_EXITWATCH_INTENT_LOG' }),
    );
  });
});

describe('an end after which the machine was started again never says to start it', () => {
  const told = () => join(daemon.folder, 'told');
  /** Those that are whole: the shell makes the file before it writes. */
  const lines = () =>
    existsSync(told()) ? readFileSync(told(), 'utf8').split('\n').slice(0, -1) : [];
  const hook = (...more: string[]) => {
    const fields = '$EXITWATCH_RESTART $EXITWATCH_SUPERSEDED';
    const command = ['exec > /dev/null 2>&1', `echo ${fields} >> ${told()}`, ...more];
    return ['--hook', command.join('; ')];
  };
  const start = async (args: string[]) => {
    await daemon.start(args);
    const vm = await daemon.vm('web');
    await daemon.found(vm);
    return vm;
  };
  const kill = async (vm: TestVm) => {
    vm.child.kill('SIGKILL');
    await endOf(vm.child);
  };

  itWithQemuAsRoot('by somebody while the daemon was down, and its user shut it down', async () => {
    const first = await start(hook());
    await daemon.end('SIGKILL');
    await kill(first);
    const second = await daemon.vm('web');
    await second.press('p');
    await removed(second.pidfile);
    await daemon.start(hook());
    await until('both ends to be delivered', () => lines().length >= 2);
    expect(lines()).toEqual(['false true', 'false false']);
    expect(await daemon.stopped(first)).toMatchObject({ isSuperseded: true });
  });

  itWithQemuAsRoot('by somebody while the daemon was down, and it runs', async () => {
    const first = await start(hook());
    await daemon.end('SIGKILL');
    await kill(first);
    const second = await daemon.vm('web');
    await daemon.start(hook());
    await until('the end to be delivered', () => lines().length > 0);
    expect(lines()).toEqual(['false true']);
    await daemon.found(second);
    second.child.kill('SIGKILL');
    await until('the next end to be delivered', () => lines().length > 1);
    expect(lines()[1]).toBe('true false');
  });

  itWithQemuAsRoot('by a hook that the daemon did not see finish', async () => {
    const waits = `while test -e ${told()} -a ! -e ${told()}.go; do sleep 0.05; done`;
    const first = await start(hook(waits));
    await kill(first);
    await until('the hook to run', () => lines().length > 0);
    expect(lines()).toEqual(['true false']);
    await daemon.end('SIGKILL');
    writeFileSync(`${told()}.go`, '');
    const second = await daemon.vm('web');
    await second.press('p');
    await removed(second.pidfile);
    await daemon.start(hook());
    await until('both ends to be delivered', () => lines().length >= 3);
    expect(lines().slice(1)).toEqual(['false true', 'false false']);
  });

  itWithQemuAsRoot('while it waited for the hook of an earlier end', async () => {
    const waits = `while test -e ${told()} -a ! -e ${told()}.go; do sleep 0.05; done`;
    const first = await start(hook(waits));
    await kill(first);
    await until('the hook to run', () => lines().length > 0);
    const second = await daemon.vm('web');
    await daemon.found(second);
    await kill(second);
    expect(await daemon.stopped(second)).toMatchObject({ isSuperseded: false });
    await daemon.found(await daemon.vm('web'));
    writeFileSync(`${told()}.go`, '');
    await until('the next end to be delivered', () => lines().length > 1);
    expect(lines()).toEqual(['true false', 'false true']);
  });
});

itWithQemu(
  'the state of another host, found in a copied directory, does not affect this host',
  async () => {
    await daemon.start();
    const vm = await daemon.vm('moved');
    await daemon.found(vm);
    await vm.press('p');
    await daemon.stopped(vm);
    await daemon.recorded('moved', ({ undelivered }) => undelivered.length === 0);
    for (const file of ['moved.json', 'moved.shutdown']) {
      const path = join(daemon.stateDir, file);
      const content = JSON.parse(readFileSync(path, 'utf8')) as { host: string | null };
      expect(content.host).toMatch(/^[0-9a-f]{32}$|^null$/);
      writeFileSync(path, JSON.stringify({ ...content, host: 'f'.repeat(32) }), { mode: 0o600 });
    }
    const isNamed = existsSync('/etc/machine-id');
    expect((await readVmRecord(daemon.stateDir, 'moved')) === null).toBe(isNamed);
    expect((await readShutdownMarker(daemon.stateDir, 'moved')) === null).toBe(isNamed);
  },
);

test('a state directory has one daemon at a time, and is free as soon as that daemon is gone', async () => {
  await daemon.start();
  const args = ['--control-dir', daemon.controlDir, '--state-dir', daemon.stateDir];
  const second = await call('vm', 'daemon', ...args);
  expect(second).toMatchObject({ code: 125 });
  expect(second.stderr).toMatch(/another daemon uses/);
  await expect(
    new VmDaemon({ controlDir: daemon.controlDir, stateDir: daemon.stateDir }).start(),
  ).rejects.toMatchObject({ code: 'ERR_EXITWATCH_IN_USE' });
  await daemon.end('SIGKILL');
  await daemon.start();
  expect(await daemon.end()).toBe(0);
});

test.each(['notify', '@exitwatch-test-notify'])(
  'systemd is notified of readiness, liveness and the end, at %s',
  async (name) => {
    const path = name.startsWith('@') ? `${name}-${process.pid}` : join(daemon.folder, name);
    const systemd = new LineProcess('python3', [
      join(REPOSITORY, 'test', 'programs', 'notified.py'),
      path,
    ]);
    expect(await systemd.line()).toBe('bound');
    await daemon.start([], { NOTIFY_SOCKET: path, WATCHDOG_USEC: '20000' });
    expect(await systemd.line()).toBe('READY=1');
    expect(await systemd.line()).toBe('STATUS=watching 0 virtual machines');
    expect(await systemd.line()).toBe('WATCHDOG=1');
    const ending = daemon.end();
    const saysStopping = async () => (await systemd.line()) === 'STOPPING=1';
    await until('STOPPING=1', saysStopping, systemd.told);
    systemd.child.kill();
    await ending;
    expect(daemon.stderr).toBe('');
  },
);

itWithQemu('status shows what is known, including ends without a verdict so far', async () => {
  await daemon.start();
  const users = await daemon.vm('users');
  const runs = await daemon.vm('runs');
  const ends = await daemon.vm('ends');
  await Promise.all([users, runs, ends].map((vm) => daemon.found(vm)));
  await users.press('p');
  await daemon.stopped(users);
  await daemon.end();
  ends.child.kill('SIGKILL');
  await endOf(ends.child);
  const state = ['--state-dir', daemon.stateDir];
  const all = await call('vm', 'status', ...state, '--json');
  expect(all.lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { name: 'ends', state: 'ended', isMarked: false },
    { name: 'runs', state: 'running', isMarked: false },
    { name: 'users', state: 'stopped', isMarked: true, lastStop: { userShutdown: true } },
  ]);
  const one = await call('vm', 'status', 'users', ...state);
  expect(one).toMatchObject({ code: 0, stderr: '' });
  expect(one.lines.join('\n')).toMatch(/users: stopped .*, marked as its user's shutdown/);
  expect(one.lines.join('\n')).toMatch(/the guest powered itself off \(sure\)/);
  expect(await call('vm', 'status', 'nobody', ...state)).toMatchObject({ code: 127, lines: [] });
  expect(await call('vm', 'status', '../x', ...state)).toMatchObject({ code: 2, lines: [] });
  expect(await call('vm', 'status', '--state-dir', '/nowhere')).toMatchObject({ code: 125 });
});

function fail({ stderr }: LineProcess): never {
  throw new Error(`it has ended: ${stderr}`);
}

itWithQemuAsRoot(
  'vm watch prints the machines of a directory, or one machine, and writes nothing',
  async () => {
    const vm = await daemon.vm('seen');
    const other = await daemon.vm('other');
    const directory = ['--control-dir', daemon.controlDir];
    const watch = exitwatch('vm', 'watch', ...directory, '--count', '2', '--json');
    const files = ['--pidfile', other.pidfile, '--event-log', other.eventLog];
    const alone = exitwatch('vm', 'watch', ...files);
    const lines: string[] = [];
    while (lines.filter((line) => line.includes('"found"')).length < 2) {
      lines.push((await watch.line()) ?? fail(watch));
    }
    expect(await alone.line()).toMatch(/running as process/);
    await vm.press('p');
    other.child.kill('SIGTERM');
    lines.push(...(await watch.rest()));
    expect(await watch.ended).toBe(0);
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ event: 'found', name: 'seen' }),
        expect.objectContaining({ event: 'stopped', name: 'seen', userShutdown: true }),
        expect.objectContaining({ event: 'stopped', name: 'other', userShutdown: false }),
      ]),
    );
    const told = await alone.rest();
    expect(await alone.ended).toBe(0);
    expect(told.at(-1)).toMatch(/a signal told the hypervisor to exit: SIGTERM from/);
    expect(existsSync(daemon.stateDir)).toBe(false);
  },
);

test.each([
  [['vm', 'daemon'], /--control-dir DIR and --state-dir DIR/],
  [
    ['vm', 'daemon', '--control-dir', '', '--state-dir', '/tmp/x'],
    /--control-dir requires a value/,
  ],
  [
    ['vm', 'daemon', '--control-dir', '/x', '--state-dir', '/tmp/x', '--hook', ''],
    /--hook requires a value/,
  ],
  [['vm', 'status'], /--state-dir DIR/],
  [['vm', 'watch'], /one of --control-dir, --pid and --pidfile/],
  [['vm', 'watch', '--pid', 'x'], /--pid must be a positive integer/],
  [['vm', 'watch', '--control-dir', '/x', '--qmp', '/y'], /it contains these files/],
  [['vm', 'watch', '--pid', '1', '--count', '0'], /--count must be a positive integer/],
])('%j is wrong usage', async (args, reason) => {
  const { code, stderr } = await call(...args);
  expect(stderr).toMatch(reason);
  expect(code).toBe(2);
});

test('a machine that does not exist cannot be watched', async () => {
  const gone = await mortal();
  await release(gone);
  expect(await call('vm', 'watch', '--pid', String(gone.pid))).toMatchObject({ code: 127 });
  const pidfile = join(daemon.folder, 'none.pid');
  expect(await call('vm', 'watch', '--pidfile', pidfile)).toMatchObject({ code: 127 });
});
