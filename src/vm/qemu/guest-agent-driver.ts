import { GuestAgentClient } from './guest-agent-client.js';
import type { VmDriver } from '../control/vm-driver.js';

/** The agent refuses at once, or as soon as the guest's shutdown(8) does. */
const REFUSAL_MS = 2000;

/**
 * How to reach a guest agent.
 *
 * @see [The guest's agent](../../../docs/vm-control.md#the-guests-agent)
 */
export interface GuestAgentOptions {
  /** The socket of its channel, for us alone: it serves one client at a time. */
  socket: string;
  /** The process that must listen at the socket: the hypervisor. Default: any. */
  pid?: number;
}

/**
 * The power button of a guest that runs QEMU's guest agent (qemu-ga). The agent shuts the guest
 * down (`guest-shutdown`), even if nothing in the guest listens to ACPI. It has `powerDown()` and
 * no more: for a whole driver, see `agent` of {@link qmpDriver}.
 *
 * An agent that obeys does not answer: `powerDown()` resolves if it has not refused within two
 * seconds. Rejects with an `ExitwatchError`: `ERR_EXITWATCH_NO_AGENT` if the agent does not answer,
 * so that nothing was asked of it; `ERR_EXITWATCH_AGENT` if it refuses, or its answer makes no
 * sense; `ERR_EXITWATCH_ABORTED`.
 *
 * @see [The guest's agent](../../../docs/vm-control.md#the-guests-agent)
 */
export function guestAgentDriver({ socket, pid }: GuestAgentOptions): Pick<VmDriver, 'powerDown'> {
  return {
    powerDown: async (signal) => {
      const agent = new GuestAgentClient(socket, pid ?? null, signal);
      try {
        await agent.synchronize();
        await agent.tell('guest-shutdown', { mode: 'powerdown' }, REFUSAL_MS);
      } finally {
        agent.close();
      }
    },
  };
}
