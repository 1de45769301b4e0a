/**
 * Why a hypervisor says that it, or its guest, shuts down.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export type ShutdownReason =
  /** The guest powered itself off. */
  | 'guest-shutdown'
  /** The guest rebooted or crashed, which ends the hypervisor. */
  | 'guest-reset'
  | 'guest-panic'
  /** A management client reset the machine, which ends the hypervisor. */
  | 'host-reset'
  /** A management client told the hypervisor to quit. */
  | 'host-quit'
  /** The hypervisor obeyed a signal. */
  | 'host-signal'
  /** The hypervisor's window was closed. */
  | 'host-ui'
  /** The hypervisor reports that it failed. */
  | 'host-error';

/**
 * What happens to a virtual machine, as far as it bears on its end.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export type VmHappening =
  /** It shuts down; `byGuest`: whether its guest asked for that. `null`: unknown. */
  | { what: 'shutdown'; reason: ShutdownReason | null; byGuest: boolean | null }
  /** Its power button was pressed. */
  | { what: 'powerdown' }
  | { what: 'reset'; byGuest: boolean | null }
  /** It starts to run, or continues. */
  | { what: 'resume' }
  /** Its virtual CPUs stop. */
  | { what: 'pause' }
  /** The guest has saved its memory to its disk, and powers off next. */
  | { what: 'hibernate' }
  /** The guest's kernel panicked; `goesOn`: it is left running, and may reboot. */
  | { what: 'panic'; goesOn: boolean }
  /** The guest's watchdog expired. It ends the hypervisor, presses the power button, or neither. */
  | { what: 'watchdog'; action: 'end' | 'press' | 'other' }
  /** A migration, in or out, made progress, or is complete. */
  | { what: 'migration'; isComplete: boolean }
  /** Anything else; for people to read. */
  | { what: 'other' };

/**
 * One event of a virtual machine, in terms that all hypervisors share.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export type VmEvent = VmHappening & {
  /** By the host's clock; `null` if unknown. */
  at: Date | null;
  /** The event in the hypervisor's own words, for people. */
  said: string;
};

/**
 * What a virtual machine is doing, as far as it bears on its end.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export type VmPhase =
  /** It has not run yet. */
  | 'not-started'
  /** It waits for an incoming migration. */
  | 'incoming'
  | 'running'
  | 'paused'
  /** Stopped while its state is saved. */
  | 'saving'
  /** Stopped for another reason. */
  | 'halted'
  | 'migrated'
  | 'panicked'
  /** The guest powered off, and the hypervisor stays. */
  | 'shut-down';

/**
 * What the machine was doing when it was asked, and the hypervisor's own word for it.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export type SaidPhase = { phase: VmPhase; said: string };
