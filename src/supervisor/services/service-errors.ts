import { ExitwatchError } from '../../common/errors.js';

export function stopTimeout(name: string, ms: number): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_TIMEOUT',
    `${JSON.stringify(name)} is still stopping after ${ms} ms; it goes on`,
  );
}

export function waitingError(name: string, verb: string): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_WRONG_PHASE',
    `cannot ${verb} ${JSON.stringify(name)}: it is waiting for what was redacted; apply() it first`,
  );
}

/** It cannot do this as it is. */
export function phaseError(
  name: string,
  verb: string,
  phase: string,
  from: string,
): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_WRONG_PHASE',
    `cannot ${verb} ${JSON.stringify(name)}: it is ${phase}, and must be ${from}`,
  );
}

export function stoppedError(name: string): ExitwatchError {
  const detail = `${JSON.stringify(name)} was stopped before it was started`;
  return new ExitwatchError('ERR_EXITWATCH_ABORTED', detail);
}

export function startedError(name: string): ExitwatchError {
  const detail = `${JSON.stringify(name)} was started again before it was stopped`;
  return new ExitwatchError('ERR_EXITWATCH_ABORTED', detail);
}

export function closedError(): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the supervisor was closed');
}

/** There is no service of this name. */
export function noService(name: string): ExitwatchError {
  const detail = `there is no service ${JSON.stringify(name)}`;
  return new ExitwatchError('ERR_EXITWATCH_NO_SERVICE', detail);
}

/** What is left of its run waits in the kernel, where no signal reaches it. */
export function survivedError(name: string, left: readonly { pid: number }[]): ExitwatchError {
  const pids = left.map(({ pid }) => pid).join(', ');
  return new ExitwatchError(
    'ERR_EXITWATCH_TIMEOUT',
    `something of ${JSON.stringify(name)} has survived SIGKILL: ${pids}`,
  );
}
