import type { ExitEvent } from '../../events/exit-event.js';
import type { Intent } from '../../process/intent-log.js';

import type { QmpEvent } from './qmp-event.js';
import type { GuestAgent, ObeyedSignal } from '../evidence/vm-evidence.js';

/**
 * All that is known about a QEMU's end, in its own terms. What is unknown is `null` or empty.
 *
 * @see [Verdicts](../../../docs/virtual-machines.md#verdicts)
 */
export type StopEvidence = {
  name: string;
  /** How its process exited; `null`: nobody saw it. */
  exit: ExitEvent | null;
  /** In order. */
  events: readonly QmpEvent[];
  /** No event is missing from its start to its end. */
  eventsComplete: boolean;
  /** `query-status` before the first of the events; `null`: not asked. */
  initialStatus: string | null;
  /** No event is missing from `heardSince` to its end. */
  eventsUnbroken: boolean;
  /** When listening began; `null` or omitted: unknown. */
  heardSince?: Date | null;
  /**
   * `query-status` after the last event that paused or resumed it; `null` or omitted: not asked, or
   * no answer. No event reports `'postmigrate'`.
   */
  lastStatus?: string | null;
  /**
   * It continues a run that began elsewhere (`-incoming`). Default: judged by its first answers.
   */
  incoming?: boolean;
  /** It reports migrations as events (`migrate-set-capabilities`, `events`). */
  tellsMigration?: boolean;
  /** It got far enough to obey signals with a clean shutdown; `null` if unknown. */
  ready: boolean | null;
  /**
   * It may stay, paused, after its guest shut down (`-no-shutdown`) or panicked: something else
   * then ends the process.
   */
  mayLinger: boolean | null;
  /**
   * Whether an agent in the guest lets others power it off, which no event reports. `'none'` or
   * omitted: no agent; `'held'`: only we can talk to it; `'open'`: others can; `null`: unknown.
   */
  agent?: GuestAgent | null;
  /**
   * The guest may choose the exit code (isa-debug-exit); `null`: unknown. Omitted: an exit code
   * that nothing else explains counts as the guest's.
   */
  debugExit?: boolean | null;
  /** The signal that its log says it obeyed. */
  obeyed: ObeyedSignal | null;
  /** It has a log, and all of it was read. */
  hasLog: boolean;
  /** Whether files that a clean exit removes are left; `null`: it had none, or nobody looked. */
  leftovers: { pidfile: boolean | null; socket: boolean | null };
  /** Our intents for this very process; `null`: which intents concern it is unknown. */
  intents: readonly Intent[] | null;
  /** The last lines of its log, for people. */
  lastWords?: readonly string[];
};

/** What QEMU itself said. */
export type QemuTestimony = Omit<StopEvidence, 'name' | 'exit' | 'intents' | 'leftovers'>;
