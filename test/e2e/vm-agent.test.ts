// Lane: patient

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { identify } from '../../src';
import { readIntents } from '../../src/process';
import { guestAgentDriver, qmpDriver, VmControl, VmMonitor } from '../../src/vm';
import { GuestAgentClient } from '../../src/vm/qemu/guest-agent-client';

import { AgentVm, itWithAgent } from '../support/agent-guest';
import { call } from '../support/command';
import { stopOf } from '../support/ends';
import { itWithQemu, TestVm } from '../support/qemu';
import { arrives } from '../support/wait';

let folder: string;
let socket: string;
let server: Server | undefined;
const connections = new Set<Socket>();
let vm: TestVm | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-agent-'));
  socket = join(folder, 'agent');
});

afterEach(() => {
  vm?.remove();
  vm = undefined;
  for (const each of connections) each.destroy();
  server?.close();
  server = undefined;
  rmSync(folder, { recursive: true });
});

type Say = (text: string | Buffer) => void;

/** How an agent reacts to the lines that it receives. */
type Ways = {
  onSync?: (id: number, say: Say, connection: Socket) => void;
  onShutdown?: (say: Say, connection: Socket) => void;
};

const DELIMITER = Buffer.of(0xff);

const obey = (id: number, say: Say) => {
  say(DELIMITER);
  say(`{"return": ${id}}\n`);
};

/** Starts an agent that reacts in these ways. Resolves with the list of requests that it gets. */
async function startAgent({ onSync = obey, onShutdown }: Ways = {}): Promise<unknown[]> {
  const asked: unknown[] = [];
  server = createServer((connection) => {
    connections.add(connection);
    connection.on('error', () => undefined);
    let text = '';
    connection.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        const line = text.slice(0, end);
        text = text.slice(end + 1);
        const say: Say = (what) => void connection.write(what);
        const message = JSON.parse(line.replace('\xff', '')) as {
          execute: string;
          arguments: { id: number };
        };
        if (message.execute === 'guest-sync-delimited') {
          expect(line.startsWith('\xff')).toBe(true);
          onSync(message.arguments.id, say, connection);
        } else {
          asked.push(message);
          onShutdown?.(say, connection);
        }
      }
    });
  });
  await arrives(`a server at ${socket}`, once(server.listen(socket), 'listening'));
  return asked;
}

const SHUTDOWN = { execute: 'guest-shutdown', arguments: { mode: 'powerdown' } };

const powerDown = (signal?: AbortSignal) => guestAgentDriver({ socket }).powerDown(signal);

test('a shutdown succeeds if the agent obeys without an answer', async () => {
  const asked = await startAgent();
  await powerDown();
  expect(asked).toEqual([SHUTDOWN]);
});

test('a shutdown succeeds if the agent disappears with its guest, or sends an answer', async () => {
  const asked = await startAgent({ onShutdown: (_, connection) => connection.destroy() });
  await powerDown();
  server?.close();
  const again = await startAgent({
    onShutdown: (say) => {
      say('{"return": {}}\n');
    },
  });
  await powerDown();
  expect([asked, again]).toEqual([[SHUTDOWN], [SHUTDOWN]]);
});

test('an answer meant for an earlier client is ignored', async () => {
  const asked = await startAgent({
    onSync: (id, say) => {
      say('{"return": {"pid": 7}}\n{"error": {"desc": "stray"}}\n{"half');
      say(DELIMITER);
      say(`{"return": ${id + 1}}\n`);
      say(DELIMITER);
      // In pieces.
      for (const byte of `{"return": ${id}}\n`) say(byte);
    },
  });
  await powerDown();
  expect(asked).toEqual([SHUTDOWN]);
});

test.each<[string, Ways, RegExp]>([
  ['hangs up', { onSync: (_id, _say, connection) => connection.destroy() }, /was closed/],
  [
    'never stops talking',
    {
      onSync: (_, say) => {
        say(Buffer.alloc(2 * 1024 * 1024, 'x'));
      },
    },
    /more than 1048576 bytes/,
  ],
  [
    'sends a line without an end',
    {
      onSync: (_, say) => {
        say(DELIMITER);
        say(Buffer.alloc(128 * 1024, '{'));
      },
    },
    /a line of more than 65536 bytes/,
  ],
])('an agent that %s before it answers counts as not asked', async (_, ways, reason) => {
  const asked = await startAgent(ways);
  await expect(powerDown()).rejects.toMatchObject({
    code: 'ERR_EXITWATCH_NO_AGENT',
    message: expect.stringMatching(reason) as string,
  });
  expect(asked).toEqual([]);
});

test.each<[string, NonNullable<Ways['onSync']>]>([
  ['nothing', () => undefined],
  [
    'a wrong id',
    (id, say) => {
      say(Buffer.concat([DELIMITER, Buffer.from(`{"return": ${id + 1}}\n`)]));
    },
  ],
  [
    'its id as a text',
    (id, say) => {
      say(Buffer.concat([DELIMITER, Buffer.from(`{"return": "${id}"}\n`)]));
    },
  ],
  [
    'its id, but no delimiter',
    (id, say) => {
      say(`{"return": ${id}}\n`);
    },
  ],
  [
    'garbage',
    (_, say) => {
      say(Buffer.from('ff6e6f0a00ff0a5b5d0a6e756c6c0a', 'hex'));
    },
  ],
])(
  'an agent that answers a synchronization with %s does not count as answering',
  async (_, onSync) => {
    await startAgent({ onSync });
    const client = new GuestAgentClient(socket);
    await expect(client.synchronize(200)).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_NO_AGENT',
      message: expect.stringMatching(/did not answer within 200 ms/) as string,
    });
    client.close();
  },
);

test('there is no agent if nothing listens', async () => {
  await expect(powerDown()).rejects.toMatchObject({
    code: 'ERR_EXITWATCH_NO_AGENT',
    message: expect.stringMatching(/ENOENT/) as string,
  });
});

test('nothing is sent to a socket of another process', async () => {
  const asked = await startAgent();
  const other = guestAgentDriver({ socket, pid: 1 });
  await expect(other.powerDown()).rejects.toMatchObject({
    code: 'ERR_EXITWATCH_NO_AGENT',
    message: expect.stringMatching(/belongs to process \d+, not to process 1/) as string,
  });
  expect(asked).toEqual([]);
});

test.each<[string, string, RegExp]>([
  [
    'refuses',
    `{"error": {"class": "CommandNotFound", "desc": "${'disabled '.repeat(100)}"}}\n`,
    /refused guest-shutdown: disabled (?!.{200})/,
  ],
  ['refuses without a reason', '{"error": 7}\n', /refused guest-shutdown: no reason given/],
  ['answers with garbage', 'what?\n', /sent an invalid answer/],
  ['answers with a list', '[]\n', /sent an invalid answer/],
  ['answers at great length', 'x'.repeat(70_000), /more than 65536 bytes/],
])('an agent that %s causes an error', async (_, answer, reason) => {
  await startAgent({
    onShutdown: (say) => {
      say(answer);
    },
  });
  await expect(powerDown()).rejects.toMatchObject({
    code: 'ERR_EXITWATCH_AGENT',
    message: expect.stringMatching(reason) as string,
  });
});

test('a signal aborts the request, before and during its wait', async () => {
  await startAgent({ onSync: () => undefined });
  const reason = new Error('enough');
  await expect(powerDown(AbortSignal.abort(reason))).rejects.toMatchObject({
    code: 'ERR_EXITWATCH_ABORTED',
    cause: reason,
  });
  const controller = new AbortController();
  const asking = powerDown(controller.signal);
  setTimeout(() => {
    controller.abort();
  }, 50);
  await expect(asking).rejects.toMatchObject({ code: 'ERR_EXITWATCH_ABORTED' });
});

itWithQemu(
  'without an agent the driver presses the power button, and the report says why',
  async () => {
    vm = new TestVm({});
    await vm.booted();
    await vm.press('a');
    const identity = identify(vm.pid);
    if (identity === null) throw new Error('it ended');
    const reasons: unknown[] = [];
    const driver = qmpDriver({
      ...{ socket: vm.sockets[0] ?? '', agent: socket, pid: vm.pid },
      onFallback: (reason) => reasons.push(reason),
    });
    const stopped = await new VmControl({ process: { identity }, driver }).stop();
    expect(stopped).toMatchObject({ outcome: 'graceful', via: 'control', warnings: [] });
    expect(reasons).toMatchObject([{ code: 'ERR_EXITWATCH_NO_AGENT' }]);
  },
);

itWithAgent('a guest that its agent shuts down for exitwatch is exitwatch’s doing', async () => {
  const agentVm = new AgentVm();
  vm = agentVm;
  await agentVm.booted();
  const intentLog = join(folder, 'intents');
  await using monitor = new VmMonitor({ intentLog });
  await monitor.start();
  const [events = '', control = ''] = agentVm.sockets;
  const watch = monitor.watch({
    ...{ name: 'vm', pid: agentVm.pid, qmp: events, eventLog: agentVm.eventLog },
    driver: qmpDriver({ socket: control, agent: agentVm.agent, pid: agentVm.pid }),
  });
  const stop = await watch.stop({ reason: 'a test' });
  expect(await readIntents(intentLog)).toMatchObject([{ what: 'powerdown', why: 'a test' }]);
  const { cause, userShutdown, initiator, certainty } = stop;
  expect({ cause, userShutdown, initiator, certainty }).toEqual({
    cause: 'admin-powerdown',
    userShutdown: false,
    initiator: 'manager',
    certainty: 'likely',
  });
});

itWithAgent(
  'a guest that a stranger’s agent client shuts down is not attributed to its user',
  async () => {
    const agentVm = new AgentVm();
    vm = agentVm;
    await agentVm.booted();
    await using monitor = new VmMonitor();
    await monitor.start();
    const [events = ''] = agentVm.sockets;
    const watch = monitor.watch({
      ...{ name: 'vm', pid: agentVm.pid, qmp: events, eventLog: agentVm.eventLog },
    });
    await guestAgentDriver({ socket: agentVm.agent }).powerDown();
    const { cause, userShutdown, initiator, certainty, candidates } = await stopOf(watch);
    expect({ userShutdown, initiator, certainty }).toEqual({
      userShutdown: null,
      initiator: 'unknown',
      certainty: 'one-of',
    });
    expect(['guest-shutdown', 'other-powerdown', 'unknown']).toContain(cause);
    expect(candidates).toEqual(expect.arrayContaining(['guest-shutdown', 'other-powerdown']));
  },
);

itWithAgent('the command vm powerdown asks the agent first', async () => {
  const agentVm = new AgentVm();
  vm = agentVm;
  await agentVm.booted();
  const intentLog = join(folder, 'intents');
  const log = ['--intent-log', intentLog];
  const { code, lines, stderr } = await call(
    ...['vm', 'powerdown', '--pid', String(agentVm.pid), '--qmp', agentVm.sockets[0] ?? '', ...log],
    ...['--agent', agentVm.agent],
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(lines).toEqual([expect.stringMatching(/exited 0.*, by a control call$/)]);
  expect((await readIntents(intentLog)).map(({ what }) => what)).toEqual(['powerdown']);
});
