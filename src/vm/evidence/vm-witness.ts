import type { ExitEvent } from '../../events/exit-event.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';

import type { VmTestimony } from './vm-evidence.js';

/**
 * One run of a virtual machine under watch, as a {@link VmWitness} sees it.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export interface VmRun {
  name: string;
  /** The hypervisor's process. */
  identity: ProcessIdentity;
  /** When that process started; `null` if unknown. */
  startedAt: Date | null;
  /** The process exists. If not, only the files that it left can testify. */
  isThere: boolean;
  /** Call this once, when the hypervisor answers: the machine is then `running`. */
  ready(): void;
  /** Reports something that does not work; the run stays under watch. */
  warning(error: Error): void;
}

/**
 * Listens to a hypervisor during one run, from the start of the watch to the exit.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export interface VmWitness {
  /**
   * Called when the process has exited, as `exit` says. Resolves with what the hypervisor said
   * until then. The verdict waits for this, so be quick.
   */
  testify(exit: ExitEvent): Promise<VmTestimony>;
  /** Stops listening: the run is of no more interest. Also called after its exit. */
  close(): void;
  /** Reads what is available so far, to leave little for the end. Called now and then. */
  catchUp?(): Promise<void>;
  /** Requests over the witness's own connection; `null`: there is none at present. */
  readonly control?: VmRequests | null;
}

/**
 * Requests that a hypervisor accepts.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export interface VmRequests {
  /** Presses the guest's power button. Resolves when the hypervisor has accepted that. */
  powerDown(signal?: AbortSignal): Promise<void>;
  /** Makes the hypervisor exit at once. It may exit before it answers. */
  forceOff(signal?: AbortSignal): Promise<void>;
}
