import { GuestAgentClient } from './guest-agent-client.js';
import type { VmDriver } from '../control/vm-driver.js';

/** It refuses at once, or when its guest's shutdown(8) has. */
const REFUSAL_MS = 2000;

/** Where a guest agent is. */
export interface GuestAgentOptions {
  /** Of its channel, for us alone: it serves one client at a time. */
  socket: string;
  /** The process that has to listen at the socket: the hypervisor's; without, any. */
  pid?: number;
}

/**
 * The power button of a guest in which QEMU's guest agent (qemu-ga) runs: the agent has the guest shut itself
 * down (`guest-shutdown`), also where nothing in it listens to ACPI. It is no more than that: for a whole
 * driver, see `agent` of {@link qmpDriver}.
 *
 * The agent does not answer when it obeys: `powerDown()` resolves when it has not refused for two seconds.
 * Rejects with an `ExitwatchError`: `ERR_EXITWATCH_NO_AGENT` where it was asked for nothing, as it does
 * not answer; `ERR_EXITWATCH_AGENT` where it refuses, or its answer makes no sense; `ERR_EXITWATCH_ABORTED`.
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
