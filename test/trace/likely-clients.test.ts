// Lane: patient

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { type ExitEvent, ExitMonitor, redactSecrets } from '../../src';
import type { OnBehalfReason } from '../../src/events/signal-event';
import { LikelyClients } from '../../src/trace/likely-clients';

import { KERNEL } from '../support/kernel';
import { itAsRootOfHost } from '../support/privilege';
import { LineProcess, program } from '../support/programs';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-clients-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

const SHELL = 'echo up; read line';
const NODE = `
  console.log('up');
  process.stdin.resume();
  process.stdin.on('end', () => process.exit());
`;
const PYTHON = 'print("up", flush=True); input()';

/** A script, which runs until its input ends. */
async function script(name: string, interpreter: string, text: string, ...args: string[]) {
  const path = join(folder, name);
  writeFileSync(path, text);
  const running = new LineProcess(interpreter, [path, ...args]);
  expect(await running.line()).toBe('up');
  const end = async () => {
    running.child.stdin.end('\n');
    await running.ended;
  };
  // A wrapper of an interpreter may have put another path in its place.
  return { pid: running.pid, end, commandLine: [expect.any(String) as string, path, ...args] };
}

const SCRIPTS: [string, string, string][] = [
  ['pm2', process.execPath, NODE],
  ['supervisorctl', 'python3', PYTHON],
  ['rc-service', 'sh', SHELL],
];

/** What may have asked a supervisor for the signal that it sends now. */
const clientsNow = (clients: LikelyClients, agentPid = 1) =>
  clients.of({ pid: agentPid, onBehalfReason: 'supervisor', sentAt: new Date() });

const clientsOf = (clients: LikelyClients, pid: number) =>
  clientsNow(clients)?.filter((client) => client.pid === pid);

describe.each(SCRIPTS)('a client %s that %s runs', (name, interpreter, text) => {
  test('is known by its script while it runs, if arguments are asked for', async () => {
    const { pid, end, commandLine } = await script(name, interpreter, text, 'stop', '--token=x');
    const client = { pid, name, uid: process.geteuid?.(), endedAt: null };
    expect(clientsOf(new LikelyClients(null), pid)).toEqual([]);
    expect(clientsOf(new LikelyClients(redactSecrets), pid)).toMatchObject([
      { ...client, commandLine: [...commandLine.slice(0, -1), '--token=***'] },
    ]);
    await end();
  });

  test('is none if it only looks', async () => {
    const { pid, end } = await script(name, interpreter, text, 'status', 'web');
    expect(clientsOf(new LikelyClients(redactSecrets), pid)).toEqual([]);
    await end();
  });

  test('is none if its script has another name', async () => {
    const { pid, end } = await script(`${name}-like`, interpreter, text, name);
    expect(clientsOf(new LikelyClients(redactSecrets), pid)).toEqual([]);
    await end();
  });

  itAsRootOfHost('is known by its script when it has ended before the signal', async () => {
    if (!KERNEL.tellsPrograms) return;
    const supervisord = join(folder, 'supervisord');
    copyFileSync('/bin/bash', supervisord);
    const web = new LineProcess('sleep', ['1000']);
    const agent = new LineProcess(supervisord, ['-c', `read line; kill ${web.pid}; :`]);
    await using monitor = new ExitMonitor({ scope: 'all', commandLines: true });
    await monitor.start();
    const watch = monitor.watch(web.pid);
    const client = await script(name, interpreter, text, 'restart', 'web');
    const { exited } = monitor.watch(client.pid);
    await client.end();
    await exited;
    agent.child.stdin.end('\n');
    const { sender } = await watch.exited;
    expect(sender).toMatchObject({ pid: agent.pid, onBehalfReason: 'supervisor' });
    expect(sender?.likelyClients?.filter(({ pid }) => pid === client.pid)).toMatchObject([
      { name, commandLine: client.commandLine, endedAt: expect.any(Date) as Date },
    ]);
    await agent.ended;
  });
});

test('a client that wrote a title over all of its arguments shows nothing of its environment', async () => {
  if (process.platform !== 'linux') return;
  const path = join(folder, 'pm2');
  copyFileSync(program('argued'), path);
  const env = { FILLER: 'x'.repeat(100), SECRET: 'ENVIRONMENT' };
  const args = ['title', 'pm2: restart web', 'x'.repeat(100), 'wait'];
  const client = new LineProcess(path, args, { env });
  const bytes = Number(await client.line());
  // What the kernel shows.
  expect(readFileSync(`/proc/${client.pid}/cmdline`, 'utf8')).toMatch(/^pm2: restart web\.+x/);
  expect(clientsOf(new LikelyClients((words) => words), client.pid)).toMatchObject([
    { name: 'pm2', commandLine: ['pm2: restart web'.padEnd(bytes, '.')] },
  ]);
  client.child.stdin.end();
  await client.ended;
});

describe('signals soon after each other', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  const pidsOf = (clients: LikelyClients, ...pids: number[]) =>
    clientsNow(clients)
      ?.map(({ pid }) => pid)
      .filter((pid) => pids.includes(pid));

  test('each have the clients of their own time', async () => {
    jest.spyOn(performance, 'now').mockReturnValue(1000);
    const clients = new LikelyClients(redactSecrets);
    const first = await script('sv', 'sh', SHELL, 'down', 'a');
    expect(pidsOf(clients, first.pid)).toEqual([first.pid]);
    await first.end();
    const second = await script('sv', 'sh', SHELL, 'down', 'b');
    expect(pidsOf(clients, first.pid, second.pid)).toEqual([second.pid]);
    await second.end();
  });

  /** Each look takes 400 ms; `isOurs`: half of it CPU time, on a busy machine hardly any of it. */
  function takeLong({ isOurs }: { isOurs: boolean }) {
    let now = 0;
    const pass = (ms: number) => {
      now += ms;
    };
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    const cpuUsage = process.cpuUsage.bind(process);
    jest.spyOn(process, 'cpuUsage').mockImplementation((before) => {
      pass(200);
      return isOurs ? { user: 150_000, system: 50_000 } : cpuUsage(before);
    });
    return pass;
  }

  test('have no client that has ended if it is too early to look for others', async () => {
    const pass = takeLong({ isOurs: true });
    const clients = new LikelyClients(redactSecrets);
    const first = await script('sv', 'sh', SHELL, 'down', 'a');
    const other = await script('sv', 'sh', SHELL, 'down', 'c');
    const count = () => pidsOf(clients, first.pid, other.pid)?.length;
    expect(count()).toBe(2);
    await first.end();
    const second = await script('sv', 'sh', SHELL, 'down', 'b');
    expect(pidsOf(clients, first.pid, other.pid, second.pid)).toEqual([other.pid]);
    await other.end();
    expect(pidsOf(clients, other.pid, second.pid) ?? []).toEqual([]);
    pass(10_000);
    expect(pidsOf(clients, second.pid)).toEqual([second.pid]);
    await second.end();
  });

  test('have unknown clients, not none, if it is too early to look and none is known', async () => {
    takeLong({ isOurs: true });
    const clients = new LikelyClients(null);
    // No program asks such a one, so that it does not matter what runs on this machine.
    const unasked = { pid: 1, onBehalfReason: 'unasked' as OnBehalfReason };
    expect(clients.of({ ...unasked, sentAt: new Date() })).toEqual([]);
    await setTimeout(2);
    expect(clients.of({ ...unasked, sentAt: new Date() })).toBeNull();
  });

  test('have their clients on a machine where others use all of the time', async () => {
    takeLong({ isOurs: false });
    const clients = new LikelyClients(redactSecrets);
    for (const service of ['a', 'b', 'c']) {
      const { pid, end } = await script('sv', 'sh', SHELL, 'down', service);
      expect(pidsOf(clients, pid)).toEqual([pid]);
      await end();
    }
  });
});

describe('a sender that others use to ask for signals as well', () => {
  test('is not its own client', async () => {
    const clients = new LikelyClients(redactSecrets);
    const monit = await script('monit', 'sh', SHELL);
    const pids = (agentPid: number) => clientsNow(clients, agentPid)?.map(({ pid }) => pid);
    expect(pids(1)).toContain(monit.pid);
    expect(pids(monit.pid)).not.toContain(monit.pid);
    await monit.end();
  });

  test('is not its own client when it has ended, unlike one that had its pid before', () => {
    const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms);
    const end = { pid: 7, name: 'monit', program: null, uid: 0, commandLine: null };
    const ended = (from: number, to: number) =>
      ({ ...end, startedAt: at(from), exitedAt: at(to) }) as ExitEvent;
    const clients = new LikelyClients(null);
    clients.noteEnd(ended(0, 100));
    clients.noteEnd(ended(200, 1000));
    const agent = { pid: 7, onBehalfReason: 'supervisor', sentAt: at(999) } as const;
    const startsOf = (pid: number) =>
      clients
        .of({ ...agent, pid })
        ?.filter((client) => client.pid === 7)
        .map(({ startedAt }) => startedAt.getTime() - at(0).getTime());
    expect(startsOf(1)).toEqual([200, 0]);
    expect(startsOf(7)).toEqual([0]);
  });
});
