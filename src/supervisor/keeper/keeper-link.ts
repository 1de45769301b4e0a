import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { withDeadline } from '../../common/deadline.js';
import { ExitwatchError } from '../../common/errors.js';
import { StateFolder } from '../../memory/state-folder.js';

import { type Answer, type KeeperConnection, keeperError } from './connection.js';
import { closedError } from './keeper-errors.js';
import type { KeeperReady } from './keeper-events.js';
import { connectKeeper } from './keeper-process.js';
import type { Fields, Message } from './message.js';

const RECONNECTS = 10;
/** The keeper may be upgraded, or die, again and again in the meantime. */
const LONGEST_REQUEST_MS = 10_000;
const LONGEST_LEAVE_MS = 1000;

/** Who uses a link. */
export interface LinkHost {
  /** @param items its runs */
  onConnected(hello: Message, items: readonly Message[]): KeeperReady;
  onEvent(message: Message): void;
  /** The keeper had died, and another one has taken its place; or it was upgraded. */
  onRestarted(ready: KeeperReady): void;
  /** There is no keeper any more, and none can be started. */
  onLost(error: Error): void;
}

/** The way to the keeper of a directory: one connection after another. */
export class KeeperLink {
  readonly #stateDir: string;
  readonly #host: LinkHost;
  /** What relies on this keeper. */
  readonly #working = new Set<Promise<void>>();
  #folder: StateFolder | undefined;
  #connection: KeeperConnection | undefined;
  #connecting: Promise<KeeperReady> | undefined;
  #ready: KeeperReady | undefined;
  /** The fields that it takes, of those that older keepers do not; `null`: it has not said so yet. */
  #newFields: ReadonlySet<string> | null = null;
  #isClosed = false;

  constructor(stateDir: string, host: LinkHost) {
    this.#stateDir = stateDir;
    this.#host = host;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The present connection, if there is one. */
  get connection(): KeeperConnection | undefined {
    return this.#connection;
  }

  get ready(): KeeperReady | undefined {
    return this.#ready;
  }

  async open(): Promise<KeeperReady> {
    if (this.#isClosed) throw closedError();
    if (this.#folder === undefined) {
      this.#folder = new StateFolder(this.#stateDir);
      try {
        this.#makeFolder();
      } catch (error) {
        const failure = this.#folder.error(error);
        this.#folder.close();
        this.#folder = undefined;
        throw failure;
      }
    }
    this.#connecting ??= this.#connect();
    try {
      return await this.#connecting;
    } catch (error) {
      this.#connecting = undefined;
      if (this.#ready === undefined) {
        this.#folder.close();
        this.#folder = undefined;
      }
      throw error;
    }
  }

  /** @param isLeaving it has no runs, and may end at once */
  async close(isLeaving: boolean): Promise<void> {
    this.#isClosed = true;
    const connection = this.#connection;
    if (connection !== undefined && isLeaving) {
      await withDeadline(connection.request([['op', 'leave']]), LONGEST_LEAVE_MS).catch(
        () => undefined,
      );
    }
    connection?.close();
    this.#folder?.close();
  }

  get #keeperFolder(): string {
    return join(this.#stateDir, 'keeper');
  }

  #makeFolder(): void {
    try {
      mkdirSync(this.#keeperFolder, { mode: 0o700 });
    } catch (error) {
      const isThere =
        (error as NodeJS.ErrnoException).code === 'EEXIST' &&
        statSync(this.#keeperFolder).isDirectory();
      if (!isThere) throw error;
    }
  }

  async #connect(): Promise<KeeperReady> {
    const { connection, hello } = await connectKeeper(this.#keeperFolder);
    connection.on('event', (message) => {
      this.#host.onEvent(message);
    });
    connection.once('close', () => {
      this.lost(connection);
    });
    // In this order: what happens while it lists is told as well.
    await connection.request([['op', 'watch']]);
    let ready: KeeperReady | undefined;
    await connection.request([['op', 'list']], ({ items }) => {
      if (this.#isClosed) return;
      this.#connection = connection;
      this.#newFields = new Set(hello.all('can'));
      ready = this.#ready = this.#host.onConnected(hello, items);
    });
    if (ready !== undefined) return ready;
    connection.close();
    throw closedError();
  }

  /** Whether the keeper takes this field, which older ones do not. */
  takes(field: 'pidfile' | 'openFiles'): boolean {
    return this.#newFields?.has(field) ?? true;
  }

  /** Another keeper takes its place. */
  lost(connection: KeeperConnection): void {
    if (this.#connection !== connection || this.#isClosed) return;
    this.#connection = undefined;
    this.#connecting = this.#reconnect();
    this.#connecting.then(
      (ready) => {
        if (!this.#isClosed) this.#host.onRestarted(ready);
      },
      (error: unknown) => {
        if (!this.#isClosed) this.#host.onLost(error as Error);
      },
    );
  }

  /** The next keeper lets go on what this one has paused: it has to wait for this work. */
  async withoutAnother(work: Promise<void>): Promise<void> {
    this.#working.add(work);
    try {
      await work;
    } finally {
      this.#working.delete(work);
    }
  }

  async #reconnect(): Promise<KeeperReady> {
    await Promise.allSettled(this.#working);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#connect();
      } catch (error) {
        if (attempt === RECONNECTS || this.#isClosed) throw error;
        await sleep(attempt * 20);
      }
    }
  }

  async connected(): Promise<KeeperConnection> {
    if (this.#isClosed) throw closedError();
    if (this.#connection === undefined) await this.#connecting;
    if (this.#connection !== undefined) return this.#connection;
    throw keeperError('the keeper was not opened; call open() first');
  }

  /**
   * Asks again if the connection is lost: all requests but `signal` say what shall be, and not what
   * to do once more.
   */
  async request(fields: Fields, onAnswer?: (answer: Answer) => void): Promise<Answer> {
    const deadline = performance.now() + LONGEST_REQUEST_MS;
    for (;;) {
      const connection = await this.connected();
      try {
        return await connection.request(fields, onAnswer);
      } catch (error) {
        const isAgain = (fields[0]?.[1] ?? '') !== 'signal' && performance.now() < deadline;
        if (
          !isAgain ||
          !(error instanceof ExitwatchError) ||
          error.code !== 'ERR_EXITWATCH_KEEPER'
        ) {
          throw error;
        }
        this.lost(connection);
      }
    }
  }
}
