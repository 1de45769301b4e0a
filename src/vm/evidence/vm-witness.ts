import type { ExitEvent } from '../../events/exit-event.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';

import type { VmTestimony } from './vm-evidence.js';

/** One run of a virtual machine under watch, as a {@link VmWitness} sees it. */
export interface VmRun {
  name: string;
  /** Its hypervisor's process. */
  identity: ProcessIdentity;
  /** When that started; `null`: not known. */
  startedAt: Date | null;
  /** It is there. If not, only what it has left can tell. */
  isThere: boolean;
  /** To be called once, when it answers: it is `running`. */
  ready(): void;
  /** What is of no use, and why; the run stays under watch. */
  warning(error: Error): void;
}

/** Hears what a hypervisor says of one run, from when that comes under watch to its end. */
export interface VmWitness {
  /**
   * Its process has ended, as `exit` says. Resolves with what the hypervisor has said until then, and soon:
   * the verdict waits for it.
   */
  testify(exit: ExitEvent): Promise<VmTestimony>;
  /** The run is left alone: nothing of it is of interest any more. Also called after its end. */
  close(): void;
  /** Reads what there is by now, so that little is left for the end; called now and then. */
  catchUp?(): Promise<void>;
  /** How the hypervisor is asked to end, by the witness's own connection; `null`: it has none just now. */
  readonly control?: VmRequests | null;
}

/** What a hypervisor can be asked to do. */
export interface VmRequests {
  /** Presses the guest's power button. Resolves when that was accepted. */
  powerDown(signal?: AbortSignal): Promise<void>;
  /** Has the hypervisor end at once; it may do so before it has answered. */
  forceOff(signal?: AbortSignal): Promise<void>;
}
