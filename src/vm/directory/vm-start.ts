import type { ProcessIdentity } from '../../identity/process-identity.js';
import type { QemuCommand } from '../qemu/qemu-command.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

/** One start of a virtual machine. */
export type VmStart = {
  name: string;
  /** Which process it is; `null`: it had ended when it was found. */
  identity: ProcessIdentity | null;
  /** As whom that runs; `null`: not known. */
  uid: number | null;
  /** Which file its event log is, as of when it was seen first; `null`: it had none so far. */
  eventLog: string | null;
  /** What its command line said of how it ends; `null`: not known. */
  command: QemuCommand | null;
};

/** What is remembered of a virtual machine's last start. */
export type KnownStart = VmStart & {
  isOver: boolean;
  /** Of its event log, what came up to then is accounted for. */
  judgedUntil: Date | null;
  foundAt: Date;
};

/** Which part of an event log an end accounts for. */
export type Accounted = {
  /** The first word of the start that has ended; `null`: it had none. */
  firstWordAt: Date | null;
  /** All up to then is this start's, or an earlier one's. */
  until: Date;
};

/** What a {@link VmDirectory} reports to; of one virtual machine, one thing after the other. */
export interface VmDirectoryListener {
  /** A new one is under watch. */
  found(start: VmStart): Promise<void>;
  /** One that was found without an event log has one now. */
  logged(start: VmStart): Promise<void>;
  /** It has ended. */
  ended(start: VmStart, stop: VmVerdict, accounted: Accounted): Promise<void>;
  /** What is of no use; the others go on. */
  warning(error: Error, name: string | null): void;
  /** The directory is there, or not any more. */
  presence(isThere: boolean): void;
  /** Nothing can be watched, or reported, any more. */
  failed(error: Error): void;
}
