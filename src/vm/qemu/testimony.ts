import type { ExitEvent } from '../../events/exit-event.js';
import type { VmTestimony } from '../evidence/vm-evidence.js';
import { SHUTDOWN_SIGNALS } from '../verdict/own-doing.js';

import { CLOCK_EVENT } from './event-log-line.js';
import { meaningOf, phaseOf } from './qmp-meaning.js';
import type { QemuTestimony } from './stop-evidence.js';

/** What QEMU said, in terms that all hypervisors share. */
export function testimonyOf(
  { events, initialStatus, lastStatus = null, incoming, debugExit, ready, ...rest }: QemuTestimony,
  exit: ExitEvent | null,
): VmTestimony {
  return {
    ...rest,
    ready: ready ?? (wasKilledEarly(exit) ? false : null),
    removesPidfile: true,
    events: events.filter(({ event }) => event !== CLOCK_EVENT).map(meaningOf),
    initialPhase: phaseOf(initialStatus),
    lastPhase: phaseOf(lastStatus),
    ...(incoming === undefined ? {} : { isIncoming: incoming }),
    ...(debugExit === undefined ? {} : { guestSetsExitCode: debugExit }),
  };
}

/** A QEMU that is ready catches these: they do not kill it. */
function wasKilledEarly(exit: ExitEvent | null): boolean {
  return (
    (exit?.how === 'killed' || exit?.how === 'dumped') && SHUTDOWN_SIGNALS.includes(exit.signal)
  );
}
