import type { ProcessIdentity } from '../../identity/process-identity.js';
import type { IntentRecorder } from '../../process/intent-log.js';
import type { StopResult } from '../../process/stop.js';
import type { StopWait } from '../../process/stop-wait.js';

import type { VmDriver } from './vm-driver.js';

/**
 * A process of a virtual machine: by its identity, or by its pidfile and its executable (a path, or
 * a file name in full), which is checked unless `writePidfile()` made the pidfile.
 *
 * @see [Stop and restart a machine](../../../docs/vm-control.md)
 */
export type VmProcess = { pidfile: string; executable: string } | { identity: ProcessIdentity };

/**
 * Options of a `VmControl`.
 *
 * @see [Stop and restart a machine](../../../docs/vm-control.md)
 */
export interface VmControlOptions {
  /** The hypervisor's process. */
  process: VmProcess;
  /** Processes that are of no use without it, such as a network helper. Stopped after it. */
  companions?: readonly VmProcess[];
  /** How to talk to its hypervisor. Default: by signals alone. */
  driver?: VmDriver;
  /** Where every step is written down before it is taken. */
  intentLog?: string | IntentRecorder;
}

/**
 * What a virtual machine is doing.
 *
 * @see [Stop and restart a machine](../../../docs/vm-control.md)
 */
export type VmState = {
  /** `'running'`: one of its processes is alive; `'unknown'`: some could not be checked. */
  state: 'running' | 'stopped' | 'unknown';
  /** The hypervisor's own word, which does not decide `state`; `null`: no answer, or no driver. */
  said: string | null;
  /** What failed on the way. */
  warnings: string[];
};

/**
 * How a virtual machine was stopped.
 *
 * @see [Stop and restart a machine](../../../docs/vm-control.md)
 */
export type VmStopped = StopResult & {
  /** The result of each companion, in order. */
  companions: StopResult[];
};

/**
 * Options of `VmControl.stop()`; times in ms.
 *
 * @see [Stop and restart a machine](../../../docs/vm-control.md)
 */
export interface VmControlStopOptions {
  /** How long the guest may take to obey its power button; 0: do not press it. Default: 60,000. */
  powerdownTimeoutMs?: number;
  /** How long SIGTERM may take before SIGKILL follows. Default: 5,000. */
  forceKillAfterDelayMs?: number;
  /** For the intent log. */
  reason?: string;
  /** As for `stop()` of exitwatch/process. */
  onWait?: (wait: StopWait) => void;
}

/**
 * Options of a single request.
 *
 * @see [Stop and restart a machine](../../../docs/vm-control.md)
 */
export interface VmRequestOptions extends Pick<VmControlStopOptions, 'reason' | 'onWait'> {
  /** How long the exit may take, in ms. Default: 60,000 for the power button, 5,000 for a quit. */
  timeoutMs?: number;
}
