import type { VmTestimony } from '../evidence/vm-evidence.js';

import { CLOCK_EVENT } from './event-log-line.js';
import { meaningOf, phaseOf } from './qmp-meaning.js';
import type { QemuTestimony } from './stop-evidence.js';

/** What QEMU has said, in the words that all hypervisors share. */
export function testimonyOf({
  events,
  initialStatus,
  lastStatus = null,
  incoming,
  debugExit,
  ...rest
}: QemuTestimony): VmTestimony {
  return {
    ...rest,
    events: events.filter(({ event }) => event !== CLOCK_EVENT).map(meaningOf),
    initialPhase: phaseOf(initialStatus),
    lastPhase: phaseOf(lastStatus),
    ...(incoming === undefined ? {} : { isIncoming: incoming }),
    ...(debugExit === undefined ? {} : { guestSetsExitCode: debugExit }),
  };
}
