import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';

import type { ExitEvent } from '../../src/index.js';
import {
  Keeper,
  type KeeperOptions,
  type KeeperReady,
  type KeeperRun,
} from '../../src/supervisor/index.js';

import { until } from './wait';

/** A keeper with a directory of its own, and all that it has told. */
export class KeeperHost implements AsyncDisposable {
  readonly stateDir: string;
  keeper: Keeper;
  ready: KeeperReady | undefined;
  readonly ended = new Map<string, ExitEvent[]>();
  readonly empty: string[] = [];
  readonly notified: string[] = [];
  readonly errors: Error[] = [];
  restarts = 0;
  readonly #more: Omit<KeeperOptions, 'stateDir'>;

  constructor(more: Omit<KeeperOptions, 'stateDir'> = {}, stateDir?: string) {
    this.stateDir = stateDir ?? mkdtempSync(join(tmpdir(), 'exitwatch-keeper-'));
    this.#more = more;
    this.keeper = this.#create();
  }

  static async open(more?: Omit<KeeperOptions, 'stateDir'>, stateDir?: string) {
    const host = new KeeperHost(more, stateDir);
    host.ready = await host.keeper.open();
    return host;
  }

  /** As after a crash of this program: another client of the same keeper. */
  async reopen(): Promise<KeeperReady> {
    await this.keeper.close();
    this.keeper = this.#create();
    this.ready = await this.keeper.open();
    return this.ready;
  }

  get keeperPid(): number {
    return this.ready?.pid ?? 0;
  }

  path(...names: string[]): string {
    return join(this.stateDir, ...names);
  }

  /** The only end of a run. */
  end(id: string): Promise<ExitEvent> {
    return until(
      `the end of run ${id}`,
      () => this.ended.get(id)?.[0],
      () => JSON.stringify(this.keeper.run(id)),
    );
  }

  untilEmpty(id: string): Promise<true> {
    return until(`nothing to be left of run ${id}`, () => this.empty.includes(id) || null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.keeper.runs().map(async ({ id }) => {
        await this.keeper.stop(id, { signal: 'SIGKILL' });
        await until(`run ${id} to be forgotten`, () =>
          this.keeper.forget(id).then(
            () => true,
            (error: unknown) => (error as { code?: unknown }).code === 'ERR_EXITWATCH_NO_RUN',
          ),
        );
      }),
    );
    await this.keeper.close();
    rmSync(this.stateDir, { recursive: true, force: true });
  }

  #create(): Keeper {
    const keeper = new Keeper({ ...this.#more, stateDir: this.stateDir });
    keeper.on('ended', (exit, run: KeeperRun) => {
      const ends = this.ended.get(run.id);
      if (ends === undefined) this.ended.set(run.id, [exit]);
      else ends.push(exit);
    });
    keeper.on('empty', ({ id }) => this.empty.push(id));
    keeper.on('notify', (_, text) => this.notified.push(text));
    keeper.on('error', (error) => this.errors.push(error));
    keeper.on('restarted', (ready) => {
      this.ready = ready;
      this.restarts++;
    });
    return keeper;
  }
}

/** A process has no descriptor for anything more until this is over. */
export async function whileBlind(pid: number, work: () => Promise<void>): Promise<void> {
  const most = /^Max open files +(\S+)/mu.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1];
  const limit = (files: string) => execFileSync('prlimit', [`--pid=${pid}`, `--nofile=${files}:`]);
  limit('1'); // what is open stays so
  try {
    await work();
  } finally {
    limit(most ?? '');
  }
}

/** The processes that have a word among their arguments. */
export function processesWith(word: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').includes(word);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** The children of a process that have this name. */
export function childrenOf(pid: number, name?: string): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
    .split(' ')
    .filter((child) => child !== '')
    .map(Number)
    .filter((child) => name === undefined || hasName(child, name));
}

function hasName(pid: number, name: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'latin1') === `${name}\n`;
  } catch {
    return false; // it is gone
  }
}

/** A client that says whatever it likes; it has heard the keeper's first message. */
export async function rawClient(host: { path(...names: string[]): string }): Promise<Socket> {
  const socket = connect(host.path('keeper', 'socket'));
  socket.on('error', () => undefined);
  await once(socket, 'data'); // hello
  return socket;
}

/**
 * A keeper stays for ends that nobody has stored, such as those of runs that a supervisor did not know. This
 * stores them.
 */
export async function forgetAll(stateDir: string): Promise<void> {
  if (!existsSync(join(stateDir, 'keeper', 'socket'))) return;
  const keeper = new Keeper({ stateDir });
  await keeper.open();
  const refusals = new Map<string, unknown>();
  const forgets = async (id: string) => {
    await keeper.stop(id, { signal: 'SIGKILL' });
    await keeper.forget(id).then(
      () => refusals.delete(id),
      (error: unknown) => refusals.set(id, error), // something of it is alive
    );
  };
  // One may hold open what another one waits for, such as the FIFO of its log.
  const all = () => keeper.runs().map(({ id }) => id);
  const told = () => inspect([keeper.runs(), refusals]);
  const isEmpty = async () => {
    await Promise.all(all().map(forgets));
    return all().length === 0;
  };
  try {
    await until('all runs to be forgotten', isEmpty, told);
  } finally {
    await keeper.close();
  }
}
