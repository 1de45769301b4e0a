// Lane: patient

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Keeper } from '../../src/supervisor/index.js';
import { MessageReader } from '../../src/supervisor/keeper/message.js';
import { KeeperHost } from '../support/keeper';
import { until } from '../support/wait';

/** Brings a client what a keeper says, but from one answer on all at once, as to a client that is busy. */
class Courier implements AsyncDisposable {
  readonly stateDir = mkdtempSync(join(tmpdir(), 'exitwatch-courier-'));
  readonly events: (string | null)[] = [];
  readonly #server: Server;
  #held: Buffer[] | undefined;
  #client: Socket | undefined;

  /** @param op the request from whose answer on it holds back */
  constructor(host: KeeperHost, op: string) {
    mkdirSync(join(this.stateDir, 'keeper'), { mode: 0o700 });
    this.#server = createServer((client) => {
      const keeper = connect(host.path('keeper', 'socket'));
      const [asked, said] = [new MessageReader(), new MessageReader()];
      this.#client = client;
      client
        .on('close', () => keeper.destroy())
        .on('data', (piece) => {
          const isIt = asked.read(piece).some((message) => message.text('op') === op);
          if (isIt) this.#held = [];
          keeper.write(piece);
        });
      keeper.on('data', (piece) => {
        for (const message of said.read(piece)) this.events.push(message.text('event'));
        if (this.#held === undefined) client.write(piece);
        else this.#held.push(piece);
      });
    }).listen(join(this.stateDir, 'keeper', 'socket'));
  }

  get hasAnswer(): boolean {
    return (this.#held?.length ?? 0) > 0;
  }

  release(): void {
    this.#client?.write(Buffer.concat(this.#held ?? []));
    this.#held = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client?.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.stateDir, { recursive: true, force: true });
  }
}

it('an end that comes together with the list that has its run as running is known', async () => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'run', command: 'sleep', args: ['1000'] });
  await using courier = new Courier(host, 'list');
  const client = new Keeper({ stateDir: courier.stateDir });
  const ended: string[] = [];
  client.on('ended', (_, { id }) => ended.push(id));
  const opened = client.open();
  await until('the list', () => courier.hasAnswer);
  await host.keeper.signal('run', 'SIGKILL');
  await until('the end', () => courier.events.includes('ended'));
  courier.release();
  await opened;
  expect(client.run('run')).toMatchObject({ state: 'ended', waitStatus: 9 });
  await until('the end to be told', () => ended.length > 0);
  expect(ended).toEqual(['run']);
  await client.close();
});

it('the end of a run is known that comes together with its start, and with the answer that the one before is forgotten', async () => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'run', command: 'true' });
  await host.untilEmpty('run');
  await using courier = new Courier(host, 'forget');
  const client = new Keeper({ stateDir: courier.stateDir });
  await client.open();
  const forgotten = client.forget('run');
  const started = client.start({ id: 'run', command: 'sh', args: ['-c', 'exit 7'] });
  await until('the end', () => courier.events.includes('ended'));
  courier.release();
  await forgotten;
  await started;
  expect(client.run('run')).toMatchObject({ state: 'ended', waitStatus: 7 << 8 });
  await client.close();
});
