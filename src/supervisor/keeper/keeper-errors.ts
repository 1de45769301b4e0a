import { getSystemErrorMap } from 'node:util';

import { ExitwatchError } from '../../common/errors.js';
import { invalidOption } from '../../common/options.js';

import { keeperError } from './connection.js';
import type { KeeperRun } from './keeper-run.js';
import type { Message } from './message.js';
import type { RunOptions } from './run-options.js';

/** What a keeper has refused. */
export function answerError(message: Message, id: string): ExitwatchError {
  const code = message.text('error') ?? '';
  const detail = message.text('detail') ?? '';
  const errno = message.number('errno') ?? 0;
  const reason = errnoText(errno);
  if (code === 'no-run') return noRun(id);
  if (code === 'busy') {
    return new ExitwatchError(
      'ERR_EXITWATCH_BUSY',
      id === '' ? 'a log is being rotated' : `something of run ${JSON.stringify(id)} is alive`,
    );
  }
  if (code === 'bad-request') return invalidOption(`the keeper refused ${detail}`);
  if (code === 'unsupported') {
    return keeperError(`this keeper does not support ${detail}; upgrade it`);
  }
  if (code === 'leaving') return keeperError('the keeper was told to end, and starts nothing');
  if (code === 'journal') return keeperError(`the keeper cannot write its journal: ${reason}`);
  const name = errno === 1 ? 'ERR_EXITWATCH_NOT_PERMITTED' : 'ERR_EXITWATCH_SYSTEM';
  return new ExitwatchError(name, `${detail === '' ? code : detail}: ${reason}`, { errno });
}

/** @throws ExitwatchError what the keeper has refused */
export function checkAnswer(message: Message, id: string): void {
  if (message.has('error')) throw answerError(message, id);
}

function errnoText(errno: number): string {
  return getSystemErrorMap().get(-errno)?.[1] ?? `error ${errno}`;
}

export function startError({ id, command }: RunOptions, { failure }: KeeperRun): ExitwatchError {
  const { step, errno } = failure ?? { step: 'unknown', errno: 0 };
  const detail = `cannot start ${JSON.stringify(command)} (${id}): ${step}: ${errnoText(errno)}`;
  return new ExitwatchError('ERR_EXITWATCH_START_FAILED', detail, { errno, syscall: step });
}

export function noRun(id: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_NO_RUN', `there is no run ${JSON.stringify(id)}`);
}

export function closedError(): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the keeper was closed');
}
