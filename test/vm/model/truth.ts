import type { Cause, Initiator } from '../../../src/vm';

/** `'saved'`: its state is in a file. */
export type TrueCause = Cause | 'saved';

/** The truth about a machine's end, whatever anyone knows of it. */
export interface Truth {
  /** The right cause, or several if more than one party was involved and either is right. */
  causes: readonly TrueCause[];
  initiators: readonly Initiator[];
  /**
   * Whether the guest's user wanted it. `'undecidable'`: it came too soon after a press of the
   * power button to tell. `'either'`: any verdict is fine.
   */
  user: boolean | 'undecidable' | 'either';
  /** Whether it may be restarted without a request. */
  restart: 'never' | 'wanted' | 'either';
}

const truth = (
  causes: TrueCause | readonly TrueCause[],
  initiators: Initiator | readonly Initiator[],
  restart: Truth['restart'],
): Truth => ({
  causes: [causes].flat(),
  initiators: [initiators].flat(),
  user: false,
  restart,
});

export const byUser = (cause: 'guest-shutdown' | 'guest-hibernate'): Truth => ({
  ...truth(cause, 'guest', 'never'),
  user: true,
});
export const byGuest = (cause: TrueCause): Truth => truth(cause, 'guest', 'either');
/** By the process itself. */
export const byVmm = (
  cause: TrueCause,
  initiators: readonly Initiator[] = ['vmm'],
  restart: Truth['restart'] = 'either',
): Truth => truth(cause, initiators, restart);
export const byUs = (causes: TrueCause | readonly TrueCause[]): Truth =>
  truth(causes, 'manager', 'never');
export const byOthers = (causes: TrueCause | readonly TrueCause[]): Truth =>
  truth(causes, 'host', 'either');
/** Nobody wanted it to end for good. */
export const byAttack = (
  causes: TrueCause | readonly TrueCause[],
  initiators: Initiator | readonly Initiator[] = 'host',
): Truth => truth(causes, initiators, 'wanted');
/** It runs elsewhere: starting it here as well would damage its disk. */
export const goneAway = (causes: readonly TrueCause[], by: 'us' | 'others'): Truth =>
  truth(causes, by === 'us' ? 'manager' : 'host', 'never');
