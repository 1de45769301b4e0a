// Lane: unit

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { identify } from '../../src/index.js';
import { readPidfile } from '../../src/process/index.js';
import { Keeper } from '../../src/supervisor/index.js';
import {
  encodeMessage,
  type Fields,
  type Message,
  MessageReader,
} from '../../src/supervisor/keeper/message.js';

/** What the first keeper could be asked. */
const KNOWN = ['watch', 'list'];

/** The process of its only run. */
const OURSELVES = [
  ['pid', String(process.pid)],
  ['startTicks', String(identify(process.pid)?.startTicks)],
] as const;

/** A keeper of before: it refuses what came later, and whatever it starts, we are. */
class OlderKeeper implements AsyncDisposable {
  readonly stateDir = mkdtempSync(join(tmpdir(), 'exitwatch-older-'));
  readonly asked: Message[] = [];
  readonly #server: Server;

  constructor() {
    mkdirSync(join(this.stateDir, 'keeper'), { mode: 0o700 });
    this.#server = createServer((socket) => {
      const reader = new MessageReader();
      const hello = [
        ['event', 'hello'],
        ['protocol', '1'],
        ['version', '0.0.9'],
      ] as const;
      socket.write(encodeMessage([...hello, ['pid', String(process.pid)]]));
      socket
        .on('error', () => undefined)
        .on('data', (piece) => {
          for (const message of reader.read(piece)) {
            this.asked.push(message);
            const seq = ['seq', message.text('seq') ?? ''] as const;
            socket.write(encodeMessage([seq, ...answerTo(message)]));
          }
        });
    }).listen(join(this.stateDir, 'keeper', 'socket'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.stateDir, { recursive: true, force: true });
  }
}

function answerTo(message: Message): Fields {
  const op = message.text('op') ?? '';
  if (op === 'start') {
    const run = ['run', message.text('run') ?? ''] as const;
    const unknown = ['pidfile', 'openFiles'].find((each) => message.has(each));
    return unknown !== undefined
      ? [
          ['error', 'unsupported'],
          ['detail', unknown],
        ]
      : [['ok', '1'], run, ['state', 'running'], ...OURSELVES];
  }
  return KNOWN.includes(op)
    ? [['ok', '1']]
    : [
        ['error', 'unsupported'],
        ['detail', op],
      ];
}

it('an older keeper answers a ping, though it does not know it', async () => {
  await using older = new OlderKeeper();
  const keeper = new Keeper({ stateDir: older.stateDir });
  await keeper.open();
  await keeper.ping();
  expect(older.asked.at(-1)?.text('op')).toBe('ping');
  await keeper.close();
});

it('an older keeper writes no pidfile, and so we do', async () => {
  await using older = new OlderKeeper();
  const keeper = new Keeper({ stateDir: older.stateDir });
  await keeper.open();
  const pidfile = join(older.stateDir, 'pid');
  await keeper.start({ id: 'run', command: 'true', pidfile });
  expect(older.asked.at(-1)?.has('pidfile')).toBe(false);
  expect((await readPidfile(pidfile)).pid).toBe(process.pid);
  await keeper.close();
});

it('an older keeper limits no open files: a run has the highest limit there', async () => {
  await using older = new OlderKeeper();
  const keeper = new Keeper({ stateDir: older.stateDir });
  await keeper.open();
  expect(await keeper.start({ id: 'run', command: 'true', openFiles: 64 })).toMatchObject({
    state: 'running',
  });
  await keeper.close();
});
