import type { VmRequests, VmRun, VmWitness } from '../evidence/vm-witness.js';

/**
 * How to talk to a hypervisor. Its answers count for little: its process shows whether it runs.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export interface VmDriver extends VmRequests {
  /** What the hypervisor says it is doing, in its own word. Rejects if it does not answer. */
  state(signal?: AbortSignal): Promise<string>;
  /**
   * Starts to listen to a run that comes under watch, so that a `VmMonitor` can tell why it ended.
   * Without this, only its process, signals and intents can tell.
   */
  witness?(run: VmRun): VmWitness;
}

/** How long an answer may take. */
export const ANSWER_MS = 5000;
