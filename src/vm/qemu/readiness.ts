import type { ExitEvent } from '../../events/exit-event.js';

import type { QmpEvent } from './qmp-event.js';
import type { QmpLink } from './qmp-link.js';

/** Who has lived so long was ready. */
const SURELY_READY_MS = 10_000;

/** Who has not come so far was not ready: it takes some 50 ms. */
const SOON_READY_MS = 2000;

/** Whether a QEMU had got so far that it obeys signals in good order; `null`: that is not known. */
export function wasReady(
  exit: ExitEvent,
  startedAt: Date | null,
  link: QmpLink | undefined,
  logged: readonly QmpEvent[],
): boolean | null {
  // RESUME comes when it is about to be ready.
  const livedMs = exit.exitedAt.getTime() - (startedAt?.getTime() ?? -Infinity);
  const isEmpty = link?.events.length === 0 && logged.length === 0;
  // It talked to us, and had nothing to say: it may have given up before it ran.
  const isSilent = isEmpty && link.status.last === null && livedMs < SOON_READY_MS;
  if (link?.readyAt != null && !isSilent) return true;
  if (logged.some(({ event }) => event !== 'RESUME')) return true;
  if (exit.how === 'unknown' || startedAt === null) return null;
  if (link === undefined) return livedMs > SURELY_READY_MS ? true : null;
  // It runs, or its hypervisor had begun to talk to us.
  if (logged.length > 0 || link.wasGreeted) return null;
  // Without a socket nothing tells how far it was; what ends by itself then has not come far.
  if (!link.wasThere && exit.how !== 'exited') return null;
  // One that does not come, or is of no use, says nothing of a machine that has had the time.
  return !link.isUnusable && livedMs < SOON_READY_MS ? false : null;
}
