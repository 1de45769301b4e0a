import type { ExitEvent } from '../../events/exit-event.js';

import type { QmpEvent } from './qmp-event.js';
import type { QmpLink } from './qmp-link.js';

/** A process that lived this long was ready. */
const SURELY_READY_MS = 10_000;

/** A process is ready after some 50 ms. One that was not by this time never was. */
const SOON_READY_MS = 2000;

/** Whether a QEMU got far enough to obey signals with a clean shutdown; `null` if unknown. */
export function wasReady(
  exit: ExitEvent,
  startedAt: Date | null,
  link: QmpLink | undefined,
  logged: readonly QmpEvent[],
): boolean | null {
  const livedMs = exit.exitedAt.getTime() - (startedAt?.getTime() ?? -Infinity);
  const isEmpty = link?.events.length === 0 && logged.length === 0;
  // It answered, but had nothing to report: it may have given up before it ran.
  const isSilent = isEmpty && link.status.last === null && livedMs < SOON_READY_MS;
  if (link?.readyAt != null && !isSilent) return true;
  // RESUME alone proves nothing: it comes just before QEMU is ready.
  if (logged.some(({ event }) => event !== 'RESUME')) return true;
  if (exit.how === 'unknown' || startedAt === null) return null;
  if (link === undefined) return livedMs > SURELY_READY_MS ? true : null;
  // It ran, or had begun to talk to us: it may have been ready.
  if (logged.length > 0 || link.wasGreeted) return null;
  // Without a socket, nothing tells how far it got; if it exited by itself, that was not far.
  if (!link.wasThere && exit.how !== 'exited') return null;
  // A missing or unusable socket says nothing about a machine that had time to get ready.
  return !link.isUnusable && livedMs < SOON_READY_MS ? false : null;
}
