import type { ExitEvent } from '../../events/exit-event.js';
import type { Intent } from '../../process/intent-log.js';
import type { SignalName } from '../../events/wait-status.js';

import type { SaidPhase, VmEvent } from './vm-event.js';

/**
 * A signal that a hypervisor says it obeyed.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export type ObeyedSignal = {
  signal: SignalName | null;
  /** From siginfo, so it can be forged; `null`: no pid in the hypervisor's pid namespace. */
  pid: number | null;
  /** Path of the sender's executable. */
  path: string | null;
};

/**
 * Whether an agent in the guest can power it off, which no event reports. `'none'`: the guest has
 * no agent; `'held'`: only we can talk to it; `'open'`: others can, too.
 *
 * @see [The guest's agent](../../../docs/vm-control.md#the-guests-agent)
 */
export type GuestAgent = 'none' | 'held' | 'open';

/**
 * What a hypervisor said about one run of a virtual machine, and what is known about how it exits.
 * Omit what is unknown: that makes a verdict less sure, never wrong.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export type VmTestimony = {
  /** In order. */
  events: readonly VmEvent[];
  /** No event is missing from the start of the run to its end. */
  eventsComplete: boolean;
  /** No event is missing from `heardSince` to the end. Default: as `eventsComplete`. */
  eventsUnbroken?: boolean;
  /** When listening began. */
  heardSince?: Date | null;
  /** What the machine was doing before the first event. */
  initialPhase?: SaidPhase | null;
  /** What it was doing after the last event that paused or resumed it. */
  lastPhase?: SaidPhase | null;
  /** The run continues one that began elsewhere. Default: judged by its first events. */
  isIncoming?: boolean | null;
  /** It reports migrations as events, so no event means no migration. */
  tellsMigration?: boolean;
  /** It got far enough to shut down cleanly when asked. Omitted or `null`: unknown. */
  ready?: boolean | null;
  /** It may stay, paused, after its guest shut down or panicked, until something else ends it. */
  mayLinger?: boolean | null;
  agent?: GuestAgent | null;
  /** The guest may choose the exit code. */
  guestSetsExitCode?: boolean | null;
  /** The signal that its log says it obeyed. */
  obeyed?: ObeyedSignal | null;
  /** It has a log that names the signal it obeyed, and all of it was read. */
  hasLog?: boolean;
  /** It removes its pidfile on a clean exit. */
  removesPidfile?: boolean;
  /** A socket that it removes on a clean exit still exists; `null`: it has no such socket. */
  socketIsLeft?: boolean | null;
  /** The last lines of its log, for people. */
  lastWords?: readonly string[];
};

/** All that is known about a virtual machine's end. A verdict rests on this and nothing else. */
export type VmEvidence = Required<
  Omit<VmTestimony, 'agent' | 'guestSetsExitCode' | 'removesPidfile' | 'socketIsLeft'>
> & {
  name: string;
  /** How its process exited; `null`: nobody saw it. */
  exit: ExitEvent | null;
  /** Our intents for this very process; `null`: which intents concern it is unknown. */
  intents: readonly Intent[] | null;
  /**
   * Whether the files that a clean exit removes are left; `null`: it had none, or nobody looked.
   */
  leftovers: { pidfile: boolean | null; socket: boolean | null };
  /** `undefined`: none is known, and nobody looked for one. */
  agent: GuestAgent | null | undefined;
  /** `undefined`: not asked. An exit code that nothing else explains then counts as the guest's. */
  guestSetsExitCode: boolean | null | undefined;
};

/** What others than the hypervisor know about an end. */
export type VmCircumstances = Pick<VmEvidence, 'name' | 'exit' | 'intents'> & {
  pidfileIsLeft: boolean | null;
};

/** Combines what a hypervisor said with what others know. */
export function evidenceOf(
  { pidfileIsLeft, ...known }: VmCircumstances,
  { removesPidfile = false, socketIsLeft = null, ...said }: VmTestimony,
): VmEvidence {
  return {
    eventsUnbroken: said.eventsComplete,
    heardSince: null,
    initialPhase: null,
    lastPhase: null,
    isIncoming: null,
    tellsMigration: false,
    ready: null,
    mayLinger: null,
    agent: null,
    guestSetsExitCode: undefined,
    obeyed: null,
    hasLog: false,
    lastWords: [],
    ...said,
    ...known,
    leftovers: { pidfile: removesPidfile ? pidfileIsLeft : null, socket: socketIsLeft },
  };
}

/** Times of a hypervisor's first and last event; `null`: it sent none, or has no clock. */
export type Words = { firstAt: Date | null; lastAt: Date | null };

export function wordsOf(events: readonly { at: Date | null }[]): Words {
  const lastMs = Math.max(0, ...events.map(({ at }) => at?.getTime() ?? 0));
  return { firstAt: events[0]?.at ?? null, lastAt: lastMs === 0 ? null : new Date(lastMs) };
}
