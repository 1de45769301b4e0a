import type { GuestAgent } from '../evidence/vm-evidence.js';

import type { QemuCommand } from './qemu-command.js';

/** Where a QEMU says what happens to it, and what is known of how it says it. */
export interface QemuFiles {
  /** Its QMP socket, for us alone: QEMU serves one client of a socket at a time. */
  qmp?: string;
  /** The socket was opened by another process, and handed over: it need not be the machine's own. */
  qmpIsInherited?: boolean;
  /** What `eventLogArguments()` has it write: one file for each start, or one for all of them. */
  eventLog?: string;
  /** It may have been started without one: that there is none is no warning. */
  eventLogIsOptional?: boolean;
  /**
   * Of one that has ended before: when it had, at the latest. What an event log that later starts share
   * has of later is not its own.
   */
  endedBefore?: Date;
  /** What the event log has of up to then is an earlier start's. */
  eventsAfter?: Date;
  /** When it was seen to be there: where an event log is shared, and its start is not known any more. */
  seenAt?: Date;
  /**
   * Whether an agent in its guest could have it power off, which no event tells: `'none'`; `'held'`: by a
   * socket that nobody but its manager can use; `'open'`. By its command line, where nothing is said.
   */
  agent?: GuestAgent;
  /** Of one that has ended before: what its command line said. */
  command?: QemuCommand;
  /** What `logArguments()` has it write. */
  log?: string;
}
