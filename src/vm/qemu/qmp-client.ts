import { EventEmitter } from 'node:events';
import { connect, type Socket } from 'node:net';

import { emitSafely } from '../../common/emit-safely.js';
import { isObject } from '../../common/is-object.js';
import { withDeadline } from '../../common/deadline.js';
import { ExitwatchError } from '../../common/errors.js';

import { LineSplitter } from '../../common/line-splitter.js';
import { parseQmpEvent, type QmpEvent } from './qmp-event.js';
import { strangerAt } from '../../native/socket-peer.js';

/** The events of a {@link QmpClient}. */
export interface QmpClientEvents {
  /** Negotiated: from here on, no event is missing. */
  ready: [];
  event: [QmpEvent];
  /** The connection is of no more use; `close` follows. */
  error: [Error];
  close: [];
}

/** Longer than any answer to our commands. */
const MOST_BYTES = 1024 * 1024;

/** Characters to keep of QEMU's own words. */
const MOST_REASON = 200;

const ANSWER_MS = 5000;

/** An answer, and how many events came before it. */
interface Answer {
  value: unknown;
  eventsBefore: number;
}

interface Pending {
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout;
}

/**
 * A client of the QEMU Machine Protocol (QMP) over a unix socket. QEMU serves one client of a
 * socket at a time: a second one gets no greeting until the first has left.
 *
 * @see [Talk to QMP yourself](../../../docs/vm-control.md#talk-to-qmp-yourself)
 */
export class QmpClient extends EventEmitter<QmpClientEvents> {
  readonly path: string;
  readonly #socket: Socket;
  readonly #lines = new LineSplitter(MOST_BYTES);
  readonly #pending = new Map<string, Pending>();
  #lastId = 0;
  #events = 0;
  #isConnected = false;
  #isGreeted = false;
  #isReady = false;
  #isClosed = false;

  /** `owner`: the process that must be at the other end; `null`: any. */
  constructor(path: string, owner: number | null = null) {
    super();
    this.path = path;
    this.#socket = connect({ path });
    this.#socket.on('connect', () => {
      this.#isConnected = true;
      const stranger = strangerAt(this.#socket, owner);
      if (stranger === null) return;
      this.#fail(this.#error(`belongs to ${stranger}, not to process ${String(owner)}`));
    });
    this.#socket.on('data', (chunk) => {
      try {
        this.#onData(chunk);
      } catch (error) {
        this.#fail(error as Error); // whatever the other end has sent, this process goes on
      }
    });
    this.#socket.on('error', (error) => {
      this.#fail(error);
    });
    this.#socket.on('close', () => {
      this.#onClose();
    });
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  get isGreeted(): boolean {
    return this.#isGreeted;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Resolves with what the hypervisor returns.
   *
   * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_QMP` before `ready`, and if the
   * hypervisor refuses, is gone, or does not answer within `timeoutMs` (default: 5,000).
   */
  execute(
    command: string,
    args?: Record<string, unknown>,
    timeoutMs: number = ANSWER_MS,
  ): Promise<unknown> {
    return this.query(command, args, timeoutMs).then(({ value }) => value);
  }

  /** {@link QmpClient.execute}, with the number of events before the answer. @internal */
  query(
    command: string,
    args?: Record<string, unknown>,
    timeoutMs: number = ANSWER_MS,
  ): Promise<Answer> {
    if (!this.#isReady) return Promise.reject(this.#error(`is not ready for ${command}`));
    return this.#send(command, args, timeoutMs);
  }

  /** Waits until the other end has closed, so that all it sent was read; `quietMs` at most. */
  async drain(quietMs: number): Promise<void> {
    if (this.#isClosed) return;
    const closed = new Promise<void>((resolve) => {
      this.once('close', resolve);
    });
    await withDeadline(closed, quietMs);
  }

  close(): void {
    this.#socket.destroy();
  }

  unref(): void {
    this.#socket.unref();
  }

  #send(command: string, args: object | undefined, timeoutMs: number): Promise<Answer> {
    const id = `exitwatch-${String(++this.#lastId)}`;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(this.#error(`did not answer ${command} within ${String(timeoutMs)} ms`));
      }, timeoutMs);
      this.#pending.set(id, { resolve, reject, timer });
      const message =
        args === undefined ? { execute: command, id } : { execute: command, arguments: args, id };
      this.#socket.write(`${JSON.stringify(message)}\n`);
    });
  }

  #onData(chunk: Buffer): void {
    for (const line of this.#lines.push(chunk)) {
      if (this.#socket.destroyed) return;
      this.#onLine(line);
    }
    if (this.#lines.isTooLong)
      this.#fail(this.#error(`sent a message of more than ${MOST_BYTES} bytes`));
  }

  #onLine(line: string): void {
    if (line.trim() === '') return;
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      this.#fail(this.#error('sent something that is not JSON'));
      return;
    }
    if (!isObject(message)) this.#fail(this.#error('sent something that is not a QMP message'));
    else if ('QMP' in message) this.#onGreeting();
    else if ('return' in message || 'error' in message) this.#onAnswer(message);
    else this.#onEvent(message);
  }

  #onGreeting(): void {
    if (this.#isGreeted) return;
    this.#isGreeted = true;
    this.#send('qmp_capabilities', undefined, ANSWER_MS).then(
      () => {
        this.#isReady = true;
        this.emit('ready');
      },
      (error: unknown) => {
        this.#fail(error as Error);
      },
    );
  }

  #onAnswer(message: Record<string, unknown>): void {
    const { id } = message;
    const pending = typeof id === 'string' ? this.#pending.get(id) : undefined;
    if (typeof id !== 'string' || pending === undefined) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    if ('return' in message) {
      pending.resolve({ value: message['return'], eventsBefore: this.#events });
      return;
    }
    const { error } = message;
    const reason =
      isObject(error) && typeof error['desc'] === 'string' ? error['desc'] : 'no reason given';
    const detail = reason.slice(0, MOST_REASON);
    pending.reject(this.#error(`refused the command: ${detail}`));
  }

  #onEvent(message: Record<string, unknown>): void {
    const event = parseQmpEvent(message);
    if (event === null) return;
    this.#events++;
    emitSafely(() => this.emit('event', event));
  }

  #fail(error: Error): void {
    if (this.#isClosed || this.#socket.destroyed) {
      if (!this.#isClosed && this.listenerCount('error') > 0) this.emit('error', error);
      return;
    }
    if (this.listenerCount('error') > 0) this.emit('error', error);
    this.#socket.destroy();
  }

  #onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isReady = false;
    for (const { reject, timer } of this.#pending.values()) {
      clearTimeout(timer);
      reject(this.#error('was closed'));
    }
    this.#pending.clear();
    this.emit('close');
  }

  #error(what: string): ExitwatchError {
    return new ExitwatchError('ERR_EXITWATCH_QMP', `${JSON.stringify(this.path)} ${what}`);
  }
}
