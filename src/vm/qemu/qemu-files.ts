import type { GuestAgent } from '../evidence/vm-evidence.js';

import type { QemuCommand } from './qemu-command.js';

/**
 * Where a QEMU reports what happens to it, and what is known about these places.
 *
 * @see [Why a virtual machine ended](../../../docs/virtual-machines.md)
 */
export interface QemuFiles {
  /** Its QMP socket, for us alone: QEMU serves one client of a socket at a time. */
  qmp?: string;
  /** Another process opened the socket and passed it on, so the listener need not be QEMU. */
  qmpIsInherited?: boolean;
  /** The file that `eventLogArguments()` makes it write: one for each start, or one for all. */
  eventLog?: string;
  /** The machine may run without an event log: do not warn if there is none. */
  eventLogIsOptional?: boolean;
  /**
   * For a machine that has ended: when it had, at the latest. Later events in a shared event log
   * are another start's.
   */
  endedBefore?: Date;
  /** Events up to this time in the event log belong to an earlier start. */
  eventsAfter?: Date;
  /** When it was seen to exist: for a shared event log, if its start is no longer known. */
  seenAt?: Date;
  /**
   * Whether an agent in its guest could power it off, which no event reports: `'none'`; `'held'`:
   * over a socket that only its manager can use; `'open'`. Default: judged by its command line.
   */
  agent?: GuestAgent;
  /** For a machine that has ended: what its command line said. */
  command?: QemuCommand;
  /** The file that `logArguments()` makes it write. */
  log?: string;
}
