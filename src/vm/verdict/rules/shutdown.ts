import { GUESTS, HOSTS, KILLED, LINGERING, ORDERLY } from '../causes.js';
import type { StopCase } from '../stop-case.js';
import type { VmVerdict } from '../vm-verdict.js';

import { byGuestShutdown } from './guest-shutdown.js';

/** Judges by the hypervisor's first shutdown event. */
export function byShutdown(one: StopCase): VmVerdict | null {
  const { shutdown, wasShutDown } = one.timeline;
  if (wasShutDown) {
    // It may have been started again while nobody listened.
    const ends = one.isBroken ? [...ORDERLY, ...KILLED] : [];
    return one.verdict.oneOf([...LINGERING, ...ends]);
  }
  if (shutdown === null) return null;
  switch (shutdown.reason) {
    case 'guest-shutdown':
      return byGuestShutdown(one);
    case 'guest-reset':
      return one.verdict.sure('guest-reboot', 'guest');
    case 'host-reset':
      return one.afterwards('host-reset', 'host');
    case 'host-quit':
      return byQuit(one);
    case 'host-signal':
      return one.afterwards('forced-stop', one.initiatorOfRequest);
    case 'host-ui':
      return one.afterwards('host-ui', 'host');
    case 'host-error':
      return one.afterwards('host-error', 'vmm');
    // byGuestState() has judged a panic already.
    case 'guest-panic':
    case null:
      return bySide(one, shutdown.byGuest);
  }
}

function byQuit(one: StopCase): VmVerdict {
  if (one.own.of('quit') !== null) return one.afterwards('manager-quit', 'manager');
  if (one.own.mayBeLate('quit')) return one.oneOf(['manager-quit', 'other-quit']);
  return one.evidence.intents === null
    ? one.oneOf(['manager-quit', 'other-quit'])
    : one.afterwards('other-quit', 'host');
}

/** The event gives no reason, or one that we do not know. */
function bySide(one: StopCase, byGuest: boolean | null): VmVerdict {
  if (byGuest === true) return one.oneOf(GUESTS);
  return one.oneOf(byGuest === false ? HOSTS : [...GUESTS, ...HOSTS]);
}
