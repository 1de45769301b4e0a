import type { ExitEvent } from '../../events/exit-event.js';
import { unknownExit } from '../../events/unknown-exit.js';
import { decodeWaitStatus } from '../../events/wait-status.js';
import { type ProcessIdentity, startOf } from '../../identity/process-identity.js';

import type { KeeperRun } from './keeper-run.js';

/** The end of a run as its keeper knows it; `null` if it had no process. */
export function exitOf(run: KeeperRun, isRepeated: boolean): ExitEvent | null {
  const { identity, pid, endedAt, waitStatus, livedMs } = run;
  if (identity === null || pid === null) return null;
  const exitedAt = endedAt ?? new Date();
  const known = {
    id: identity.id,
    pid,
    startedAt: startOf(identity) ?? run.startedAt,
    exitedAt,
    // The keeper hears of the end soon, but only the kernel knows how soon.
    uncertaintyMs: Math.max(1, livedMs ?? exitedAt.getTime() - run.startedAt.getTime()),
    source: 'keeper' as const,
  };
  const unknown = { ...unknownExit(known, 'gone-while-unobserved'), isRepeated };
  if (waitStatus === null) return unknown;
  const { how, ...status } = decodeWaitStatus(waitStatus);
  return { ...unknown, ...status, how, unknownReason: null } as ExitEvent;
}

/** The end of a run before this boot, if its keeper has stored it; `identity`: which somebody else has. */
export function exitBefore(run: KeeperRun | null, identity: ProcessIdentity | null) {
  if (run?.state !== 'ended' || run.waitStatus === null || identity === null) return null;
  return exitOf({ ...run, identity, pid: identity.pid }, true);
}

/**
 * What the monitor saw, with the status of the keeper, which is that of waitpid(2). The keeper knows
 * the status where the monitor may not, and the monitor when it ended and who sent the signal.
 */
export function joinExit(kept: ExitEvent, seen: ExitEvent | null): ExitEvent {
  if (seen === null || seen.how === 'unknown') return kept;
  if (kept.how === 'unknown') return { ...seen, isRepeated: kept.isRepeated };
  const isSame = kept.exitCode === seen.exitCode && kept.signal === seen.signal;
  return isSame
    ? {
        ...{ ...seen, ...timeOf(kept, seen), ...statusOf(kept) },
        ...{ source: 'keeper', isRepeated: kept.isRepeated },
      }
    : kept;
}

/** Nobody hears of an end before it: without a stamp of the kernel, who heard of it first knows best. */
function timeOf(kept: ExitEvent, seen: ExitEvent): Pick<ExitEvent, 'exitedAt' | 'uncertaintyMs'> {
  const { exitedAt, uncertaintyMs } = seen;
  if (seen.exitedNs !== null || kept.exitedAt >= exitedAt) return { exitedAt, uncertaintyMs };
  const aliveMs = exitedAt.getTime() - uncertaintyMs;
  const leftMs = Math.max(1, kept.exitedAt.getTime() - aliveMs);
  return { exitedAt: kept.exitedAt, uncertaintyMs: leftMs };
}

function statusOf({ how, exitCode, signal, coreDumped, unknownReason }: ExitEvent) {
  return { how, exitCode, signal, coreDumped, unknownReason } as Pick<
    ExitEvent & { how: 'exited' },
    'how' | 'exitCode' | 'signal' | 'coreDumped' | 'unknownReason'
  >;
}
