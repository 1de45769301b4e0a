/** Why a hypervisor says that it ends, or that its guest does. */
export type ShutdownReason =
  /** The guest has powered itself off. */
  | 'guest-shutdown'
  /** The guest has rebooted, or crashed, and that ends it. */
  | 'guest-reset'
  | 'guest-panic'
  /** A management client has reset it, and that ends it. */
  | 'host-reset'
  /** A management client has told the hypervisor to quit. */
  | 'host-quit'
  /** The hypervisor obeys a signal. */
  | 'host-signal'
  /** Its window was closed. */
  | 'host-ui'
  /** The hypervisor gives up. */
  | 'host-error';

/** What happens to a virtual machine, as far as it says something of its end. */
export type VmHappening =
  /** It ends; `byGuest`: which side wanted that, where no reason is given. `null`: not known. */
  | { what: 'shutdown'; reason: ShutdownReason | null; byGuest: boolean | null }
  /** Somebody has pressed its power button. */
  | { what: 'powerdown' }
  | { what: 'reset'; byGuest: boolean | null }
  /** It runs, or goes on. */
  | { what: 'resume' }
  /** Its processors stand still. */
  | { what: 'pause' }
  /** The guest has written its memory to its disk, and powers off next. */
  | { what: 'hibernate' }
  /** The guest has panicked; `goesOn`: it is left to itself, and may reboot. */
  | { what: 'panic'; goesOn: boolean }
  /** The guest's watchdog has expired: it ends the hypervisor, presses the power button, or does neither. */
  | { what: 'watchdog'; action: 'end' | 'press' | 'other' }
  /** A migration, in or out, goes on, or is complete. */
  | { what: 'migration'; isComplete: boolean }
  /** Anything else: for people. */
  | { what: 'other' };

/** One event of a virtual machine, whichever hypervisor tells it. */
export type VmEvent = VmHappening & {
  /** By the host's clock; `null`: not known. */
  at: Date | null;
  /** The hypervisor's own words, for people. */
  said: string;
};

/** What a virtual machine is doing, as far as it matters for its end. */
export type VmPhase =
  /** It has not run yet. */
  | 'not-started'
  /** It waits for what was begun elsewhere. */
  | 'incoming'
  | 'running'
  | 'paused'
  /** Stopped, while it is saved. */
  | 'saving'
  /** Stopped for another reason. */
  | 'halted'
  | 'migrated'
  | 'panicked'
  /** The guest has powered off, and the hypervisor stays. */
  | 'shut-down';

/** What it was doing when it was asked, and the hypervisor's own word for that. */
export type SaidPhase = { phase: VmPhase; said: string };
