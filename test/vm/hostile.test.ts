// Lane: patient

import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { ExitwatchError } from '../../src';
import { QmpClient, VmMonitor } from '../../src/vm';

import { stopOf } from '../support/ends';
import { mortal, release } from '../support/mortal';
import { arrives, until } from '../support/wait';

const GREETING = '{"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": []}}\n';

let folder: string;
let path: string;
let server: Server;
const sockets = new Set<Socket>();

/** A socket that treats every client in this way. */
async function serve(treat: (socket: Socket) => void): Promise<void> {
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    sockets.add(socket);
    treat(socket);
  });
  await arrives(`a server at ${path}`, once(server.listen(path), 'listening'));
}

/** Answers like a hypervisor, and sends `events` after the negotiation. */
const hypervisor =
  (...events: string[]) =>
  (socket: Socket) => {
    socket.write(GREETING);
    socket.on('data', (chunk) => {
      for (const line of chunk.toString().trim().split('\n')) {
        const { id, execute } = JSON.parse(line) as { id: string; execute: string };
        const answer = execute === 'query-status' ? { status: 'running' } : {};
        socket.write(`${JSON.stringify({ return: answer, id })}\n`);
        if (execute === 'query-status') for (const event of events) socket.write(`${event}\n`);
      }
    });
  };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-qmp-'));
  path = join(folder, 'qmp');
});

afterEach(() => {
  sockets.clear();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const HOSTILE: [string, (socket: Socket) => void, RegExp][] = [
  ['never says a word', () => undefined, /sent no greeting/],
  ['sends garbage', (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'), /not JSON/],
  ['sends what is no message', (socket) => socket.write('[1,2,3]\n'), /not a QMP message/],
  [
    'sends 100 MB without a newline',
    (socket) => {
      const chunk = Buffer.alloc(1024 * 1024, 'x');
      let left = 100;
      const send = () => {
        while (left-- > 0) if (!socket.write(chunk)) return;
      };
      socket.on('drain', send);
      send();
    },
    /more than 1048576 bytes/,
  ],
  [
    'refuses the negotiation',
    (socket) => {
      socket.write(GREETING);
      socket.on('data', (chunk) => {
        const { id } = JSON.parse(chunk.toString()) as { id: string };
        socket.write(`${JSON.stringify({ error: { class: 'GenericError', desc: 'no' }, id })}\n`);
      });
    },
    /refused the command: no/,
  ],
];

test.each(HOSTILE)(
  'a QMP socket that %s causes a warning, and the other witnesses report the end',
  async (_, treat, message) => {
    await serve(treat);
    const memory = process.memoryUsage().rss;
    await using monitor = new VmMonitor();
    const warnings: string[] = [];
    monitor.on('warning', (error, name) => warnings.push(`${name}: ${error.message}`));
    const child = await mortal();
    const watch = monitor.watch({
      name: 'victim',
      pid: child.pid,
      qmp: path,
      qmpIsInherited: true,
    });
    await until('a warning', () => warnings.length > 0);
    await setTimeout(100);
    child.child.kill('SIGKILL');
    const stop = await stopOf(watch);
    expect(warnings.join('\n')).toMatch(message);
    // Each warning comes once, however often its reason recurs.
    expect(new Set(warnings).size).toBe(warnings.length);
    expect(stop.exit).toMatchObject({ signal: 'SIGKILL' });
    expect(stop.candidates).toContain('killed');
    expect(stop.userShutdown).not.toBe(true);
    expect(process.memoryUsage().rss - memory).toBeLessThan(64 * 1024 * 1024);
  },
);

const DEEP = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
const LONG = 'x'.repeat(1_000_000);

test.each([
  ['deeply nested', [`{"event": "STOP", "data": {"deep": ${DEEP}}}`]],
  [
    'huge',
    Array.from({ length: 100 }, () => `{"event": "POWERDOWN", "data": {"long": "${LONG}"}}`),
  ],
])('%s events do not hurt the process that listens, and are kept without that', async (_, sent) => {
  await serve(hypervisor(...sent, '{"event": "RESUME"}', '{"event": "POWERDOWN"}'));
  await using monitor = new VmMonitor();
  const warnings: Error[] = [];
  monitor.on('warning', (error) => warnings.push(error));
  const child = await mortal();
  const watch = monitor.watch({ name: 'vm', pid: child.pid, qmp: path, qmpIsInherited: true });
  await arrives('the machine to run', once(monitor, 'running'));
  const shutdown = '{"event": "SHUTDOWN", "data": {"guest": false, "reason": "host-signal"}}';
  for (const socket of sockets) socket.write(`${shutdown}\n`);
  await setTimeout(100);
  await release(child);
  const { evidence, candidates } = await stopOf(watch);
  expect(candidates).toContain('forced-stop');
  const told = evidence.filter(({ source }) => source === 'event').map(({ text }) => text);
  expect(told).toContain('POWERDOWN');
  expect(JSON.stringify(evidence).length).toBeLessThan(100_000);
  expect(warnings).toEqual([]);
});

test.each([
  ['nested deeply', DEEP],
  ['an object that cannot be a text', '{"toString": 1, "valueOf": 1}'],
])('an answer with an id that is %s is ignored', async (_, id) => {
  await serve(hypervisor(`{"return": {}, "id": ${id}}`));
  const client = new QmpClient(path);
  await arrives('the client to be ready', once(client, 'ready'));
  expect(await client.execute('query-status')).toEqual({ status: 'running' });
  expect(await client.execute('query-status')).toEqual({ status: 'running' });
  client.close();
});

test('an event that only mentions SHUTDOWN does not count as one', async () => {
  await serve(
    hypervisor(
      '{"event": "BLOCK_JOB_ERROR", "data": {"device": "SHUTDOWN", "reason": "guest-shutdown"}}',
      '{"event": "VSERPORT_CHANGE", "data": {"id": "\\"event\\": \\"SHUTDOWN\\""}}',
    ),
  );
  await using monitor = new VmMonitor();
  const child = await mortal();
  const watch = monitor.watch({ name: 'vm', pid: child.pid, qmp: path, qmpIsInherited: true });
  await arrives('the machine to run', once(monitor, 'running'));
  await setTimeout(20);
  await release(child);
  const stop = await watch.stopped;
  // The same as without any event about its end.
  expect(stop).toMatchObject({ cause: 'unknown', userShutdown: null });
  expect(stop.candidates).toContain('vmm-exit');
  expect(stop.evidence.filter(({ text }) => text.startsWith('SHUTDOWN'))).toEqual([]);
});

test('a press that was heard counts, even if a log without it has more events', async () => {
  const timestamp = (ms: number) => {
    const seconds = Math.floor(ms / 1000);
    return { seconds, microseconds: (ms - seconds * 1000) * 1000 };
  };
  const line = (event: string, ms: number, data = {}) =>
    JSON.stringify({ event, data, timestamp: timestamp(ms) });
  const child = await mortal();
  const now = Date.now() + 1000;
  const shutdown = line('SHUTDOWN', now, { guest: true, reason: 'guest-shutdown' });
  const eventLog = join(folder, 'events');
  const logged = [line('RESET', now - 500, { guest: true }), line('SUSPEND', now - 400), shutdown];
  writeFileSync(eventLog, [line('RESUME', now - 900), '{"torn', ...logged, ''].join('\n'));
  await serve(hypervisor(line('POWERDOWN', now - 100), shutdown));
  await using monitor = new VmMonitor();
  const options = { name: 'vm', pid: child.pid, qmp: path, qmpIsInherited: true };
  const watch = monitor.watch({ ...options, eventLog });
  await arrives('the machine to run', once(monitor, 'running'));
  await setTimeout(1200);
  await release(child);
  expect(await stopOf(watch)).toMatchObject({ cause: 'other-powerdown', userShutdown: false });
});

test('events right before the end are read, and the first SHUTDOWN counts', async () => {
  const shutdown = (guest: boolean, reason: string) =>
    JSON.stringify({ event: 'SHUTDOWN', data: { guest, reason } });
  await serve(hypervisor(shutdown(true, 'guest-shutdown'), shutdown(false, 'host-signal')));
  await using monitor = new VmMonitor();
  const child = await mortal();
  const watch = monitor.watch({ name: 'vm', pid: child.pid, qmp: path, qmpIsInherited: true });
  await arrives('the machine to run', once(monitor, 'running'));
  await release(child);
  // The guest has powered off, but its button may have been pressed before the client connected.
  const { candidates } = await stopOf(watch);
  expect(candidates).toEqual(['guest-shutdown', 'other-powerdown', 'watchdog-powerdown']);
});

test('a second client waits for the first one to leave, and says so', async () => {
  const waiting: Socket[] = [];
  let isTaken = false;
  await serve((socket) => {
    if (isTaken) {
      waiting.push(socket);
      return;
    }
    isTaken = true;
    hypervisor()(socket);
    socket.on('close', () => {
      isTaken = false;
      for (const next of waiting.splice(0)) hypervisor()(next);
    });
  });
  const first = new QmpClient(path);
  await arrives('the first client to be ready', once(first, 'ready'));
  await using monitor = new VmMonitor();
  const child = await mortal();
  const warned = new Promise<Error>((resolve) => monitor.once('warning', resolve));
  const running = once(monitor, 'running');
  monitor.watch({ name: 'vm', pid: child.pid, qmp: path, qmpIsInherited: true });
  expect((await arrives('a warning', warned)).message).toContain('another client is connected');
  first.close();
  await arrives('the machine to run', running);
  await release(child);
});

test('commands get answers by their ids, are refused with a reason, and fail when the connection ends', async () => {
  await serve((socket) => {
    socket.write(GREETING);
    const held: string[] = [];
    socket.on('data', (chunk) => {
      for (const line of chunk.toString().trim().split('\n')) {
        const { id, execute } = JSON.parse(line) as { id: string; execute: string };
        if (execute === 'first') held.push(id);
        else if (execute === 'refused') {
          socket.write(
            `${JSON.stringify({ error: { class: 'CommandNotFound', desc: 'unknown' }, id })}\n`,
          );
        } else if (execute === 'leave') socket.destroy();
        else {
          socket.write(`${JSON.stringify({ return: { of: execute }, id })}\n`);
          for (const other of held.splice(0))
            socket.write(`${JSON.stringify({ return: 1, id: other })}\n`);
        }
      }
    });
  });
  const client = new QmpClient(path);
  await expect(client.execute('too-early')).rejects.toMatchObject({ code: 'ERR_EXITWATCH_QMP' });
  await arrives('the client to be ready', once(client, 'ready'));
  const first = client.execute('first');
  expect(await client.execute('second')).toEqual({ of: 'second' });
  expect(await arrives('the first answer', first)).toBe(1);
  await expect(client.execute('refused')).rejects.toThrow('refused the command: unknown');
  await expect(client.execute('first', {}, 20)).rejects.toThrow('did not answer first');
  await expect(client.execute('leave')).rejects.toThrow('was closed');
});

test.each([
  [{}],
  [{ name: '', pid: 1 }],
  [{ name: 'a' }],
  [{ name: 'a', pid: 1, identity: {} }],
  [{ name: 'a', pid: 1, qmp: 7 }],
  [{ name: 'a', pid: 1, socket: '/x' }],
])('the options %j are refused', async (options) => {
  await serve(() => undefined);
  await using monitor = new VmMonitor();
  expect(() => monitor.watch(options as never)).toThrow(ExitwatchError);
});

test('a missing pidfile and an ended machine reject without harm to other watches', async () => {
  await serve(() => undefined);
  await using monitor = new VmMonitor();
  const missing = monitor.watch({ name: 'missing', pidfile: join(folder, 'none') });
  await expect(stopOf(missing)).rejects.toMatchObject({ code: 'ERR_EXITWATCH_NO_PIDFILE' });
  const gone = await mortal();
  await release(gone);
  expect(() => monitor.watch({ name: 'gone', pid: gone.pid })).toThrow('no process has pid');
  const child = await mortal();
  const watch = monitor.watch({ name: 'there', pid: child.pid });
  await release(child);
  expect((await stopOf(watch)).exit).toMatchObject({ exitCode: 0 });
});

test('an event log from an earlier start, with garbage, or missing, does not count for this start', async () => {
  await serve(() => undefined);
  const eventLog = join(folder, 'events');
  const old = { event: 'SHUTDOWN', data: { guest: true, reason: 'guest-shutdown' } };
  writeFileSync(
    eventLog,
    `${JSON.stringify({ ...old, timestamp: { seconds: 1_600_000_000, microseconds: 0 } })}\n{"event": "SHUT`,
  );
  mkdirSync(join(folder, 'folder'));
  await using monitor = new VmMonitor();
  for (const log of [eventLog, join(folder, 'folder'), join(folder, 'none'), '/dev/zero']) {
    const child = await mortal();
    const watch = monitor.watch({ name: 'vm', pid: child.pid, eventLog: log, log });
    await release(child);
    const stop = await stopOf(watch);
    expect(stop.certainty).not.toBe('sure');
    expect(stop.userShutdown).toBeNull();
  }
  expect(existsSync(eventLog)).toBe(true);
});
