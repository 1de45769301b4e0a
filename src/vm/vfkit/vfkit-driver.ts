import { request } from 'node:http';

import { ExitwatchError } from '../../common/errors.js';

import { isObject } from '../qemu/qmp-event.js';
import { ANSWER_MS, type VmDriver } from '../control/vm-driver.js';

/** More than it ever says. */
const MOST_BYTES = 64 * 1024;

/** Of its own words. */
const MOST_WORD = 100;

/**
 * vfkit (Apple's Virtualization framework), by its RESTful service on a unix socket (`--restful-uri
 * unix://…`): `GET` and `POST /vm/state`. It ends in the middle of its answer to a HardStop, as a rule.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_CONTROL`.
 */
export function vfkitDriver({ socket }: { socket: string }): VmDriver {
  const change = async (state: string, signal?: AbortSignal) => {
    await ask(socket, { state }, signal);
  };
  return {
    state: async (signal) => {
      const answer = parse(await ask(socket, null, signal));
      if (isObject(answer) && typeof answer['state'] === 'string') {
        return answer['state'].slice(0, MOST_WORD);
      }
      throw failure(socket, 'does not tell its state');
    },
    powerDown: (signal) => change('Stop', signal),
    forceOff: (signal) => change('HardStop', signal),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Resolves with what it answers, if that is a success. */
function ask(socketPath: string, body: object | null, signal?: AbortSignal): Promise<string> {
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
          if (bytes > MOST_BYTES) fail(`answers with more than ${MOST_BYTES} bytes`);
          else chunks.push(chunk);
        });
        response.on('error', (error) => {
          fail(`ended in the middle of its answer: ${error.message}`, error);
        });
        response.on('end', () => {
          const status = response.statusCode ?? 0;
          if (status < 200 || status > 299) fail(`answers with ${status}`);
          clearTimeout(late);
          resolve(Buffer.concat(chunks).toString('utf8'));
        });
      },
    );
    const late = setTimeout(() => {
      fail(`has not answered ${body === null ? 'GET' : 'POST'} /vm/state after ${ANSWER_MS} ms`);
    }, ANSWER_MS);
    asked.on('error', (error) => {
      fail(`does not answer: ${error.message}`, error);
    });
    asked.end(body === null ? undefined : JSON.stringify(body));
  });
}

function failure(path: string, what: string, cause?: unknown): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_CONTROL', `${JSON.stringify(path)} ${what}`, { cause });
}
