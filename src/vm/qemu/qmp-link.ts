import { isObject } from '../../common/is-object.js';
import { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent } from '../../events/exit-event.js';

import { QmpClient } from './qmp-client.js';
import { type QmpEvent } from './qmp-event.js';
import { RunStatus } from './run-status.js';
import { keepEvent, tellingOf } from './telling-events.js';

/** How often to try the socket: at first, as it is about to appear, and later. */
const SOON_MS = 50;
const SOON_TIMES = 40;
const LATER_MS = 1000;

/** How long a greeting may take: it comes at once, unless QEMU serves another client. */
const GREETING_MS = 2000;

/** A connection ends within about this time of its process. */
const LOST_MS = 100;

/** How long to drain: when the process has exited, all that it sent has arrived already. */
const QUIET_MS = 50;

/** What {@link QmpLink} reports. */
export interface QmpLinkListener {
  /** Negotiated for the first time. */
  ready(): void;
  /** Something does not work; each message once. */
  warning(error: Error): void;
}

const MOST_WARNINGS = 20;

/** The socket does not exist yet, or no more: the exit of its process will say so. */
const ABSENT: readonly unknown[] = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'];

/** The connection to one virtual machine's QMP socket, for as long as that runs. */
export class QmpLink {
  readonly events: QmpEvent[] = [];
  /** The first answer to `query-status`, if no event came before it; otherwise `null`. */
  initialStatus: string | null = null;
  /** What QEMU says it is doing. */
  readonly status = new RunStatus();
  /** QEMU reports migrations as events. */
  tellsMigration = false;
  /** When it was first negotiated. */
  readyAt: Date | null = null;
  /** When a negotiated connection was lost: before its process exited, or because it did. */
  lostAt: Date | null = null;
  /** There were more events than are kept. */
  isOverflown = false;
  /** The socket existed. */
  wasThere = false;
  /** QEMU greeted us at least once. */
  wasGreeted = false;
  /** The socket hangs, serves another client, or speaks another protocol. */
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

  /** `owner`: the process whose socket it must be; `null`: any. */
  constructor(path: string, owner: number | null, listener: QmpLinkListener) {
    this.#path = path;
    this.#owner = owner;
    this.#listener = listener;
    this.#connect();
  }

  /** Commands can be sent. */
  get isReady(): boolean {
    return this.#client?.isReady === true;
  }

  /** The connection was lost and renewed: events may be missing. */
  get wasInterrupted(): boolean {
    return this.#connections > 1;
  }

  /** No event is missing from the negotiation to the exit of the process. */
  isUnbroken({ exitedAt, uncertaintyMs }: ExitEvent): boolean {
    if (this.readyAt === null || this.wasInterrupted || this.isOverflown) return false;
    // If the connection was lost before the exit, and without SHUTDOWN, events may be missing.
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

  /** Reads what is left after the process has exited, and closes. */
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
      const what = 'sent no greeting: it hangs, or another client is connected';
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
      // The other end closed the connection without a greeting.
      if (client.isConnected && !client.isGreeted) this.isUnusable = true;
      if (this.readyAt !== null) this.lostAt ??= new Date();
      if (this.#isClosed) return;
      const afterMs = this.#tries++ < SOON_TIMES ? SOON_MS : LATER_MS;
      this.#timer = setTimeout(() => {
        this.#connect();
      }, afterMs);
    });
  }

  #keep(said: QmpEvent): void {
    const event = tellingOf(said);
    if (event === null) return;
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
      // It is about to exit, or too old for this command.
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

/** Reads the answer to query-migrate-capabilities. */
function tellsOf(capabilities: unknown): boolean {
  return (
    Array.isArray(capabilities) &&
    capabilities.some(
      (each) => isObject(each) && each['capability'] === 'events' && each['state'] === true,
    )
  );
}
