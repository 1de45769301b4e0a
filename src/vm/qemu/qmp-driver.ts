import { isObject } from '../../common/is-object.js';
import { LATE, withDeadline } from '../../common/deadline.js';
import { ExitwatchError, reasonOf } from '../../common/errors.js';

import { emitSafely } from '../../common/emit-safely.js';
import { guestAgentDriver } from './guest-agent-driver.js';
import { QmpClient } from './qmp-client.js';
import { ANSWER_MS, type VmDriver } from '../control/vm-driver.js';

/** Options of {@link qmpDriver}. */
export interface QmpDriverOptions {
  /** A QMP socket that nobody else is connected to: it serves one client at a time. */
  socket: string;
  /**
   * The socket of the channel of its guest's agent (qemu-ga). Then `powerDown()` has the agent shut the guest
   * down; where the agent cannot be asked, or refuses, it presses the power button.
   */
  agent?: string;
  /** Called when the button is pressed for want of an agent, with the reason. */
  onFallback?: (reason: Error) => void;
  /** The process that has to listen at these sockets: its own are not those of another one; without, any. */
  pid?: number;
}

/**
 * QEMU, by a QMP socket, and by its guest's agent, if that is given. Each request has a connection of its
 * own.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NO_QMP` where nobody answers at the socket, so that
 * it was asked for nothing; `ERR_EXITWATCH_QMP`; `ERR_EXITWATCH_ABORTED` where asking the agent was aborted.
 */
export function qmpDriver({ socket, agent, onFallback, pid }: QmpDriverOptions): VmDriver {
  const owner = pid ?? null;
  const run = (command: string, signal?: AbortSignal) =>
    withQmp(socket, owner, signal, (client) => client.execute(command));
  const button = async (signal?: AbortSignal) => {
    await run('system_powerdown', signal);
  };
  return {
    state: async (signal) => {
      const answer = await run('query-status', signal);
      if (isObject(answer) && typeof answer['status'] === 'string') return answer['status'];
      throw failure(socket, 'does not tell its status');
    },
    powerDown: async (signal) => {
      if (agent === undefined) return button(signal);
      try {
        const own = pid === undefined ? {} : { pid };
        await guestAgentDriver({ socket: agent, ...own }).powerDown(signal);
      } catch (error) {
        if (signal?.aborted === true) throw error;
        emitSafely(() => onFallback?.(error as Error));
        await button(signal);
      }
    },
    forceOff: async (signal) => {
      await run('quit', signal);
    },
  };
}

/**
 * Does something with a connection of its own, which is negotiated before and closed afterwards.
 *
 * @internal
 */
export async function withQmp<T>(
  path: string,
  owner: number | null,
  signal: AbortSignal | undefined,
  use: (client: QmpClient) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const client = new QmpClient(path, owner);
  const leave = () => {
    client.close();
  };
  signal?.addEventListener('abort', leave, { once: true });
  try {
    const greeted = new Promise<void>((resolve, reject) => {
      client.once('ready', resolve);
      client.once('error', (error) => {
        reject(
          error instanceof ExitwatchError ? noQmp(error.message, error) : unusable(path, error),
        );
      });
      client.once('close', () => {
        reject(noQmp(`${JSON.stringify(path)} is gone`));
      });
    });
    if ((await withDeadline(greeted, ANSWER_MS)) === LATE) {
      const what = 'gives no greeting: it hangs, or serves another client';
      throw noQmp(`${JSON.stringify(path)} ${what}`);
    }
    client.on('error', () => undefined); // then its requests reject
    return await use(client);
  } finally {
    signal?.removeEventListener('abort', leave);
    client.close();
  }
}

/** It was asked for nothing yet. */
function noQmp(detail: string, cause?: unknown): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_NO_QMP', detail, cause === undefined ? {} : { cause });
}

function unusable(path: string, error: Error): ExitwatchError {
  return noQmp(`${JSON.stringify(path)} cannot be used: ${reasonOf(error)}`, error);
}

function failure(path: string, what: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_QMP', `${JSON.stringify(path)} ${what}`);
}
