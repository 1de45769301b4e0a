import { invalidOption } from '../../common/options.js';
import {
  checkIdentity,
  isSameProcess,
  startOf,
  type ProcessIdentity,
} from '../../identity/process-identity.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { checkVmName, readStateFile, statePath } from './state-file.js';

/**
 * The mark of a user's shutdown: `NAME.shutdown` in a state directory.
 *
 * @see [What the daemon remembers](../../../docs/vm-daemon.md#what-it-remembers)
 */
export type ShutdownMarker = {
  event: 'shutdown';
  name: string;
  /** The process that the user shut down; `null`: it had exited when it was found. */
  identity: ProcessIdentity | null;
  /** When this start began, by its process or its first event; `null` if unknown. */
  startedAt?: Date | null;
  /** Anything that began up to this time was an earlier start; `null`: none is known. */
  startedAfter?: Date | null;
  at: Date;
  cause: VmVerdict['cause'];
  host: string | null;
};

const MOST_MARKER_BYTES = 64 * 1024;

/**
 * Reads the mark of a user's shutdown: it exists if the last end of that virtual machine was one.
 * With `run` (a process, or when it started), resolves with the mark only if it is of that start: a
 * mark left by an earlier start says nothing about a later one. If nobody saw a start, the event
 * log tells when it began.
 *
 * Rejects with an `ExitwatchError` `ERR_EXITWATCH_STATE_DIR`, `ERR_EXITWATCH_INVALID_OPTION`.
 *
 * @see [What the daemon remembers](../../../docs/vm-daemon.md#what-it-remembers)
 */
export async function readShutdownMarker(
  stateDir: string,
  name: string,
  run?: ProcessIdentity | { startedAt: Date },
): Promise<ShutdownMarker | null> {
  checkVmName(name);
  if (run !== undefined) checkRun(run);
  const path = statePath(stateDir, name, 'marker');
  const marker = await readStateFile(path, MOST_MARKER_BYTES, (value) => asMarker(value, name));
  if (marker === null || run === undefined) return marker;
  if (!('startedAt' in run) && marker.identity !== null) {
    return isSameProcess(marker.identity, run) ? marker : null;
  }
  const startedAt = 'startedAt' in run ? run.startedAt : startOf(run);
  return startedAt !== null && isOfStart(marker, startedAt) ? marker : null;
}

/** How long after the start of its process a machine may have its first event. */
const FIRST_WORD_MS = 10_000;

/** How far the clocks of two processes may differ. */
const CLOCK_SLACK_MS = 1000;

function isOfStart(marker: ShutdownMarker, at: Date): boolean {
  const { startedAt = null, startedAfter = null } = marker;
  if (startedAt === null || at.getTime() <= (startedAfter?.getTime() ?? -Infinity)) return false;
  const afterMs = startedAt.getTime() - at.getTime();
  return afterMs >= -CLOCK_SLACK_MS && afterMs <= FIRST_WORD_MS;
}

function checkRun(run: ProcessIdentity | { startedAt: Date }): void {
  if (!('startedAt' in run)) checkIdentity(run);
  else if (!((run.startedAt as unknown) instanceof Date)) {
    throw invalidOption('startedAt must be a Date');
  }
}

function asMarker(value: unknown, name: string): ShutdownMarker {
  const marker = value as Partial<ShutdownMarker> | null;
  if (marker?.event !== 'shutdown' || marker.name !== name)
    throw new Error('it is not a shutdown mark of this machine');
  if (marker.identity != null) checkIdentity(marker.identity);
  return marker as ShutdownMarker;
}
