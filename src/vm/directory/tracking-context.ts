import type { Semaphore } from '../../common/semaphore.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';
import type { VmMonitor } from '../monitor/vm-monitor.js';

import type { KnownStart, VmDirectoryListener } from './vm-start.js';

/** What a `TrackedVm` gets from its directory. */
export interface TrackingContext {
  path: string;
  /** Ends from before this time are not reported. */
  since: Date;
  monitor: VmMonitor;
  listener: VmDirectoryListener;
  /** What is remembered about a name's last start; `null`: nothing. */
  known(name: string): KnownStart | null;
  /** The other name under which this process is watched, if any. */
  namesakeOf(identity: ProcessIdentity, name: string): string | undefined;
  /** Its end was reported, under whatever name. */
  wasDelivered(identity: ProcessIdentity): boolean;
  /** Limits the looks at one time: each needs descriptors. */
  looks: Semaphore;
  /** Reports each warning at most once an hour. */
  warn(error: Error, name: string): void;
}
