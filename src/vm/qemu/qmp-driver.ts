import { isObject } from '../../common/is-object.js';
import { LATE, withDeadline } from '../../common/deadline.js';
import { ExitwatchError, reasonOf } from '../../common/errors.js';

import { emitSafely } from '../../common/emit-safely.js';
import { guestAgentDriver } from './guest-agent-driver.js';
import { QmpClient } from './qmp-client.js';
import { ANSWER_MS, type VmDriver } from '../control/vm-driver.js';

/** Options of {@link qmpDriver}. */
export interface QmpDriverOptions {
  /** A QMP socket without another client: QEMU serves one client at a time. */
  socket: string;
  /**
   * The socket of the guest agent's channel (qemu-ga). With it, `powerDown()` asks the agent to
   * shut the guest down; if the agent cannot be asked, or refuses, it presses the power button.
   */
  agent?: string;
  /** Called with the reason when `powerDown()` presses the button in place of the agent. */
  onFallback?: (reason: Error) => void;
  /** The process that must listen at these sockets. Default: any. */
  pid?: number;
}

/**
 * A driver for QEMU, through a QMP socket and, if given, its guest's agent. Each request has a
 * connection of its own.
 *
 * Its methods reject with an {@link ExitwatchError}: `ERR_EXITWATCH_NO_QMP` if nobody answers at
 * the socket, so that nothing was asked; `ERR_EXITWATCH_QMP`; `ERR_EXITWATCH_ABORTED` if asking the
 * agent was aborted.
 *
 * @see [Stop and restart a machine](../../../docs/vm-control.md)
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
      throw failure(socket, 'did not report a status');
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
 * Calls `use` with a connection of its own, which is negotiated before and closed afterwards.
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
        reject(noQmp(`${JSON.stringify(path)} was closed`));
      });
    });
    if ((await withDeadline(greeted, ANSWER_MS)) === LATE) {
      const what = 'sent no greeting: it hangs, or another client is connected';
      throw noQmp(`${JSON.stringify(path)} ${what}`);
    }
    client.on('error', () => undefined); // its requests reject then
    return await use(client);
  } finally {
    signal?.removeEventListener('abort', leave);
    client.close();
  }
}

/** Nothing was asked of it yet. */
function noQmp(detail: string, cause?: unknown): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_NO_QMP', detail, cause === undefined ? {} : { cause });
}

function unusable(path: string, error: Error): ExitwatchError {
  return noQmp(`cannot use ${JSON.stringify(path)}: ${reasonOf(error)}`, error);
}

function failure(path: string, what: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_QMP', `${JSON.stringify(path)} ${what}`);
}
