import type { Semaphore } from '../../common/semaphore.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';
import type { VmMonitor } from '../monitor/vm-monitor.js';

import type { KnownStart, VmDirectoryListener } from './vm-start.js';

/** What a `TrackedVm` has of its directory. */
export interface TrackingContext {
  path: string;
  /** What was before that is not reported. */
  since: Date;
  monitor: VmMonitor;
  listener: VmDirectoryListener;
  /** What is remembered of a name's last start; `null`: nothing. */
  known(name: string): KnownStart | null;
  /** Under which other name this process is watched. */
  namesakeOf(identity: ProcessIdentity, name: string): string | undefined;
  /** Its end was reported under whatever name. */
  wasDelivered(identity: ProcessIdentity): boolean;
  /** Each look takes descriptors. */
  looks: Semaphore;
  /** Each thing once. */
  warn(error: Error, name: string): void;
}
