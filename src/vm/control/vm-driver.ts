/** How a hypervisor is talked to. What it answers counts for little: its process tells whether it runs. */
export interface VmDriver {
  /** What it says it is doing, in its own word. Rejects where it does not answer. */
  state(signal?: AbortSignal): Promise<string>;
  /** Presses the guest's power button. Resolves when that was accepted. */
  powerDown(signal?: AbortSignal): Promise<void>;
  /** Has the hypervisor end at once; it may do so before it has answered. */
  forceOff(signal?: AbortSignal): Promise<void>;
}

/** An answer may take that long. */
export const ANSWER_MS = 5000;
