import type { ExitEvent } from '../../events/exit-event.js';
import type { Intent } from '../../process/intent-log.js';
import type { SignalName } from '../../events/wait-status.js';

import type { SaidPhase, VmEvent } from './vm-event.js';

/** A signal that a hypervisor says to have obeyed. */
export type ObeyedSignal = {
  signal: SignalName | null;
  /** As the siginfo had it: it may be forged, and is missing where the sender had no pid here. */
  pid: number | null;
  /** Of the sender's executable. */
  path: string | null;
};

/**
 * Whether an agent in the guest can have it power off, which no event tells: `'none'`: it has no agent;
 * `'held'`: nobody but we can talk to it; `'open'`: others can.
 */
export type GuestAgent = 'none' | 'held' | 'open';

/**
 * What a hypervisor has said of one run of a virtual machine, and what is known of how it ends. What is left
 * out is not known: it makes no verdict wrong, and some less sure.
 */
export type VmTestimony = {
  /** In their order. */
  events: readonly VmEvent[];
  /** None is missing, from the start of the run to its end. */
  eventsComplete: boolean;
  /** None is missing, from `heardSince` to the end; left out: as `eventsComplete`. */
  eventsUnbroken?: boolean;
  /** Since when it was heard. */
  heardSince?: Date | null;
  /** What it was doing when the first of the events was yet to come. */
  initialPhase?: SaidPhase | null;
  /** What it was doing after the last of the events that stop it, or let it go on. */
  lastPhase?: SaidPhase | null;
  /** It was to go on with what was begun elsewhere; left out: by its first words. */
  isIncoming?: boolean | null;
  /** It tells of migrations by events: one that it does not tell of was none. */
  tellsMigration?: boolean;
  /** It had got so far that it ends in good order; left out or `null`: not known. */
  ready?: boolean | null;
  /** It may stay, paused, when its guest has shut down or panicked: its end is another matter then. */
  mayLinger?: boolean | null;
  agent?: GuestAgent | null;
  /** Its guest may end it with an exit code of its own. */
  guestSetsExitCode?: boolean | null;
  /** The signal that its log says it obeyed. */
  obeyed?: ObeyedSignal | null;
  /** It has a log in which it says so, and all of it could be read. */
  hasLog?: boolean;
  /** It removes its pidfile when it ends in good order. */
  removesPidfile?: boolean;
  /** A socket is there that it removes when it ends in good order; `null`: it has none. */
  socketIsLeft?: boolean | null;
  /** The last lines of its log, for people. */
  lastWords?: readonly string[];
};

/** All that is known of a virtual machine's end: this, and nothing else, is what a verdict rests on. */
export type VmEvidence = Required<
  Omit<VmTestimony, 'agent' | 'guestSetsExitCode' | 'removesPidfile' | 'socketIsLeft'>
> & {
  name: string;
  /** How its process ended; `null`: nobody saw it. */
  exit: ExitEvent | null;
  /** What we were about to do to this very process; `null`: which of them were about it is not known. */
  intents: readonly Intent[] | null;
  /** Files that it removes when it ends in good order; `null`: it had none, or nobody looked. */
  leftovers: { pidfile: boolean | null; socket: boolean | null };
  /** `undefined`: none is known of, and nobody has looked for one. */
  agent: GuestAgent | null | undefined;
  /** `undefined`: not asked; then an exit code that nothing else explains says so. */
  guestSetsExitCode: boolean | null | undefined;
};

/** What others than the hypervisor know of an end. */
export type VmCircumstances = Pick<VmEvidence, 'name' | 'exit' | 'intents'> & {
  pidfileIsLeft: boolean | null;
};

/** Joins what a hypervisor has said with what others know. */
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

/** When a hypervisor's first word was, and its last; `null`: it had none, or no clock. */
export type Words = { firstAt: Date | null; lastAt: Date | null };

export function wordsOf(events: readonly { at: Date | null }[]): Words {
  const lastMs = Math.max(0, ...events.map(({ at }) => at?.getTime() ?? 0));
  return { firstAt: events[0]?.at ?? null, lastAt: lastMs === 0 ? null : new Date(lastMs) };
}
