import type { ExitEvent } from '../../events/exit-event.js';

/**
 * Why a virtual machine's process ended. docs/vm-causes.md explains each cause. “We” are the
 * programs whose intents are known.
 *
 * @see [Causes of a virtual machine's end](../../../docs/vm-causes.md)
 */
export type Cause =
  /** It exited with an error before it was ready: a bad option, a missing image, a port in use. */
  | 'start-failed'
  /** It exited with 0 before it was ready: `-version`, `-device help`. */
  | 'start-exited'
  /** A signal killed it before it was ready. */
  | 'start-killed'
  /** The guest was migrated: it continues elsewhere. */
  | 'migrated-away'
  /** The guest was saved to a file, to continue from it. */
  | 'saved'
  /** The guest's kernel panicked. */
  | 'guest-panic'
  /** The guest's watchdog expired, and the hypervisor exited because of that. */
  | 'guest-watchdog'
  /** The guest rebooted, or a crash reset its processor, which ends the hypervisor. */
  | 'guest-reboot'
  /** A management client reset the machine, which ends the hypervisor. */
  | 'host-reset'
  /** The guest hibernated. */
  | 'guest-hibernate'
  /** The guest powered itself off, without a request. */
  | 'guest-shutdown'
  /** The guest powered itself off after we pressed its power button. */
  | 'admin-powerdown'
  /** The guest powered itself off after its watchdog pressed the power button. */
  | 'watchdog-powerdown'
  /** The guest powered itself off after somebody else pressed its power button. */
  | 'other-powerdown'
  /** We told the hypervisor to quit. */
  | 'manager-quit'
  /** Another management client told the hypervisor to quit. */
  | 'other-quit'
  /** The hypervisor obeyed SIGTERM, SIGINT or SIGHUP: it shut down cleanly and exited with 0. */
  | 'forced-stop'
  /** The hypervisor's window was closed. */
  | 'host-ui'
  /** The hypervisor reports that it failed. */
  | 'host-error'
  /** The kernel's OOM killer killed it. */
  | 'oom-killed'
  /** A signal that it cannot or does not catch killed it. */
  | 'killed'
  /** The hypervisor itself crashed. */
  | 'vmm-crash'
  /** The hypervisor exited by itself, and nothing says why. */
  | 'vmm-exit'
  /** Not known: see `candidates`. */
  | 'unknown';

/**
 * Who wanted the end. `'manager'`: we did; `'host'`: somebody else on the host; `'vmm'`: the
 * hypervisor itself.
 *
 * @see [Causes of a virtual machine's end](../../../docs/vm-causes.md)
 */
export type Initiator = 'guest' | 'manager' | 'host' | 'kernel' | 'vmm' | 'unknown';

/**
 * `'sure'`: a witness reports it. `'likely'`: the best explanation; `candidates` lists the others,
 * too. `'one-of'`: `candidates` lists all that fit. `'unknown'`: there was no witness.
 *
 * @see [Causes of a virtual machine's end](../../../docs/vm-causes.md)
 */
export type Certainty = 'sure' | 'likely' | 'one-of' | 'unknown';

/**
 * One fact that the verdict rests on.
 *
 * @see [Verdicts](../../../docs/virtual-machines.md#verdicts)
 */
export type Evidence = {
  source: 'event' | 'status' | 'exit' | 'signal' | 'log' | 'intent' | 'files';
  /** For people. */
  text: string;
  /** When it happened; `null` if unknown. */
  at: Date | null;
};

/**
 * Why a virtual machine ended, and how sure that is.
 *
 * @see [Verdicts](../../../docs/virtual-machines.md#verdicts)
 */
export type VmVerdict = {
  event: 'stopped';
  name: string;
  cause: Cause;
  /**
   * The guest's user shut it down: leave it off. `null`: the candidates differ on that. `false`
   * does not mean that you should start it again: see `initiator`.
   */
  userShutdown: boolean | null;
  initiator: Initiator;
  certainty: Certainty;
  /** What it may have been; only `cause` if that is sure. */
  candidates: Cause[];
  evidence: Evidence[];
  /** One sentence for people. */
  summary: string;
  /** How its process exited; `null`: nobody saw it. */
  exit: ExitEvent | null;
};
