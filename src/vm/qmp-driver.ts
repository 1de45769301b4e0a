import { ExitwatchError } from '../errors.js';

import { QmpClient } from './qmp-client.js';
import { isObject } from './qmp-event.js';
import { ANSWER_MS, type VmDriver } from './vm-driver.js';

/**
 * QEMU, by a QMP socket that nobody else is connected to: it serves one client at a time. Each request has a
 * connection of its own.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_QMP`.
 */
export function qmpDriver({ socket }: { socket: string }): VmDriver {
  const run = (command: string, signal?: AbortSignal) => execute(socket, command, signal);
  return {
    state: async (signal) => {
      const answer = await run('query-status', signal);
      if (isObject(answer) && typeof answer['status'] === 'string') return answer['status'];
      throw failure(socket, 'does not tell its status');
    },
    powerDown: async (signal) => {
      await run('system_powerdown', signal);
    },
    forceOff: async (signal) => {
      await run('quit', signal);
    },
  };
}

async function execute(path: string, command: string, signal?: AbortSignal): Promise<unknown> {
  signal?.throwIfAborted();
  const client = new QmpClient(path);
  let late: NodeJS.Timeout | undefined;
  const leave = () => {
    client.close();
  };
  signal?.addEventListener('abort', leave, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      client.once('ready', resolve);
      client.once('error', reject);
      client.once('close', () => {
        reject(failure(path, 'is gone'));
      });
      late = setTimeout(() => {
        reject(failure(path, 'gives no greeting: it hangs, or serves another client'));
      }, ANSWER_MS);
    });
    client.on('error', () => undefined); // then its requests reject
    return await client.execute(command);
  } finally {
    clearTimeout(late);
    signal?.removeEventListener('abort', leave);
    client.close();
  }
}

function failure(path: string, what: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_QMP', `${JSON.stringify(path)} ${what}`);
}
