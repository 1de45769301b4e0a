import { request } from 'node:http';

import { isObject } from '../../common/is-object.js';
import { ExitwatchError } from '../../common/errors.js';
import { ANSWER_MS } from '../control/vm-driver.js';
import { strangerAt } from '../../native/socket-peer.js';

/** More than vfkit ever sends. */
const MOST_BYTES = 64 * 1024;

/** Characters to keep of vfkit's own word. */
const MOST_WORD = 100;

/**
 * What vfkit says it is doing (`GET /vm/state`), in its own word. `owner`: the process that must
 * listen at its socket; `null`: any.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_CONTROL`.
 */
export async function stateOf(
  path: string,
  signal?: AbortSignal,
  owner: number | null = null,
): Promise<string> {
  const answer = parse(await ask(path, null, signal, owner));
  if (isObject(answer) && typeof answer['state'] === 'string') {
    return answer['state'].slice(0, MOST_WORD);
  }
  throw failure(path, 'did not report a state');
}

/** Requests a state, such as `Stop` or `HardStop`. Resolves when vfkit has accepted it. */
export async function changeState(
  path: string,
  state: string,
  signal?: AbortSignal,
): Promise<void> {
  await ask(path, { state }, signal);
}

/** Resolves with the body of a successful answer. */
function ask(
  socketPath: string,
  body: object | null,
  signal?: AbortSignal,
  owner: number | null = null,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (what: string, cause?: unknown) => {
      clearTimeout(late);
      reject(failure(socketPath, what, cause));
      asked.destroy();
    };
    const asked = request(
      {
        ...{ socketPath, path: '/vm/state', method: body === null ? 'GET' : 'POST', agent: false },
        ...{ headers: { 'content-type': 'application/json' }, host: 'localhost' },
        ...(signal === undefined ? {} : { signal }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > MOST_BYTES) fail(`answered with more than ${MOST_BYTES} bytes`);
          else chunks.push(chunk);
        });
        response.on('error', (error) => {
          fail(`closed the connection before the answer was complete: ${error.message}`, error);
        });
        response.on('end', () => {
          const status = response.statusCode ?? 0;
          if (status < 200 || status > 299) fail(`answered with HTTP status ${status}`);
          clearTimeout(late);
          resolve(Buffer.concat(chunks).toString('utf8'));
        });
      },
    );
    const late = setTimeout(() => {
      fail(`did not answer ${body === null ? 'GET' : 'POST'} /vm/state within ${ANSWER_MS} ms`);
    }, ANSWER_MS);
    asked.on('socket', (socket) => {
      socket.once('connect', () => {
        const stranger = strangerAt(socket, owner);
        if (stranger !== null) fail(`belongs to ${stranger}, not to process ${String(owner)}`);
      });
    });
    asked.on('error', (error) => {
      fail(`did not answer: ${error.message}`, error);
    });
    asked.end(body === null ? undefined : JSON.stringify(body));
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function failure(path: string, what: string, cause?: unknown): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_CONTROL', `${JSON.stringify(path)} ${what}`, { cause });
}
