import { closeSync, constants, openSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';

import { ExitwatchError, type ExitwatchErrorCode, reasonOf } from '../../common/errors.js';

import { type QuestionName, type Questions, type Refusal, SOCKET_NAME } from './protocol.js';

const NOBODY = ['ENOENT', 'ECONNREFUSED', 'ENOTDIR'];
const MOST_ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * Asks the supervisor of a folder.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NO_SUPERVISOR`, `…_NOT_PERMITTED`, and what the
 * supervisor answers.
 */
export async function ask<Name extends QuestionName>(
  folder: string,
  name: Name,
  question: Questions[Name]['question'],
): Promise<Questions[Name]['answer']> {
  const answer = await post(folder, name, JSON.stringify(question));
  if (!('error' in answer)) return answer as unknown as Questions[Name]['answer'];
  const { code, message } = (answer as unknown as Refusal).error;
  throw new ExitwatchError(code as ExitwatchErrorCode, message);
}

function post(folder: string, name: string, body: string): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    let directory: number;
    try {
      directory = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    } catch (error) {
      reject(askError(folder, error));
      return;
    }
    const socketPath = join('/proc/self/fd', String(directory), SOCKET_NAME);
    const asking = request({ socketPath, path: `/${name}`, method: 'POST', agent: false });
    const fail = (error: unknown) => {
      reject(askError(folder, error));
    };
    asking.once('socket', (socket) => {
      socket.once('connect', () => {
        closeSync(directory);
        directory = -1;
      });
    });
    asking.on('error', fail);
    asking.once('close', () => {
      if (directory !== -1) closeSync(directory);
      fail(new Error('it went away before it answered'));
    });
    asking.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (text.length > MOST_ANSWER_BYTES) asking.destroy(new Error('its answer is too long'));
      });
      response.once('end', () => {
        try {
          resolve(JSON.parse(text) as Record<string, unknown>);
        } catch (error) {
          fail(error);
        }
      });
    });
    asking.end(body);
  });
}

function askError(folder: string, error: unknown): ExitwatchError {
  const { code = '' } = error as NodeJS.ErrnoException;
  const where = JSON.stringify(folder);
  if (NOBODY.includes(code)) {
    const detail = `no supervisor runs in ${where}`;
    const remedy = 'start "exitwatch supervise", or name its directory with --state-dir';
    return new ExitwatchError('ERR_EXITWATCH_NO_SUPERVISOR', detail, { remedy, cause: error });
  }
  const detail = `cannot ask the supervisor in ${where}: ${reasonOf(error)}`;
  const isDenied = code === 'EACCES' || code === 'EPERM';
  const kind = isDenied ? 'ERR_EXITWATCH_NOT_PERMITTED' : 'ERR_EXITWATCH_NO_SUPERVISOR';
  return new ExitwatchError(kind, detail, { cause: error });
}
