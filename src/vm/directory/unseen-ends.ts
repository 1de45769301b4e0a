import { isLeft } from '../../process/pidfile.js';
import { startOf } from '../../identity/process-identity.js';
import { QemuLog } from '../qemu/qemu-log.js';
import { hasEnded, judgeUnseen, readRuns, type UnseenRun } from '../qemu/unseen-run.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import type { ControlFiles } from './control-files.js';
import type { FileTrust } from './file-trust.js';
import type { VmOwner } from './vm-owner.js';

/** A run that has come and gone without having been seen. */
export interface UnseenEnd {
  run: UnseenRun;
  /** The files that are there are what it has left. */
  hasLeftFiles: boolean;
}

/** What an event log has of after that. Rejects where it cannot be read just now. */
export async function unseenRunsOf(
  { eventLog }: ControlFiles,
  after: Date,
  trust: FileTrust,
): Promise<UnseenRun[]> {
  if (eventLog === null) return [];
  const { runs, refusal } = await readRuns({ path: eventLog, trustedUids: trust.uids, after });
  if (refusal !== null) trust.refuse(eventLog, refusal);
  return runs;
}

/**
 * Those of the runs that are over. `after`: what was made up to then is accounted for; `hasWaited`: nobody
 * has come for the files for a while.
 */
export function unseenEndsOf(
  all: readonly UnseenRun[],
  owner: VmOwner,
  after: Date,
  hasWaited: boolean,
): UnseenEnd[] {
  // The process that has ended may be about to be named.
  if (owner.state !== 'found' && !hasWaited) return [];
  // Of an earlier one, what it has left says nothing.
  const hasLeft = owner.state === 'ended' && owner.madeAt > after;
  const runs = hasLeft && all.length === 0 ? [{ events: [], until: owner.madeAt }] : all;
  const startedAt = owner.state === 'found' ? startOf(owner.identity) : null;
  const last = runs.at(-1);
  const isOver = (run: UnseenRun) =>
    owner.state === 'found'
      ? startedAt !== null && run.until < startedAt
      : run !== last || hasLeft || hasEnded(run);
  return runs
    .filter(isOver)
    .map((run) => ({ run, hasLeftFiles: run === last && owner.state !== 'found' }));
}

/** Why it ended, by what it has said and left. */
export async function judgeUnseenEnd(
  name: string,
  { run, hasLeftFiles }: UnseenEnd,
  files: ControlFiles,
  trust: FileTrust,
): Promise<VmVerdict> {
  if (!hasLeftFiles) return judgeUnseen(name, run, { pidfile: null, socket: null }, null);
  const leftovers = { pidfile: isLeft(files.pidfile), socket: files.qmp !== null };
  if (files.log === null) return judgeUnseen(name, run, leftovers, null);
  const log = new QemuLog(files.log);
  log.file.trustedUids = trust.uids;
  await log.read();
  if (log.file.refusal !== null) trust.refuse(files.log, log.file.refusal);
  return judgeUnseen(name, run, leftovers, log.obeyed(null));
}
