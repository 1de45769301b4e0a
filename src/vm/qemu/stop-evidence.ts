import type { ExitEvent } from '../../events/exit-event.js';
import type { Intent } from '../../process/intent-log.js';

import type { QmpEvent } from './qmp-event.js';
import type { GuestAgent, ObeyedSignal } from '../evidence/vm-evidence.js';

/** All that is known of the end of a QEMU, in its own words. What is not known is `null`, or empty. */
export type StopEvidence = {
  name: string;
  /** How its process ended; `null`: nobody saw it. */
  exit: ExitEvent | null;
  /** In their order. */
  events: readonly QmpEvent[];
  /** None is missing, from its start to its end. */
  eventsComplete: boolean;
  /** `query-status` when the first of the events was yet to come; `null`: not asked. */
  initialStatus: string | null;
  /** None is missing, from then to its end. */
  eventsUnbroken: boolean;
  /** When that was; `null`, or nothing: not known. */
  heardSince?: Date | null;
  /**
   * `query-status` after the last of the events that stop it or let it go on; `null`, or nothing: not asked,
   * or no answer. `'postmigrate'` is a word that no event has.
   */
  lastStatus?: string | null;
  /** It was to go on with what was begun elsewhere (`-incoming`); nothing: by what it said at first. */
  incoming?: boolean;
  /** It tells of migrations by events (`migrate-set-capabilities`, `events`). */
  tellsMigration?: boolean;
  /** It had got so far that it obeys signals in good order. */
  ready: boolean | null;
  /**
   * It may stay, paused, when its guest has shut down (`-no-shutdown`) or panicked: its end is another
   * matter then.
   */
  mayLinger: boolean | null;
  /**
   * By an agent in the guest, others may have it power off, and no event tells. `'none'`, or nothing: it has
   * no agent; `'held'`: nobody but we can talk to it; `'open'`: others can; `null`: not known.
   */
  agent?: GuestAgent | null;
  /** By isa-debug-exit the guest may end it with a code of its own; `null`: not known. Nothing: it has none. */
  debugExit?: boolean | null;
  /** The signal that its log says it obeyed. */
  obeyed: ObeyedSignal | null;
  /** There is a log, and all of it could be read. */
  hasLog: boolean;
  /** Files that it removes when it ends in good order; `null`: it had none, or nobody looked. */
  leftovers: { pidfile: boolean | null; socket: boolean | null };
  /** What we were about to do to this very process; `null`: which of them were about it is not known. */
  intents: readonly Intent[] | null;
  /** The last lines of its log, for people. */
  lastWords?: readonly string[];
};

/** What QEMU itself has said. */
export type QemuTestimony = Omit<StopEvidence, 'name' | 'exit' | 'intents' | 'leftovers'>;
