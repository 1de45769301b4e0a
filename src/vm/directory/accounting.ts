import type { ExitEvent } from '../../events/exit-event.js';
import type { Words } from '../evidence/vm-evidence.js';

import type { ControlFiles } from './control-files.js';
import { madeAtOf } from './file-stamps.js';

/** The time of an exit that was seen is off by less than this. */
const SEEN_MS = 1000;

/**
 * Up to when an end accounts for its event log; `null`: neither its exit nor an event has a time.
 */
export function accountedUntil(exit: ExitEvent | null, { lastAt }: Words): Date | null {
  const wasSeen = exit !== null && exit.how !== 'unknown' && exit.uncertaintyMs < SEEN_MS;
  const last = Math.max(wasSeen ? exit.exitedAt.getTime() : 0, lastAt?.getTime() ?? 0);
  return last === 0 ? null : new Date(last);
}

/** Counts leftover files as part of a run that nobody saw end: they were made while it ran. */
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
