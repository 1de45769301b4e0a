import type { ExitEvent } from '../../events/exit-event.js';
import type { Words } from '../evidence/vm-evidence.js';

import type { ControlFiles } from './control-files.js';
import { madeAtOf } from './file-stamps.js';

/** The clock of an end that was seen is off by that, at most. */
const SEEN_MS = 1000;

/** Up to when an event log is accounted for by an end: its last word, or the end; `null`: neither is known. */
export function accountedUntil(exit: ExitEvent | null, { lastAt }: Words): Date | null {
  const wasSeen = exit !== null && exit.how !== 'unknown' && exit.uncertaintyMs < SEEN_MS;
  const last = Math.max(wasSeen ? exit.exitedAt.getTime() : 0, lastAt?.getTime() ?? 0);
  return last === 0 ? null : new Date(last);
}

/** What one has left that nobody saw end is accounted for with it: it was made while it was there. */
export async function withLeftovers(
  until: Date,
  exit: ExitEvent | null,
  files: ControlFiles | null,
): Promise<Date> {
  if (exit !== null && exit.how !== 'unknown') return until;
  const paths = [files?.pidfile, files?.qmp].filter((path) => path != null);
  const times = (await Promise.all(paths.map(madeAtOf))).map((at) => at?.getTime() ?? 0);
  return new Date(Math.max(until.getTime(), ...times));
}
