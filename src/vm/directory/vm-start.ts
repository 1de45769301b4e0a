import type { ProcessIdentity } from '../../process-identity.js';

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

/** Who is told by a {@link VmDirectory}; of one virtual machine, one thing after the other. */
export interface VmDirectoryListener {
  /** What is known of it from before; `null`: nothing. */
  recall(name: string): Promise<KnownStart | null>;
  /** A new one is under watch. */
  found(start: VmStart): Promise<void>;
  /** One that was found without an event log has one now. */
  logged(start: VmStart): Promise<void>;
  /** It has ended; `until`: of its event log, what came up to then is accounted for. */
  ended(start: VmStart, stop: VmVerdict, until: Date): Promise<void>;
  /** What is of no use; the others go on. */
  warning(error: Error, name: string | null): void;
  /** The directory is there, or not any more. */
  presence(isThere: boolean): void;
  /** Nothing can be watched, or told, any more. */
  failed(error: Error): void;
}
