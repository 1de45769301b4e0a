import { randomInt } from 'node:crypto';
import { connect, type Socket } from 'node:net';

import { isObject } from '../../common/is-object.js';
import { LATE, withDeadline } from '../../common/deadline.js';
import { ExitwatchError } from '../../common/errors.js';

import { LineSplitter } from '../../common/line-splitter.js';
import { strangerAt } from '../../native/socket-peer.js';
import { ANSWER_MS } from '../control/vm-driver.js';

/** Never a byte of UTF-8: the agent's answer to `guest-sync-delimited` begins with it. */
const DELIMITER = 0xff;

/** Longer than any answer to our commands. */
const MOST_LINE_BYTES = 64 * 1024;

/** Bytes to skip of what an agent has sent to earlier clients. */
const MOST_LEFT_BYTES = 1024 * 1024;

/** Characters to keep of the agent's own words. */
const MOST_REASON = 200;

/** How a wait for an answer ended, if not by an error. */
type Reply = { kind: 'answer'; answer: Record<string, unknown> } | { kind: 'silent' | 'gone' };

interface Pending {
  isOurs: (answer: Record<string, unknown>) => boolean;
  resolve: (reply: Reply) => void;
  reject: (error: Error) => void;
}

/**
 * A client of QEMU's guest agent (qemu-ga) on the unix socket of its channel, which serves one
 * client at a time. Behind the socket is a serial line: the socket exists without an agent, too,
 * and may still deliver what an agent sent to earlier clients.
 *
 * Errors before the agent has answered are `ERR_EXITWATCH_NO_AGENT`: nothing was asked of it. Later
 * errors are `ERR_EXITWATCH_AGENT`.
 */
export class GuestAgentClient {
  readonly path: string;
  readonly #socket: Socket;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => {
    this.#fail(
      new ExitwatchError('ERR_EXITWATCH_ABORTED', 'the request to the guest agent was aborted', {
        cause: this.#signal?.reason,
      }),
    );
  };
  #lines = new LineSplitter(MOST_LINE_BYTES);
  #leftBytes = 0;
  #isDelimited = false;
  #isSynchronized = false;
  #pending: Pending | undefined;
  /** Why the client cannot be used any more. */
  #failure: ExitwatchError | undefined;
  #isGone = false;

  /** `owner`: the process that must be at the other end; `null`: any. */
  constructor(path: string, owner: number | null = null, signal?: AbortSignal) {
    this.path = path;
    this.#signal = signal;
    this.#socket = connect({ path });
    this.#socket.on('connect', () => {
      const stranger = strangerAt(this.#socket, owner);
      if (stranger === null) return;
      this.#fail(this.#error(`belongs to ${stranger}, not to process ${owner}`));
    });
    this.#socket.on('data', (chunk) => {
      this.#onData(chunk);
    });
    this.#socket.on('error', (error) => {
      // QEMU exits with its guest, perhaps before it has read all that we sent.
      if (!this.#isSynchronized) this.#fail(this.#error(`cannot be used: ${error.message}`, error));
    });
    this.#socket.on('close', () => {
      this.#isGone = true;
      this.#pending?.resolve({ kind: 'gone' });
    });
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (signal?.aborted === true) this.#onAbort();
  }

  /**
   * Resolves when the agent has answered: what it sends from then on is for us.
   *
   * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_NO_AGENT`, `ERR_EXITWATCH_ABORTED`.
   */
  async synchronize(timeoutMs: number = ANSWER_MS): Promise<void> {
    const id = randomInt(2 ** 47);
    // The delimiter also ends what an earlier client may have sent half of.
    const message = Buffer.concat([Buffer.of(DELIMITER), line('guest-sync-delimited', { id })]);
    // An answer with another id is for an earlier client.
    const reply = await this.#ask(message, timeoutMs, (answer) => answer['return'] === id);
    if (reply.kind === 'gone') throw this.#error('was closed');
    if (reply.kind === 'silent') {
      throw this.#error(
        `did not answer within ${timeoutMs} ms: no agent runs in the guest, or another client is connected`,
      );
    }
    this.#isSynchronized = true;
  }

  /**
   * Sends a command that the agent answers only to refuse it. Resolves when no refusal came within
   * `patienceMs`, or the agent is gone: other evidence must show whether it worked.
   *
   * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_AGENT`, `ERR_EXITWATCH_ABORTED`.
   */
  async tell(command: string, args: object, patienceMs: number): Promise<void> {
    const isAnswer = (each: Record<string, unknown>) => 'return' in each || 'error' in each;
    const reply = await this.#ask(line(command, args), patienceMs, isAnswer);
    if (reply.kind !== 'answer' || !('error' in reply.answer)) return;
    const { error } = reply.answer;
    const reason =
      isObject(error) && typeof error['desc'] === 'string' ? error['desc'] : 'no reason given';
    throw this.#error(`refused ${command}: ${reason.slice(0, MOST_REASON)}`);
  }

  close(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#socket.destroy();
  }

  async #ask(message: Buffer, timeoutMs: number, isOurs: Pending['isOurs']): Promise<Reply> {
    const reply = new Promise<Reply>((resolve, reject) => {
      this.#pending = { isOurs, resolve, reject };
      if (this.#failure !== undefined) reject(this.#failure);
      else if (this.#isGone) resolve({ kind: 'gone' });
      this.#socket.write(message);
    });
    try {
      const answered = await withDeadline(reply, timeoutMs);
      return answered === LATE ? { kind: 'silent' } : answered;
    } finally {
      this.#pending = undefined;
    }
  }

  #onData(chunk: Buffer): void {
    let rest = chunk;
    for (let at = rest.indexOf(DELIMITER); at >= 0; at = rest.indexOf(DELIMITER)) {
      // What came before was for another client, or no answer at all.
      this.#lines = new LineSplitter(MOST_LINE_BYTES);
      this.#isDelimited = true;
      this.#count(at + 1);
      rest = rest.subarray(at + 1);
    }
    this.#count(rest.length);
    if (!this.#isDelimited) return;
    for (const text of this.#lines.push(rest)) this.#onLine(text);
    if (this.#lines.isTooLong) {
      this.#fail(this.#error(`sent a line of more than ${MOST_LINE_BYTES} bytes`));
    }
  }

  #count(bytes: number): void {
    if (this.#isSynchronized) return;
    this.#leftBytes += bytes;
    if (this.#leftBytes > MOST_LEFT_BYTES) {
      this.#fail(this.#error(`sent more than ${MOST_LEFT_BYTES} bytes without an answer`));
    }
  }

  #onLine(text: string): void {
    if (text.trim() === '') return;
    const answer = parse(text);
    if (!isObject(answer)) {
      // Until synchronized, the message may be for another client.
      if (this.#isSynchronized) this.#fail(this.#error('sent an invalid answer'));
      return;
    }
    const pending = this.#pending;
    if (pending?.isOurs(answer) !== true) return;
    this.#pending = undefined;
    pending.resolve({ kind: 'answer', answer });
  }

  #fail(error: ExitwatchError): void {
    this.#failure ??= error;
    this.#pending?.reject(this.#failure);
    this.#socket.destroy();
  }

  #error(what: string, cause?: unknown): ExitwatchError {
    const code = this.#isSynchronized ? 'ERR_EXITWATCH_AGENT' : 'ERR_EXITWATCH_NO_AGENT';
    const detail = `the guest agent's socket ${JSON.stringify(this.path)} ${what}`;
    return new ExitwatchError(code, detail, cause === undefined ? {} : { cause });
  }
}

function line(command: string, args: object): Buffer {
  return Buffer.from(`${JSON.stringify({ execute: command, arguments: args })}\n`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
