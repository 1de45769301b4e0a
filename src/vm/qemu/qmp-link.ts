import { isObject } from '../../common/is-object.js';
import { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent } from '../../events/exit-event.js';

import { QmpClient } from './qmp-client.js';
import { type QmpEvent } from './qmp-event.js';
import { RunStatus } from './run-status.js';
import { isTelling, keepEvent } from './telling-events.js';

/** How often a socket is tried: at first, since it is about to appear, and then. */
const SOON_MS = 50;
const SOON_TIMES = 40;
const LATER_MS = 1000;

/** So long a greeting may take: it comes at once, unless somebody else is being served. */
const GREETING_MS = 2000;

/** A connection ends with its process, about. */
const LOST_MS = 100;

/** After its process has ended, what it sent before is there already. */
const QUIET_MS = 50;

/** What {@link QmpLink} tells. */
export interface QmpLinkListener {
  /** Negotiated for the first time. */
  ready(): void;
  /** What is wrong; each thing once. */
  warning(error: Error): void;
}

const MOST_WARNINGS = 20;

/** Not there yet, or not any more: that is what its process's end is for. */
const ABSENT: readonly unknown[] = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'];

/** The connection to one virtual machine's QMP socket, for as long as it runs. */
export class QmpLink {
  readonly events: QmpEvent[] = [];
  /** What `query-status` said first; `null` before. */
  initialStatus: string | null = null;
  /** What it says that it is doing. */
  readonly status = new RunStatus();
  /** It tells of migrations by events. */
  tellsMigration = false;
  /** When it was negotiated first. */
  readyAt: Date | null = null;
  /** When the connection, once negotiated, was lost; before its process ended, or because it did. */
  lostAt: Date | null = null;
  /** There were more events than anybody needs. */
  isOverflown = false;
  /** There was such a socket. */
  wasThere = false;
  /** Somebody has begun to talk to us. */
  wasGreeted = false;
  /** It hangs, serves another client, or speaks another language. */
  isUnusable = false;
  readonly #path: string;
  readonly #owner: number | null;
  readonly #listener: QmpLinkListener;
  readonly #warned = new Set<string>();
  #client: QmpClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #tries = 0;
  #isClosed = false;
  #connections = 0;

  /** `owner`: whose socket it has to be; `null`: anybody's. */
  constructor(path: string, owner: number | null, listener: QmpLinkListener) {
    this.#path = path;
    this.#owner = owner;
    this.#listener = listener;
    this.#connect();
  }

  /** Of use for commands. */
  get isReady(): boolean {
    return this.#client?.isReady === true;
  }

  /** Events may have come while nobody listened. */
  get wasInterrupted(): boolean {
    return this.#connections > 1;
  }

  /** No event is missing from its first word to the end of its process. */
  isUnbroken({ exitedAt, uncertaintyMs }: ExitEvent): boolean {
    if (this.readyAt === null || this.wasInterrupted || this.isOverflown) return false;
    // Lost before the end, without a word on it: what came then, we did not hear.
    const hasSaidAll = this.events.some(({ event }) => event === 'SHUTDOWN');
    const lostMs = exitedAt.getTime() - (this.lostAt ?? exitedAt).getTime();
    return hasSaidAll || lostMs <= LOST_MS + uncertaintyMs;
  }

  execute(command: string): Promise<unknown> {
    if (this.#client === undefined) {
      return Promise.reject(
        new ExitwatchError('ERR_EXITWATCH_QMP', `${JSON.stringify(this.#path)} is not connected`),
      );
    }
    return this.#client.execute(command);
  }

  /** Its process has ended: reads what is left, and leaves. */
  async end(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.status.close();
    await this.#client?.drain(QUIET_MS);
    this.#client?.close();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.status.close();
    this.#client?.close();
  }

  #connect(): void {
    const client = new QmpClient(this.#path, this.#owner);
    this.#client = client;
    const greeting = setTimeout(() => {
      if (client.isGreeted || client.isClosed) return;
      const what = 'gives no greeting: it hangs, or serves another client';
      this.#warn(new ExitwatchError('ERR_EXITWATCH_QMP', `${JSON.stringify(this.#path)} ${what}`));
    }, GREETING_MS);
    client.on('event', (event) => {
      this.#keep(event);
    });
    client.on('error', (error) => {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT') this.wasThere = true;
      if (!ABSENT.includes(code)) this.#warn(error);
    });
    client.on('ready', () => {
      this.#connections++;
      void this.#onReady(client);
    });
    client.on('close', () => {
      clearTimeout(greeting);
      this.wasThere ||= client.isConnected;
      this.wasGreeted ||= client.isGreeted;
      // Somebody was there, and had no word for us.
      if (client.isConnected && !client.isGreeted) this.isUnusable = true;
      if (this.readyAt !== null) this.lostAt ??= new Date();
      if (this.#isClosed) return;
      const afterMs = this.#tries++ < SOON_TIMES ? SOON_MS : LATER_MS;
      this.#timer = setTimeout(() => {
        this.#connect();
      }, afterMs);
    });
  }

  #keep(event: QmpEvent): void {
    if (!isTelling(event)) return;
    if (event.event === 'STOP') void this.status.ask(this.#client);
    if (event.event === 'RESUME' || event.event === 'RESET') this.status.hasGoneOn();
    if (!keepEvent(this.events, event)) this.isOverflown = true;
  }

  async #onReady(client: QmpClient): Promise<void> {
    if (this.readyAt !== null) {
      void this.status.ask(client);
      return;
    }
    this.readyAt = new Date();
    const eventsBefore = await this.status.ask(client);
    if (eventsBefore === 0) this.initialStatus = this.status.last;
    try {
      this.tellsMigration = tellsOf(await client.execute('query-migrate-capabilities'));
    } catch {
      // It ends already, or is too old to be asked.
    }
    this.#listener.ready();
  }

  #warn(error: Error): void {
    this.isUnusable = true;
    if (this.#warned.has(error.message) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(error.message);
    this.#listener.warning(error);
  }
}

/** The answer to query-migrate-capabilities. */
function tellsOf(capabilities: unknown): boolean {
  return (
    Array.isArray(capabilities) &&
    capabilities.some(
      (each) => isObject(each) && each['capability'] === 'events' && each['state'] === true,
    )
  );
}
