import { isSameProcess, startOf, type ProcessIdentity } from '../../identity/process-identity.js';
import { isAlive } from '../../process/liveness.js';
import { isWhole } from '../qemu/log-runs.js';

import { readControlFiles, type ControlFiles } from './control-files.js';
import { madeAtOf } from './file-stamps.js';
import type { FileTrust } from './file-trust.js';
import type { TrackingContext } from './tracking-context.js';
import { unseenRunsOf } from './unseen-ends.js';
import { ownerOf } from './vm-owner.js';
import type { KnownStart } from './vm-start.js';

/**
 * The end of this process was reported before (by another name, or by its event log), or is older
 * than `since`.
 */
export async function isOld(
  identity: ProcessIdentity,
  { pidfile }: ControlFiles,
  known: KnownStart | null,
  context: TrackingContext,
): Promise<boolean> {
  if (context.wasDelivered(identity)) return true;
  const startedAt = startOf(identity)?.getTime() ?? -Infinity;
  if (known?.judgedUntil != null && startedAt < known.judgedUntil.getTime()) return true;
  const madeAt = pidfile === null ? null : await madeAtOf(pidfile);
  return known === null && (madeAt?.getTime() ?? 0) < context.since.getTime();
}

/**
 * Whether the files of a machine show a later start than its last one that was found: a process
 * that owns them, files that it left, or events; `null`: unknown.
 */
export async function laterStart(
  name: string,
  context: TrackingContext,
  trust: FileTrust,
): Promise<boolean | null> {
  const files = await readControlFiles(context.path, name);
  if (files === null) return false;
  const known = context.known(name);
  const after = known?.judgedUntil ?? context.since;
  try {
    // What does not begin as a start does is the rest of the last one's.
    const runs = await unseenRunsOf(files, after, trust);
    if (runs.some(({ events }) => isWhole(events))) return true;
    const owner = await ownerOf(files);
    switch (owner.state) {
      case 'found': {
        const { identity } = owner;
        if (known?.identity != null && isSameProcess(identity, known.identity)) return false;
        return isAlive(identity) !== 'dead' || !(await isOld(identity, files, known, context));
      }
      case 'ended':
        return owner.madeAt > after;
      case 'unknown':
        // Files from up to `after` are an earlier start's, whatever they name by now.
        return (await isNewerThan(after, files)) ? null : false;
    }
  } catch {
    return null; // no descriptor was free, or a disk failed
  }
}

async function isNewerThan(after: Date, { pidfile, qmp }: ControlFiles): Promise<boolean> {
  const paths = [pidfile, qmp].filter((path) => path !== null);
  const times = await Promise.all(paths.map(madeAtOf));
  return times.some((at) => at !== null && at > after);
}
