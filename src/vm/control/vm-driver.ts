import type { VmRequests, VmRun, VmWitness } from '../evidence/vm-witness.js';

/** How a hypervisor is talked to. What it answers counts for little: its process tells whether it runs. */
export interface VmDriver extends VmRequests {
  /** What it says it is doing, in its own word. Rejects where it does not answer. */
  state(signal?: AbortSignal): Promise<string>;
  /**
   * Begins to hear what it says of a run that comes under watch, so that a `VmMonitor` can tell why that
   * ended. Without, its process, signals and intents tell.
   */
  witness?(run: VmRun): VmWitness;
}

/** An answer may take that long. */
export const ANSWER_MS = 5000;
