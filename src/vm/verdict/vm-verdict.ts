import type { ExitEvent } from '../../events/exit-event.js';

/** Why a virtual machine's process ended; docs/vm-causes.md has a section for each. */
export type Cause =
  /** It ended with an error before it was ready: a bad option, a missing image, a port in use. */
  | 'start-failed'
  /** It ended with 0 before it was ready: `-version`, `-device help`. */
  | 'start-exited'
  /** A signal killed it before it was ready. */
  | 'start-killed'
  /** The guest had been migrated: it goes on elsewhere. */
  | 'migrated-away'
  /** The guest had been saved to a file, to go on from it. */
  | 'saved'
  /** The guest's kernel had panicked. */
  | 'guest-panic'
  /** The guest's watchdog had expired, and the hypervisor ended itself for that. */
  | 'guest-watchdog'
  /** The guest rebooted, or crashed so that its processor was reset, and that ends it here. */
  | 'guest-reboot'
  /** A management client reset it, and that ends it here. */
  | 'host-reset'
  /** The guest has hibernated. */
  | 'guest-hibernate'
  /** The guest powered itself off: nobody had asked it to. */
  | 'guest-shutdown'
  /** The guest powered itself off after we had pressed its power button. */
  | 'admin-powerdown'
  /** The same, and its watchdog had pressed it. */
  | 'watchdog-powerdown'
  /** The same, and somebody else had pressed it. */
  | 'other-powerdown'
  /** We told the hypervisor to quit. */
  | 'manager-quit'
  /** Another management client told it to. */
  | 'other-quit'
  /** SIGTERM, SIGINT or SIGHUP, which it obeys in good order, and exits with 0. */
  | 'forced-stop'
  /** Its window was closed. */
  | 'host-ui'
  /** The hypervisor gave up. */
  | 'host-error'
  /** The kernel's OOM killer. */
  | 'oom-killed'
  /** A signal that it cannot catch, or does not. */
  | 'killed'
  /** The hypervisor itself crashed. */
  | 'vmm-crash'
  /** The hypervisor exited by itself, without a word of why. */
  | 'vmm-exit'
  /** See the candidates. */
  | 'unknown';

/** Who wanted the end. */
export type Initiator = 'guest' | 'manager' | 'host' | 'kernel' | 'vmm' | 'unknown';

/**
 * `'sure'`: a witness who was there says so. `'likely'`: the best explanation; others are in
 * `candidates`. `'one-of'`: `candidates` has them all. `'unknown'`: nobody was there.
 */
export type Certainty = 'sure' | 'likely' | 'one-of' | 'unknown';

/** One fact that the verdict rests on. */
export type Evidence = {
  source: 'event' | 'status' | 'exit' | 'signal' | 'log' | 'intent' | 'files';
  /** For people. */
  text: string;
  /** When it was; `null` where that is not known. */
  at: Date | null;
};

/** The verdict on a virtual machine's end. */
export type VmVerdict = {
  event: 'stopped';
  name: string;
  cause: Cause;
  /**
   * The guest's user has shut it down: leave it off. `null`: the remaining candidates differ on that.
   * `false` does not mean that it has to be started again: see `initiator`.
   */
  userShutdown: boolean | null;
  initiator: Initiator;
  certainty: Certainty;
  /** What it may have been: `cause` alone, where that is sure. */
  candidates: Cause[];
  evidence: Evidence[];
  /** One sentence for people. */
  summary: string;
  /** How its process ended; `null` where nobody saw it. */
  exit: ExitEvent | null;
};
