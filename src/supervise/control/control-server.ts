import { chmodSync, closeSync, constants, openSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';

import { asExitwatchError, ExitwatchError } from '../../common/errors.js';
import { isObject } from '../../common/is-object.js';
import type { SocketPeer } from '../../native/addon.js';
import { addonRefusal } from '../../native/load-addon.js';
import { peerOf } from '../../native/socket-peer.js';

import { MOST_QUESTION_BYTES, SOCKET_NAME } from './protocol.js';

const MOST_CLIENTS = 64;
const LONGEST_QUESTION_MS = 5000;
/** How often Node.js looks for questions that take longer. */
const CHECK_MS = 1000;

/** Answers a question; throws what is to be told instead. */
export type Answerer = (
  name: string,
  question: Record<string, unknown>,
  peer: SocketPeer | null,
) => Promise<object>;

/**
 * Answers the questions of other processes of this user, and of root: HTTP over a unix socket, because
 * everybody can speak it.
 */
export class ControlServer {
  readonly #folder: string;
  readonly #answer: Answerer;
  readonly #server: Server;
  /** The folder, for as long as somebody can reach the socket through it. */
  #directory = -1;
  readonly #peers = new WeakMap<Socket, SocketPeer | null>();

  constructor(folder: string, answer: Answerer) {
    this.#folder = folder;
    this.#answer = answer;
    this.#server = createServer(
      {
        headersTimeout: LONGEST_QUESTION_MS,
        requestTimeout: LONGEST_QUESTION_MS,
        keepAlive: false,
        connectionsCheckingInterval: CHECK_MS,
      },
      (request, response) => void this.#serve(request, response),
    );
    this.#server.maxConnections = MOST_CLIENTS;
    this.#server.maxRequestsPerSocket = 1;
    this.#server.prependListener('connection', (socket: Socket) => {
      this.#admit(socket);
    });
    this.#server.on('clientError', (_error, socket) => {
      if (!socket.writable) return;
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    });
  }

  /** Only one supervisor has the folder: a socket that is there is left from before. */
  async listen(): Promise<void> {
    // The address of a socket has at most 107 bytes; a path through a descriptor always fits.
    this.#directory = openSync(this.#folder, constants.O_RDONLY | constants.O_DIRECTORY);
    const mask = process.umask(0o177);
    try {
      const path = join('/proc/self/fd', String(this.#directory), SOCKET_NAME);
      rmSync(path, { force: true });
      await new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject);
        this.#server.listen(path, resolve); // binds before it returns
        process.umask(mask);
      });
      chmodSync(path, 0o600);
    } finally {
      process.umask(mask);
    }
  }

  async close(): Promise<void> {
    if (this.#directory === -1) return;
    rmSync(join(this.#folder, SOCKET_NAME), { force: true });
    await new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
      this.#server.closeAllConnections();
    });
    closeSync(this.#directory);
    this.#directory = -1;
  }

  #admit(socket: Socket): void {
    const peer = peerOf(socket);
    this.#peers.set(socket, peer);
    // Without an addon only the mode of the socket keeps others away.
    const isOurs =
      peer === null ? addonRefusal() !== null : [0, process.geteuid?.()].includes(peer.uid);
    if (!isOurs) socket.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const name = questionIn(request);
      const question = await bodyOf(request);
      const peer = this.#peers.get(request.socket) ?? null;
      reply(response, 200, await this.#answer(name, question, peer));
    } catch (error) {
      const { code, message } = asExitwatchError(error);
      reply(response, code === 'ERR_EXITWATCH_SYSTEM' ? 500 : 400, { error: { code, message } });
    }
  }
}

function questionIn({ method, url }: IncomingMessage): string {
  const [, name] = /^\/([a-z-]{1,40})$/.exec(url ?? '') ?? [];
  if (method === 'POST' && name !== undefined) return name;
  throw invalid('a question is POST /NAME');
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MOST_QUESTION_BYTES) throw invalid('the question is too long');
    chunks.push(chunk);
  }
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw invalid('the question is no JSON');
  }
  if (isObject(value) && !Array.isArray(value)) return value;
  throw invalid('the question must be an object');
}

function reply(response: ServerResponse, status: number, answer: object): void {
  const text = JSON.stringify(answer);
  response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' });
  response.end(text);
}

/** It changed nothing. */
export function invalid(message: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_INVALID_OPTION', message);
}
