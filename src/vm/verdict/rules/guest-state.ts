import { ELSEWHERE, KILLED, ORDERLY } from '../causes.js';
import type { StopCase } from '../stop-case.js';
import type { VmVerdict } from '../vm-verdict.js';

/** Judges by the guest's last state: migrated, saved, panicked, or ended by its watchdog. */
export function byGuestState(one: StopCase): VmVerdict | null {
  const { panicked, shutdown, watchdog } = one.timeline;
  const departed = departure(one);
  if (departed !== null) return departed;
  if (panicked || shutdown?.reason === 'guest-panic') {
    return one.verdict.sure('guest-panic', 'guest');
  }
  if (watchdog === 'end' && shutdown === null && !wasKilled(one)) {
    return one.verdict.sure('guest-watchdog', 'guest');
  }
  return null;
}

/** It was migrated or saved, or may have been. */
function departure(one: StopCase): VmVerdict | null {
  const { isPaused, migrated, panicked, shutdown } = one.timeline;
  const { exit } = one.evidence;
  const own = ownDeparture(one);
  if (migrated && shutdown?.reason !== 'guest-shutdown') {
    // It may have come back while nobody listened.
    if (one.isBroken) {
      const ends =
        exit?.how === 'exited' ? ORDERLY : wasKilled(one) ? KILLED : [...ORDERLY, ...KILLED];
      return one.verdict.oneOf([...ELSEWHERE, ...ends]);
    }
    return one.verdict.likely(
      own ?? 'migrated-away',
      own === null ? 'unknown' : 'manager',
      ELSEWHERE,
    );
  }
  // We intended to migrate or save it, and do not know whether that completed.
  const endedWell =
    exit?.how === 'exited' ? exit.exitCode === 0 : !wasKilled(one) && shutdown !== null;
  const mayHaveLeft = one.before.includes('migrated-away') && shutdown?.byGuest !== true;
  if (own === null || !mayHaveLeft || !endedWell || panicked) return null;
  if (!isPaused || one.isBroken) return one.verdict.oneOf([...ELSEWHERE, ...ORDERLY]);
  return one.oneOf(['forced-stop', 'other-quit', 'manager-quit']);
}

/** Where our own intents would have sent it. */
function ownDeparture({ own }: StopCase): 'migrated-away' | 'saved' | null {
  if (own.of('save') !== null) return 'saved';
  return own.of('migrate') === null ? null : 'migrated-away';
}

function wasKilled({ evidence: { exit } }: StopCase): boolean {
  return exit?.how === 'killed' || exit?.how === 'dumped';
}
