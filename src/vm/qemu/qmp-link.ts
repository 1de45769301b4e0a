import { ExitwatchError } from '../../common/errors.js';

import { QmpClient } from './qmp-client.js';
import { isObject, type QmpEvent } from './qmp-event.js';
import { isTelling, keepEvent } from '../evidence/timeline.js';

/** How often a socket is tried: at first, since it is about to appear, and then. */
const SOON_MS = 50;
const SOON_TIMES = 40;
const LATER_MS = 1000;

/** So long a greeting may take: it comes at once, unless somebody else is being served. */
const GREETING_MS = 2000;

/** After its process has ended, what it sent before is there already. */
const QUIET_MS = 50;

/** How often one that was stopped is asked whether it is something else by now: ever more seldom. */
const PAUSED_MS = 50;
const PAUSED_LONG_MS = 10_000;

/** It may be about to be something else, without a word. */
const PASSING: readonly string[] = ['paused', 'finish-migrate', 'save-vm'];

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

/** The connection to one virtual machine's QMP socket, for as long as it lives. */
export class QmpLink {
  readonly events: QmpEvent[] = [];
  /** What `query-status` said first; `null` before. */
  initialStatus: string | null = null;
  /** What it said when it was asked last, unless it went on since; `null`: not asked. */
  lastStatus: string | null = null;
  /** When that was. */
  lastStatusAt: Date | null = null;
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
  readonly #told = new Set<string>();
  #client: QmpClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #asking: NodeJS.Timeout | undefined;
  #tries = 0;
  #isClosed = false;
  #connections = 0;
  /** How often it went on. */
  #goings = 0;

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
    clearTimeout(this.#asking);
    await this.#client?.drain(QUIET_MS);
    this.#client?.close();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#asking);
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
    if (event.event === 'STOP') void this.#askStatus();
    if (event.event === 'RESUME' || event.event === 'RESET') {
      this.#goings++;
      this.lastStatus = null;
    }
    if (!keepEvent(this.events, event)) this.isOverflown = true;
  }

  async #onReady(client: QmpClient): Promise<void> {
    if (this.readyAt !== null) {
      void this.#askStatus();
      return;
    }
    this.readyAt = new Date();
    const eventsBefore = await this.#askStatus();
    if (eventsBefore === 0) this.initialStatus = this.lastStatus;
    try {
      this.tellsMigration = tellsOf(await client.execute('query-migrate-capabilities'));
    } catch {
      // It ends already, or is too old to be asked.
    }
    this.#listener.ready();
  }

  /** How many events came before its answer; nothing where there was none. */
  async #askStatus(delayMs = PAUSED_MS): Promise<number | undefined> {
    const goings = this.#goings;
    clearTimeout(this.#asking);
    try {
      const answer = await this.#client?.query('query-status');
      const { value, eventsBefore } = answer ?? {};
      if (!isObject(value) || typeof value['status'] !== 'string') return undefined;
      if (goings === this.#goings) {
        this.lastStatus = value['status'];
        this.lastStatusAt = new Date();
        if (PASSING.includes(this.lastStatus) && !this.#isClosed) {
          const nextMs = Math.min(2 * delayMs, PAUSED_LONG_MS);
          this.#asking = setTimeout(() => void this.#askStatus(nextMs), delayMs).unref();
        }
      }
      return eventsBefore;
    } catch {
      return undefined; // it ends already
    }
  }

  #warn(error: Error): void {
    this.isUnusable = true;
    if (this.#told.has(error.message) || this.#told.size >= MOST_WARNINGS) return;
    this.#told.add(error.message);
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
