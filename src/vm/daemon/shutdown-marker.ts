import { invalidOption } from '../../common/options.js';
import {
  checkIdentity,
  isSameProcess,
  startOf,
  type ProcessIdentity,
} from '../../identity/process-identity.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { checkVmName, readStateFile, statePath } from './state-file.js';

/** The mark of a user's shutdown: `NAME.shutdown` in a state directory. */
export type ShutdownMarker = {
  event: 'shutdown';
  name: string;
  /** Which process the user has shut down; `null`: it had ended when it was found. */
  identity: ProcessIdentity | null;
  /** When this start of the machine began, by its process or its first word; `null`: not known. */
  startedAt?: Date | null;
  /** What began up to then was an earlier start; `null`: none is known of. */
  startedAfter?: Date | null;
  at: Date;
  cause: VmVerdict['cause'];
  host: string | null;
};

const MOST_MARKER_BYTES = 64 * 1024;

/**
 * The mark of a user's shutdown, if the last end of that virtual machine was one; with a process, or with
 * when its process was started, only if it was this start's: a mark that an earlier start has left says
 * nothing of a later one. Of a start that nobody has seen, the event log tells when it began.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_STATE_DIR`, `ERR_EXITWATCH_INVALID_OPTION`.
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

/** How long after its process a machine has its first word. */
const FIRST_WORD_MS = 10_000;

/** Clocks of two processes. */
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
    throw invalidOption('startedAt is a Date');
  }
}

function asMarker(value: unknown, name: string): ShutdownMarker {
  const marker = value as Partial<ShutdownMarker> | null;
  if (marker?.event !== 'shutdown' || marker.name !== name) throw new Error('it is no such mark');
  if (marker.identity != null) checkIdentity(marker.identity);
  return marker as ShutdownMarker;
}
