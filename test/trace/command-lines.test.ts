// Lane: patient

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ExitMonitor, type ExitEvent } from '../../src';

import { EventLog } from '../support/event-log';
import { KERNEL } from '../support/kernel';
import { itAsListener, itAsRootOfHost } from '../support/privilege';
import { LineProcess, program, REPOSITORY } from '../support/programs';
import { roomForProcesses } from '../support/room';

/** MAX_ARG_STRLEN of Linux, less the NUL. */
const LONGEST = 128 * 1024 - 1;
/** What events have at most. */
const MOST_BYTES = 4096 - 32;
const PATTERN = 'abcdefghijklmnopqrstuvwxyz0123456789';
const IS_LONG =
  process.env['EXITWATCH_ROUNDS'] !== undefined && process.env['EXITWATCH_EMULATED'] === undefined;
const COUNT = IS_LONG ? 10_000 : 400;

async function watching(run: (log: EventLog, monitor: ExitMonitor) => Promise<void>) {
  await using monitor = new ExitMonitor({ scope: 'all', commandLines: true });
  const log = new EventLog(monitor);
  await monitor.start();
  await run(log, monitor);
}

const exitOf = async (log: EventLog, pid: number, isOurs: (event: ExitEvent) => boolean) => {
  await log.until(`the exit of ${pid}`, () => log.of(pid).some(isOurs));
  return log.of(pid).find(isOurs);
};

const textOf = ({ commandLine }: ExitEvent) => (commandLine ?? []).join('\0');

itAsRootOfHost(
  `arguments of every length up to 128 KiB are told, and nothing of the environment (${COUNT} execs)`,
  async () => {
    if (!KERNEL.tellsPrograms) return;
    await watching(async (log) => {
      const runner = new LineProcess(program('argued'), [String(LONGEST), String(COUNT)]);
      const rows = (await runner.rest()).map((line) => line.split(' ').map(Number));
      expect(rows).toHaveLength(COUNT);
      const isChild = ({ parentPid }: ExitEvent) => parentPid === runner.pid;
      for (const [pid = 0, length = NaN] of rows) {
        const event = await exitOf(log, pid, isChild);
        const expected = PATTERN.repeat(Math.ceil(length / PATTERN.length)).slice(0, length);
        const whole = length === 0 ? 'quit' : `quit\0${expected}`;
        const isCut = length + 'quit\0\0'.length > MOST_BYTES;
        const shown = isCut ? `${whole.slice(0, MOST_BYTES)}…` : whole;
        expect([length, event && textOf(event) === shown]).toEqual([length, true]);
      }
      const told = [...log.exits.values()].flat().map(textOf);
      expect(told.filter((text) => text.includes('ENVIRONMENT'))).toEqual([]);
    });
  },
  300_000,
);

itAsRootOfHost('a process that dies within its exec shows nothing of its environment', async () => {
  if (!KERNEL.tellsPrograms) return;
  await watching(async (log) => {
    const env = { PATH: process.env['PATH'], BIG: 'ENVIRONMENT'.repeat(1000) };
    // Less than the program needs: it is killed amid the exec.
    const deaths = [];
    for (let kib = 100; kib <= 1000; kib += 50) {
      const child = new LineProcess('sh', ['-c', `ulimit -v ${kib}; exec sleep 0`], { env });
      await child.rest();
      const event = await exitOf(log, child.pid, () => true);
      expect([kib, event && textOf(event).includes('ENVIRONMENT')]).toEqual([kib, false]);
      deaths.push(event?.signal);
    }
    // Others fail before the exec, or after it: in the dynamic loader.
    expect(deaths.filter((signal) => signal != null)).not.toEqual([]);
  });
});

itAsRootOfHost('a title that a program wrote over its arguments ends where they end', async () => {
  if (!KERNEL.tellsPrograms) return;
  await watching(async (log) => {
    const args = ['title', 'server: idle', 'x'.repeat(100)];
    const server = new LineProcess(program('argued'), args);
    const bytes = Number(await server.line());
    const event = await exitOf(log, server.pid, ({ program: name }) => name === 'argued');
    expect(event?.commandLine).toEqual(['server: idle'.padEnd(bytes, '.')]);
  });
});

itAsRootOfHost('arguments are known even if the name of the program is too long', async () => {
  if (!KERNEL.tellsPrograms) return;
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-names-'));
  const path = join(folder, 'x'.repeat(63));
  copyFileSync('/bin/true', path);
  try {
    await watching(async (log) => {
      const child = new LineProcess(path, ['one']);
      await child.ended;
      const event = await exitOf(log, child.pid, () => true);
      expect(event).toMatchObject({ program: null, commandLine: [path, 'one'] });
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

itAsRootOfHost('a thread that calls exec gives the process new arguments', async () => {
  if (!KERNEL.tellsPrograms) return;
  await watching(async (log) => {
    const { pid } = new LineProcess(program('argued'), ['thread', 'one', '', 'two', '']);
    const event = await exitOf(log, pid, () => true);
    expect(event?.commandLine).toEqual(['true', 'one', '', 'two']);
  });
});

itAsRootOfHost('a sender has the arguments that it had when it sent the signal', async () => {
  await watching(async (log, monitor) => {
    const victim = new LineProcess('sleep', ['1000']);
    const watch = monitor.watch(victim.pid);
    const script = `kill ${victim.pid}; exec true other arguments`;
    const sender = new LineProcess('sh', ['-c', script, 'deploy.sh']);
    const { sender: told, commandLine } = await watch.exited;
    expect(told).toMatchObject({
      pid: sender.pid,
      commandLine: ['sh', '-c', script, 'deploy.sh'],
    });
    if (KERNEL.tellsPrograms) expect(commandLine).toEqual(['sleep', '1000']);
    const own = await exitOf(
      log,
      sender.pid,
      ({ parentPid }) => parentPid === process.pid || parentPid === null,
    );
    if (KERNEL.tellsPrograms) expect(own?.commandLine).toEqual(['true', 'other', 'arguments']);
  });
});

itAsRootOfHost(
  'arguments that did not fit are not those of an earlier signal',
  async () => {
    // How many signals leave room for another one, but not for its arguments, depends on how many of
    // them their receiver, which is as busy as the machine, has handled before the next came.
    for (let signals = 120; ;) {
      const { told, sender, commandLine } = await killedBehind(signals);
      if (!told.traced) {
        // Not even the signal fitted.
        expect(told).toEqual({ traced: false });
        signals -= 5;
      } else if (told.line === null) {
        expect(told).toEqual({ traced: true, pid: sender, line: null });
        return;
      } else {
        expect(told.pid).toBe(sender);
        expect(told.line?.slice(0, commandLine.length)).toEqual(commandLine);
        signals += 3;
      }
    }
  },
  180_000,
);

/** A process is killed while the trace's buffer is nearly full of signals that another one has handled. */
async function killedBehind(signals: number) {
  const watcher = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const [harmed, victim] = process.argv.slice(1).map(Number);
    const monitor = new ExitMonitor({ commandLines: true });
    monitor.start().then(async () => {
      void monitor.watch(harmed).exited;
      const watch = monitor.watch(victim);
      console.log('watching');
      const { traced, sender } = await watch.exited;
      console.log(JSON.stringify({ traced, pid: sender?.pid, line: sender?.commandLine }));
      await monitor.close();
    });`;
  // Signals that a process catches are traced too, and each comes with its sender's arguments:
  // together they fill the trace's buffer while nobody reads it.
  const last = 'kill -9 $2';
  const script = `
    i=0; while [ $i -lt ${signals} ]; do kill -TERM $1; sleep 0.01; i=$((i + 1)); done
    exec sh -c '${last}' second $1 $2 ${'x'.repeat(5_000)}`;
  const harmed = new LineProcess(process.execPath, [
    '-e',
    "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('ready')",
  ]);
  expect(await harmed.line()).toBe('ready');
  const victim = new LineProcess('sleep', ['1000']);
  const watching = [String(harmed.pid), String(victim.pid)];
  const reader = new LineProcess(process.execPath, ['-e', watcher, ...watching]);
  expect(await reader.line()).toBe('watching');
  await reader.stop();
  const sender = new LineProcess('sh', ['-c', script, 'first', ...watching]);
  await sender.rest();
  await victim.rest();
  reader.child.kill('SIGCONT');
  const told = JSON.parse((await reader.line()) ?? 'null') as {
    traced: boolean;
    pid?: number;
    line?: string[] | null;
  };
  await reader.ended;
  harmed.child.kill('SIGKILL');
  return { told, sender: sender.pid, commandLine: ['sh', '-c', last, 'second', ...watching] };
}

itAsRootOfHost('the arguments of a sender take no place from its many signals', async () => {
  // The arguments of some thirty signals have room: all of them must not.
  const count = Math.max(50, roomForProcesses(400));
  const script = `i=0; while [ $i -lt ${count} ]; do sleep 1000 & echo $!; i=$((i + 1)); done; wait`;
  const group = new LineProcess('setsid', ['sh', '-c', script]);
  const pids = [];
  while (pids.length < count) pids.push((await group.line()) ?? '');
  const watcher = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const pids = new Set(process.argv.slice(1).map(Number));
    const monitor = new ExitMonitor({ scope: 'all', commandLines: true });
    monitor.on('exit', ({ pid, traced, sender }) => {
      if (!pids.delete(pid)) return;
      console.log(JSON.stringify([traced, sender?.pid, sender?.commandLine?.[0]]));
      if (pids.size === 0) void monitor.close();
    });
    monitor.start().then(() => console.log('watching'));`;
  const reader = new LineProcess(process.execPath, ['-e', watcher, ...pids]);
  expect(await reader.line()).toBe('watching');
  // So that nothing is read until all are sent, by one system call.
  await reader.stop();
  const kill = `kill -TERM -${group.pid}; :`;
  const sender = new LineProcess('sh', ['-c', kill, 'sender', 'x'.repeat(5000)]);
  await Promise.all([sender.ended, group.ended]);
  reader.child.kill('SIGCONT');
  const told = (await reader.rest()).map((line) => JSON.parse(line) as unknown[]);
  expect(told).toHaveLength(count);
  expect(told.filter(([traced, pid]) => traced !== true || pid !== sender.pid)).toEqual([]);
  // Where there was room.
  expect(new Set(told.map(([, , called]) => called ?? null))).toEqual(new Set(['sh', null]));
});

itAsRootOfHost.each([0, 10_000])(
  'the arguments of processes take no place from their ends, if these may wait for %i ms',
  async (maxDelayMs) => {
    if (!KERNEL.tellsPrograms) return;
    const count = 400;
    const watcher = `
      const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
      const receiveBufferBytes = 4 * 1024 * 1024; // a quarter of it is the ring's
      const options = { receiveBufferBytes, maxDelayMs: ${maxDelayMs}, commandLines: true };
      const monitor = new ExitMonitor({ scope: 'all', ...options });
      monitor.on('gap', ({ reason }) => console.log(JSON.stringify([reason])));
      monitor.on('exit', ({ parentPid, commandLine }) => {
        console.log(JSON.stringify([parentPid, commandLine?.[0] ?? null]));
      });
      monitor.start().then(() => console.log('watching'));`;
    const reader = new LineProcess(process.execPath, ['-e', watcher]);
    while ((await reader.line()) !== 'watching'); // strangers may end before
    await reader.stop();
    const runner = new LineProcess(program('argued'), ['20000', String(count)]);
    await runner.rest();
    reader.child.kill('SIGCONT');
    const called = new Set<unknown>();
    for (let ends = 0; ends < count;) {
      const [parent, name] = JSON.parse((await reader.line()) ?? '[]') as [unknown, unknown];
      expect(parent).not.toBe('receive-buffer');
      if (parent !== runner.pid) continue;
      called.add(name);
      ends++;
    }
    expect(called).toEqual(new Set(['quit', null])); // where there was room
    reader.child.kill();
  },
);

itAsListener('nobody has arguments unless they are asked for', async () => {
  await using monitor = new ExitMonitor();
  await monitor.start();
  const victim = new LineProcess('sleep', ['1000']);
  const watch = monitor.watch(victim.pid);
  victim.child.kill();
  const { sender, commandLine } = await watch.exited;
  expect([commandLine, sender?.commandLine ?? null]).toEqual([null, null]);
});

itAsRootOfHost('a redaction that fails shows nothing, and the failure is told', async () => {
  if (!KERNEL.tellsPrograms) return;
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const commandLines = () => { throw new Error('my redaction failed'); };
    const monitor = new ExitMonitor({ commandLines });
    process.on('uncaughtException', (error) => console.log(error.message));
    monitor.start().then(async () => {
      const child = require('node:child_process').spawn('sleep', ['1000']);
      const watch = monitor.watch(child.pid);
      child.kill();
      console.log((await watch.exited).commandLine);
      await monitor.close();
    });`;
  const lines = await new LineProcess(process.execPath, ['-e', script]).rest();
  expect(new Set(lines)).toEqual(new Set(['null', 'my redaction failed']));
});

test.each(['yes', 1, null, {}])('commandLines %j is refused', (commandLines) => {
  expect(() => new ExitMonitor({ commandLines } as unknown as { commandLines: boolean })).toThrow(
    expect.objectContaining({ code: 'ERR_EXITWATCH_INVALID_OPTION' }) as Error,
  );
});
