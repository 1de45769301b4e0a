import { isLeft } from '../../process/pidfile.js';
import { startOf } from '../../identity/process-identity.js';
import { wordsOf } from '../evidence/vm-evidence.js';
import { QemuLog } from '../qemu/qemu-log.js';
import { hasEnded, judgeUnseen, readRuns, type UnseenRun } from '../qemu/unseen-run.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import type { ControlFiles } from './control-files.js';
import type { FileTrust } from './file-trust.js';
import type { VmOwner } from './vm-owner.js';

/** A run that came and went unseen. */
export interface UnseenEnd {
  run: UnseenRun;
  /** The files that exist now are those that it left. */
  hasLeftFiles: boolean;
}

/** The runs in an event log after a time. Rejects if the log exists but cannot be read. */
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
 * Those of the runs that are over. `after`: files from up to then are accounted for; `hasWaited`:
 * no process has claimed the files for a while.
 */
export function unseenEndsOf(
  all: readonly UnseenRun[],
  owner: VmOwner,
  after: Date,
  hasWaited: boolean,
): UnseenEnd[] {
  // A pidfile that names the process may be about to appear.
  if (owner.state !== 'found' && !hasWaited) return [];
  // Files from before `after` are an earlier run's, and say nothing.
  const hasLeft = owner.state === 'ended' && owner.madeAt > after;
  const silent = (until: Date) => ({ events: [], until, mayLackEvents: true });
  const runs = hasLeft && all.length === 0 ? [silent(owner.madeAt)] : all;
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

/** Why it ended, judged by what it logged and left. */
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
  // An earlier start's log says nothing about this one.
  const since = wordsOf(run.events).firstAt ?? run.until;
  return judgeUnseen(name, run, leftovers, log.obeyed(since));
}
