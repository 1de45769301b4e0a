import { unlessAborted } from '../common/deadline.js';
import { ExitwatchError } from '../common/errors.js';
import { killerOf, REQUESTS } from '../events/ended-by.js';
import type { ExitEvent } from '../events/exit-event.js';
import type { SignalSender } from '../events/signal-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { refuseOurLine } from './our-line.js';
import { removePidfile } from './pidfile.js';
import { refuseOurselves } from './send.js';
import { checkStopOptions, type CheckedStopOptions, type StopOptions } from './stop-options.js';
import { isThere, StopSequence, type StopEnd, type StopWarning } from './stop-sequence.js';
import { resolveTarget, type ProcessTarget } from './target.js';
import { TreeStop, type StoppedTree } from './tree-stop.js';

/** How a process was stopped. */
export type StopResult = StopEnd & {
  /** Whom it concerned; `null` if nobody had that pid. */
  identity: ProcessIdentity | null;
  /**
   * Whose signal ended it: who sent it, or sent the one that the process raised again, or the last one
   * that asked it to end before it exited: a SIGTERM, SIGINT or SIGHUP, or any signal of ours. `null` if
   * no signal did, or nobody saw whose.
   */
  endedBy: SignalSender | null;
  /**
   * That was a signal of this very process. `false`: somebody else's, or it ended by itself. `null`: nobody
   * can tell, as the signal trace did not see it, or a control call may have done it.
   */
  endedByUs: boolean | null;
  /** What went wrong on the way, and did not keep it from ending as `outcome` says. */
  warnings: StopWarning[];
  /** Who was stopped with it, if that was asked for: what `outcome` says is said of all of them. */
  tree?: StoppedTree;
};

/** By the id of the process, with its tree or without. */
const running = new Map<string, StopSequence | TreeStop>();

/**
 * Stops a process, and resolves when its end was observed: by a control call, a signal, then SIGKILL, each
 * a step that follows at once where the one before fails. Whoever asks for the same process meanwhile
 * joins what is under way, and gets the same outcome.
 *
 * Where the process outlives all steps it resolves with `outcome: 'timed-out'`, and `pidfile` stays.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NOT_VERIFIED` if the process that has the pid
 * does not run the executable, or nobody can tell; `…_THREAD` and `…_KERNEL_THREAD` if that is what has
 * the pid; then nothing is signalled, and `pidfile` stays. `…_INVALID_OPTION`, `…_INVALID_PID`,
 * `…_INVALID_IDENTITY`, `…_REFUSED`, `…_ABORTED`, `…_INTENT_LOG` (nothing is done that could not be
 * written down), `…_NOT_PERMITTED` if no step could be done; with what a control call rejects with if there
 * is no other step; and with what watching it rejects with.
 */
export async function stop(target: ProcessTarget, options: StopOptions = {}): Promise<StopResult> {
  const checked = checkStopOptions(options);
  if (checked.signal?.aborted === true) throw aborted('a process', checked.signal);
  const identity = resolveTarget(target);
  if (identity === null) return finish(ALREADY_GONE, pidOf(target), NOTHING, checked);
  // Another process that had our pid, or init's, needs no sparing.
  if (isThere(identity)) {
    refuseOurselves(identity.pid, checked.force);
    if (checked.tree) refuseOurLine(identity.pid);
  }
  const key = `${identity.id}${checked.tree ? ' tree' : ''}`;
  let sequence = running.get(key);
  if (sequence === undefined || sequence.isOver) {
    sequence = checked.tree ? new TreeStop(identity, checked) : new StopSequence(identity, checked);
    running.set(key, sequence);
  }
  const end = await join(sequence, identity, checked.signal).finally(() => {
    if (sequence.isOver && running.get(key) === sequence) running.delete(key);
  });
  return finish(end, identity, sequence, checked);
}

/** What there is to tell beside the end. */
type Particulars = { warnings: readonly StopWarning[]; tree?: StoppedTree };

const NOTHING: Particulars = { warnings: [] };

const ALREADY_GONE: StopEnd = { outcome: 'already-gone', via: null, exit: null };

async function finish(
  end: StopEnd,
  who: ProcessIdentity | number,
  { warnings: before, tree = { cgroup: null, members: [] } }: Particulars,
  { pidfile, tree: withTree }: CheckedStopOptions,
): Promise<StopResult> {
  const warnings = [...before];
  if (pidfile !== undefined && end.outcome !== 'timed-out') {
    try {
      // It is another's by now, or cannot be read.
      if (!(await removePidfile(pidfile, who))) {
        const detail = `${JSON.stringify(pidfile)} names another process by now, or cannot be trusted`;
        warnings.push({ code: 'pidfile-not-removed', detail });
      }
    } catch (error) {
      warnings.push({ code: 'pidfile-not-removed', detail: (error as ExitwatchError).message });
    }
  }
  const identity = typeof who === 'number' ? null : who;
  return { ...end, identity, ...whoEnded(end), warnings, ...(withTree ? { tree } : {}) };
}

function whoEnded({ exit, via }: StopEnd): Pick<StopResult, 'endedBy' | 'endedByUs'> {
  const sender = exit === null ? null : (killerOf(exit) ?? requestTo(exit));
  if (sender !== null) return { endedBy: sender, endedByUs: sender.pid === process.pid };
  // The trace was at work before the first signal was sent.
  const isKnown = exit?.traced === true && via !== 'control';
  return { endedBy: null, endedByUs: isKnown ? false : null };
}

function requestTo({ how, signalsReceived }: ExitEvent): SignalSender | null {
  if (how !== 'exited') return null;
  const isRequest = ({ signal, pid }: SignalSender) =>
    REQUESTS.includes(signal) || pid === process.pid;
  return signalsReceived.findLast(isRequest) ?? null;
}

function pidOf(target: ProcessTarget): number {
  return typeof target === 'number' ? target : target.pid;
}

function join(
  sequence: StopSequence | TreeStop,
  { pid }: ProcessIdentity,
  signal: AbortSignal | undefined,
): Promise<StopEnd> {
  return unlessAborted(sequence.join(), signal, () => {
    sequence.leave();
    return aborted(`process ${pid}`, signal);
  });
}

function aborted(who: string, signal: AbortSignal | undefined): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_ABORTED', `waiting for the end of ${who} was aborted`, {
    cause: signal?.reason,
  });
}
