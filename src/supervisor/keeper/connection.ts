import { EventEmitter, once } from 'node:events';
import type { Socket } from 'node:net';

import { LATE, withDeadline } from '../../common/deadline.js';
import { ExitwatchError } from '../../common/errors.js';

import { encodeMessage, type Message, MessageReader, type Fields } from './message.js';

const PROTOCOL = 1;
const LONGEST_HELLO_MS = 10_000;

interface Pending {
  items: Message[];
  onAnswer: ((answer: Answer) => void) | undefined;
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
}

/** An answer, and what a `list` has before it. */
export interface Answer {
  message: Message;
  items: Message[];
}

interface ConnectionEvents {
  hello: [Message];
  event: [Message];
  close: [];
}

/** Requests to a keeper, and what it tells, over one socket. */
export class KeeperConnection extends EventEmitter<ConnectionEvents> {
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  #seq = 0;
  #isClosed = false;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    const reader = new MessageReader();
    socket.on('data', (piece: Buffer) => {
      try {
        for (const message of reader.read(piece)) this.#take(message);
      } catch {
        socket.destroy();
      }
    });
    socket.on('error', () => undefined); // 'close' follows
    socket.once('close', () => {
      this.#isClosed = true;
      const gone = keeperError('the connection to the keeper was lost');
      for (const { reject } of this.#pending.values()) reject(gone);
      this.#pending.clear();
      this.emit('close');
    });
  }

  /**
   * The first message; `null` if the keeper ended before it could say anything. Rejects if it speaks
   * another protocol.
   */
  async hello(): Promise<Message | null> {
    const lost = once(this, 'close').then(() => null);
    const said = once(this, 'hello').then(([message]: Message[]) => message ?? null);
    const message = await withDeadline(Promise.race([said, lost]), LONGEST_HELLO_MS);
    if (message === null) return null;
    if (message !== LATE && message.number('protocol') === PROTOCOL) return message;
    this.close();
    throw keeperError(
      message === LATE ? 'the keeper does not answer' : 'the keeper speaks another protocol',
    );
  }

  /**
   * Rejects only if the connection is lost.
   *
   * @param onAnswer called before any event that the keeper told after its answer, which may have come with it
   */
  request(fields: Fields, onAnswer?: (answer: Answer) => void): Promise<Answer> {
    const seq = ++this.#seq;
    const bytes = encodeMessage([['seq', String(seq)], ...fields]);
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        reject(keeperError('the connection to the keeper was lost'));
        return;
      }
      this.#pending.set(seq, { items: [], onAnswer, resolve, reject });
      this.#socket.write(bytes);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  ref(): void {
    this.#socket.ref();
  }

  unref(): void {
    this.#socket.unref();
  }

  #take(message: Message): void {
    const event = message.text('event');
    if (event === 'hello') this.emit('hello', message);
    else if (event !== null) this.emit('event', message);
    else this.#answer(message);
  }

  #answer(message: Message): void {
    const seq = message.number('seq') ?? -1;
    const pending = this.#pending.get(seq);
    if (pending === undefined) return;
    if (message.has('item')) {
      pending.items.push(message);
      return;
    }
    this.#pending.delete(seq);
    const answer = { message, items: pending.items };
    try {
      pending.onAnswer?.(answer);
      pending.resolve(answer);
    } catch (error) {
      pending.reject(error as Error);
    }
  }
}

/** An error of the keeper itself. */
export function keeperError(detail: string, cause?: unknown): ExitwatchError {
  const more = cause === undefined ? {} : { cause };
  return new ExitwatchError('ERR_EXITWATCH_KEEPER', detail, more);
}
