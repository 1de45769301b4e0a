// Lane: storm

import { readdirSync, readFileSync } from 'node:fs';
import { once } from 'node:events';

import { ExitMonitor, type ExitEvent, type Gap, type Ready, type SignalEvent } from '../../src';

import { countOf, openObjects, remaining } from '../support/bpf-objects';
import { callWith } from '../support/command';
import { exitOf } from '../support/ends';
import { KERNEL, orLeftOpen } from '../support/kernel';
import { itAsRoot, itAsRootOfHost } from '../support/privilege';
import { LineProcess, program, REPOSITORY, run } from '../support/programs';
import { arrives, until } from '../support/wait';

const POWERLESS = [
  ...['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all'],
  ...['--bounding-set=-all', '--no-new-privs'],
];

/**
 * Starts a monitor in another process, which watches the pids on its stdin and prints its events.
 */
function startMonitor(options: object, before: readonly string[] = []): LineProcess {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor(${JSON.stringify(options)});
    const print = (event) => console.log(JSON.stringify(event));
    monitor.on('exit', print).on('gap', print);
    process.stdin.on('data', (chunk) => {
      for (const pid of String(chunk).trim().split(' ')) monitor.watch(Number(pid));
      console.log('null');
    });
    monitor.start().then(print, (error) => print({ code: error.code, message: error.message }));
  `;
  const command: string[] = [...before, process.execPath, '-e', script];
  return new LineProcess(command[0] ?? '', command.slice(1));
}

async function next<Told>(monitor: LineProcess): Promise<Told> {
  return JSON.parse((await monitor.line()) ?? '{"event":"end"}') as Told;
}

/** Starts a process that ends in this way when `end()` is called; see test/programs/fates.c. */
async function prepare(fate: string) {
  const fates = new LineProcess(program('fates'), [fate]);
  const [, pid] = ((await fates.line()) ?? '').split(' ');
  const end = async () => {
    fates.child.stdin.write('go\n');
    await fates.rest();
  };
  return { pid: Number(pid), parent: fates.pid, end };
}

itAsRoot(
  'signals that do not fit into the buffer become a counted gap, and nothing is claimed across it',
  async () => {
    const monitor = startMonitor({ trace: 'on' });
    await next<Ready>(monitor);
    const flood = await prepare('flood');
    monitor.child.stdin.write(String(flood.pid));
    await monitor.line();
    await monitor.stop();
    await flood.end();
    monitor.child.kill('SIGCONT');

    const gap = await next<Gap>(monitor);
    expect(gap).toMatchObject({ event: 'gap', reason: 'trace-buffer', recovered: 0 });
    // 512 KiB of records of 296 bytes each. In a v2 hierarchy the paths of a few cgroups take some of
    // it. The signal that the process did not send itself does not count.
    const taken = [0, 1, 2, 3, 4, 5].map((paths) => paths * 1944);
    const fitting = taken.map((bytes) => Math.floor((512 * 1024 - bytes) / 296));
    expect(fitting.map((fits) => 5000 - fits)).toContain(gap.lost);
    const exit = await next<ExitEvent>(monitor);
    expect(exit).toMatchObject({
      pid: flood.pid,
      exitCode: 0,
      traced: false,
      lossless: true,
      oom: null,
    });
    expect(exit.signalsReceived).toHaveLength(16);

    const later = await prepare('kill-segv');
    monitor.child.stdin.write(String(later.pid));
    await monitor.line();
    await later.end();
    expect(await next<ExitEvent>(monitor)).toMatchObject({ pid: later.pid, traced: true });
    monitor.child.kill();
    await monitor.ended;
  },
);

itAsRoot(
  'while there is a listener, signals of watched processes, and only those, are reported when they are sent',
  async () => {
    await using monitor = new ExitMonitor({ trace: 'on' });
    const told: SignalEvent[] = [];
    const listener = (event: SignalEvent) => told.push(event);
    await monitor.start();
    const other = await prepare('kill-segv');
    const first = await prepare('catches-and-exits');
    const second = await prepare('catches-and-exits');
    monitor.on('signal', listener);
    const watch = monitor.watch(first.pid);
    await other.end();
    const signalled = once(monitor, 'signal');
    await first.end();
    await arrives('a signal event', signalled);
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({
      event: 'signal',
      id: watch.identity.id,
      pid: first.pid,
      name: 'target',
      sender: { signal: 'SIGTERM', origin: 'kill', name: 'sender' },
    });
    const event = await exitOf(watch);
    expect(event.signalsReceived[0]).toEqual(told[0]?.sender);
    expect(JSON.parse(JSON.stringify(event))).toMatchObject({ pid: first.pid, sender: null });

    monitor.off('signal', listener);
    const catching = monitor.watch(second.pid);
    await second.end();
    expect((await exitOf(catching)).signalsReceived).toHaveLength(1);
    expect(told).toHaveLength(1);
  },
);

itAsRoot('a listener from before the start hears of a signal while its process lives', async () => {
  // The first monitor of a process also sees the signals of its own self-test.
  const first = new ExitMonitor({ trace: 'on' });
  await first.start();
  await first.close();
  // Nothing else wakes the reader.
  await using monitor = new ExitMonitor({ trace: 'on', canaryIntervalMs: 0 });
  const heard = once(monitor, 'signal');
  expect(await monitor.start()).toMatchObject({ traced: true });
  const script = 'trap : USR1; echo ready; until read line; do :; done';
  const target = new LineProcess('sh', ['-c', script]);
  expect(await target.line()).toBe('ready');
  const { identity } = monitor.watch(target.pid);
  target.child.kill('SIGUSR1');
  const [event] = (await arrives('a signal event', heard)) as [SignalEvent];
  expect(event).toMatchObject({ id: identity.id, sender: { signal: 'SIGUSR1' } });
  expect(target.child.exitCode).toBeNull();
  target.child.kill();
  await target.ended;
});

itAsRoot('later listeners still hear of signals after all listeners were removed', async () => {
  await using monitor = new ExitMonitor({ trace: 'on' });
  await monitor.start();
  monitor.removeAllListeners();
  const heard = once(monitor, 'signal');
  const target = await prepare('catches-and-exits');
  monitor.watch(target.pid);
  await target.end();
  await arrives('a signal event', heard);
});

itAsRoot('a million SIGCHLDs do not wake the reader', async () => {
  await using monitor = new ExitMonitor({ scope: 'watched', source: 'pidfd', trace: 'on' });
  await monitor.start();
  const { wakeups } = monitor.stats();
  await run(program('sigchld'), ['1000000']);
  expect(monitor.stats().wakeups).toBe(wakeups);
});

test('with trace off nothing is claimed about senders', async () => {
  await using monitor = new ExitMonitor({ trace: 'off' });
  expect(await monitor.start()).toMatchObject({ traced: false, traceDowngrade: null });
  const target = await prepare('kill-segv');
  const watch = monitor.watch(target.pid);
  await target.end();
  const event = await exitOf(watch);
  expect(event).toMatchObject(orLeftOpen(event, { signal: 'SIGSEGV' }));
  const { traced, sender, signalsReceived, oom } = event;
  expect({ traced, sender, signalsReceived, oom }).toEqual({
    traced: false,
    sender: null,
    signalsReceived: [],
    oom: null,
  });
});

itAsRoot('without capabilities everything else works, and the missing ones are named', async () => {
  const monitor = startMonitor({}, POWERLESS);
  const ready = await next<Ready>(monitor);
  expect(ready).toMatchObject({
    event: 'ready',
    traced: false,
    traceDowngrade: { code: 'no-capabilities' },
  });
  const target = await prepare('kill-segv');
  monitor.child.stdin.write(String(target.pid));
  await monitor.line();
  await target.end();
  const exit = await next<ExitEvent>(monitor);
  expect(exit).toMatchObject({ traced: false, sender: null, oom: null });
  expect(exit).toMatchObject(
    KERNEL.ordinaryListeners ? { signal: 'SIGSEGV' } : orLeftOpen(exit, { signal: 'SIGSEGV' }),
  );
  monitor.child.kill();

  const { lines, code } = await callWith(POWERLESS, 'doctor');
  expect(code).toBe(1);
  expect(lines.join('\n')).toMatch(/signals +DOES NOT WORK: .*\n.*CAP_BPF.*CAP_PERFMON/);

  const demanding = startMonitor({ trace: 'on' }, POWERLESS);
  expect(await next(demanding)).toMatchObject({ code: 'ERR_EXITWATCH_NO_TRACE' });
  demanding.child.kill(); // it waits for pids
  await demanding.ended;
});

itAsRoot('in another pid namespace there is no trace: its pids are not the kernel’s', async () => {
  const command = ['unshare', '-pf', '--mount-proc', '--kill-child'];
  const monitor = startMonitor({}, command);
  expect(await next<Ready>(monitor)).toMatchObject({
    source: 'pidfd',
    traced: false,
    traceDowngrade: { code: 'foreign-pid-namespace' },
  });
  monitor.child.kill('SIGKILL');
  await monitor.ended;
});

itAsRootOfHost('a monitor that was killed leaves nothing in the kernel', async () => {
  const monitor = startMonitor({ scope: 'all', trace: 'on' });
  await next<Ready>(monitor);
  const ours = openObjects(monitor.pid);
  expect(await remaining(ours)).toEqual(ours);
  const ofNotes = KERNEL.tellsPrograms ? 2 : 0;
  expect(countOf('program', ours)).toBe(4 + ofNotes);
  expect(countOf('link', ours)).toBe(3 + ofNotes);
  monitor.child.kill('SIGKILL');
  await monitor.ended;
  // The kernel's workers free maps and programs a moment later.
  await until('the BPF objects to be freed', async () => (await remaining(ours)).length === 0);
});

itAsRoot(
  '200 monitors, one after another, leave no descriptor and no locked memory behind',
  async () => {
    const count = () => readdirSync('/proc/self/fd').length;
    const locked = () =>
      /^VmLck:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    const others = new Set(openObjects(process.pid)); // of tests in this process before
    const ours = new Set<string>();
    const openAndClose = async () => {
      await using monitor = new ExitMonitor({ trace: 'on' });
      await monitor.start();
      for (const object of openObjects(process.pid)) if (!others.has(object)) ours.add(object);
    };
    await openAndClose();
    const before = { descriptors: count(), locked: locked() };
    for (let i = 0; i < 200; i++) await openAndClose();
    // Fewer, if pipes of an earlier test have closed meanwhile.
    expect(count()).toBeLessThanOrEqual(before.descriptors);
    expect(locked()).toBe(before.locked);
    let left: string[] = [];
    await until(
      'the BPF objects to be freed',
      async () => (left = await remaining([...ours])).length === 0,
      () => left.join('\n'),
    );
  },
  120_000,
);
