import type { ProcessIdentity } from '../../identity/process-identity.js';
import type { QemuCommand } from '../qemu/qemu-command.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

/**
 * One start of a virtual machine.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
export type VmStart = {
  name: string;
  /** Its process; `null`: it had exited when it was found. */
  identity: ProcessIdentity | null;
  /** The user that it runs as; `null` if unknown. */
  uid: number | null;
  /** Which file its event log was when first seen (device, inode, birth time); `null`: none yet. */
  eventLog: string | null;
  /** What its command line said about how it ends; `null` if unknown. */
  command: QemuCommand | null;
};

/**
 * What is remembered about a virtual machine's last start.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
export type KnownStart = VmStart & {
  isOver: boolean;
  /** Up to when its event log is accounted for. */
  judgedUntil: Date | null;
  foundAt: Date;
};

/**
 * Which part of an event log an end accounts for.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
export type Accounted = {
  /** The time of the run's first event; `null`: it had none. */
  firstWordAt: Date | null;
  /** Everything up to this time belongs to this start or an earlier one. */
  until: Date;
};

/** What a {@link VmDirectory} reports to: about one virtual machine, one call after the other. */
export interface VmDirectoryListener {
  /** A start was found: it is under watch, or has ended already. */
  found(start: VmStart): Promise<void>;
  /** A start that was found without an event log has one now. */
  logged(start: VmStart): Promise<void>;
  /** A start has ended. */
  ended(start: VmStart, stop: VmVerdict, accounted: Accounted): Promise<void>;
  /** Something does not work; the rest continues. */
  warning(error: Error, name: string | null): void;
  /** The directory has appeared, or is gone. */
  presence(isThere: boolean): void;
  /** Nothing can be watched or reported any more. */
  failed(error: Error): void;
}
