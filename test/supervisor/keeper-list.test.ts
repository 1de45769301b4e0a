// Lane: patient

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Keeper } from '../../src/supervisor/index.js';
import { MessageReader } from '../../src/supervisor/keeper/message.js';
import { KeeperHost } from '../support/keeper';
import { until } from '../support/wait';

/** Brings a client what a keeper says, but from its list on all at once, as to a client that is busy. */
class Courier implements AsyncDisposable {
  readonly stateDir = mkdtempSync(join(tmpdir(), 'exitwatch-courier-'));
  readonly events: (string | null)[] = [];
  readonly #server: Server;
  #held: Buffer[] | undefined;
  #client: Socket | undefined;

  constructor(host: KeeperHost) {
    mkdirSync(join(this.stateDir, 'keeper'), { mode: 0o700 });
    this.#server = createServer((client) => {
      const keeper = connect(host.path('keeper', 'socket'));
      const [asked, said] = [new MessageReader(), new MessageReader()];
      this.#client = client;
      client
        .on('close', () => keeper.destroy())
        .on('data', (piece) => {
          const isList = asked.read(piece).some((message) => message.text('op') === 'list');
          if (isList) this.#held = [];
          keeper.write(piece);
        });
      keeper.on('data', (piece) => {
        for (const message of said.read(piece)) this.events.push(message.text('event'));
        if (this.#held === undefined) client.write(piece);
        else this.#held.push(piece);
      });
    }).listen(join(this.stateDir, 'keeper', 'socket'));
  }

  get hasList(): boolean {
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
  await using courier = new Courier(host);
  const client = new Keeper({ stateDir: courier.stateDir });
  const ended: string[] = [];
  client.on('ended', (_, { id }) => ended.push(id));
  const opened = client.open();
  await until('the list', () => courier.hasList);
  await host.keeper.signal('run', 'SIGKILL');
  await until('the end', () => courier.events.includes('ended'));
  courier.release();
  await opened;
  expect(client.run('run')).toMatchObject({ state: 'ended', waitStatus: 9 });
  await until('the end to be told', () => ended.length > 0);
  expect(ended).toEqual(['run']);
  await client.close();
});
