import { unlessAborted } from '../common/deadline.js';
import { ExitwatchError } from '../common/errors.js';
import { killerOf, requestBefore } from '../events/ended-by.js';
import type { ExitEvent } from '../events/exit-event.js';
import type { SignalSender } from '../events/signal-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { refuseOurLine } from './our-line.js';
import { removePidfile } from './pidfile.js';
import { refuseOurselves } from './send.js';
import {
  checkStopOptions,
  covers,
  type CheckedStopOptions,
  type StopOptions,
} from './stop-options.js';
import { isThere, StopSequence, type StopEnd, type StopWarning } from './stop-sequence.js';
import { resolveTarget, type ProcessTarget } from './target.js';
import { TreeStop, type StoppedTree } from './tree-stop.js';

/**
 * The result of {@link stop}.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export type StopResult = StopEnd & {
  /** The process concerned; `null` if nothing had that pid. */
  identity: ProcessIdentity | null;
  /**
   * Who sent the signal that ended it. If the process raised that signal again, this is the
   * original sender. If it exited, this is the last sender that asked it to: by SIGTERM, SIGINT
   * or SIGQUIT, by SIGHUP in its last 10 s, or by any signal of this process. `null` if no signal did, or if the sender is unknown.
   */
  endedBy: SignalSender | null;
  /**
   * `true`: the signal came from this very process. `false`: it came from elsewhere, or no signal
   * ended it. `null`: unknown, because the signal trace did not cover it, or a control call may
   * have ended it.
   */
  endedByUs: boolean | null;
  /** What went wrong without changing the `outcome`. */
  warnings: StopWarning[];
  /** With the `tree` option: what was stopped with it. Then `outcome` covers all of it. */
  tree?: StoppedTree;
};

/** A stop that is under way. */
interface Running {
  sequence: StopSequence | TreeStop;
  options: CheckedStopOptions;
  /** By performance.now(). */
  startedMs: number;
}

/** By the id of the process, with or without its tree. */
const running = new Map<string, Running[]>();

/**
 * Stops a process, and resolves when its exit was observed. The steps are: control calls, a signal,
 * SIGKILL. If a step fails, the next one follows at once. If you call it again for the same
 * process, you join the stop that is running and get the same outcome, unless your steps go further
 * or are sooner: then they are taken beside it.
 *
 * If the process survives all steps, it resolves with `outcome: 'timed-out'`, and the `pidfile`
 * stays.
 *
 * Rejects with an {@link ExitwatchError}. Nothing is signalled and the `pidfile` stays for:
 * `ERR_EXITWATCH_NOT_VERIFIED` if the process with this pid does not run the executable, or if that
 * is unknown; `…_THREAD` and `…_KERNEL_THREAD` if the pid is not a process's. Also:
 * `…_INVALID_OPTION`, `…_INVALID_PID`, `…_INVALID_IDENTITY`, `…_REFUSED`, `…_ABORTED`,
 * `…_INTENT_LOG` (a step that cannot be recorded is not taken), and `…_NOT_PERMITTED` if no step
 * was possible. Rejects with the error of a control call if there is no other step, and with the
 * error of watching the process.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export async function stop(target: ProcessTarget, options: StopOptions = {}): Promise<StopResult> {
  const checked = checkStopOptions(options);
  if (checked.signal?.aborted === true) throw aborted('a process', checked.signal);
  const identity = resolveTarget(target);
  if (identity === null) return finish(ALREADY_GONE, pidOf(target), NOTHING, checked);
  // A pid that used to be ours or init's, but belonged to another process, needs no protection.
  if (isThere(identity)) {
    refuseOurselves(identity.pid, checked.force);
    if (checked.tree) refuseOurLine(identity.pid);
  }
  const key = `${identity.id}${checked.tree ? ' tree' : ''}`;
  const sequence = joinable(key, checked) ?? begin(key, identity, checked);
  const end = await join(sequence, identity, checked.signal).finally(() => {
    const left = running.get(key)?.filter((each) => !each.sequence.isOver) ?? [];
    if (left.length > 0) running.set(key, left);
    else running.delete(key);
  });
  return finish(end, identity, sequence, checked);
}

function joinable(key: string, wanted: CheckedStopOptions): Running['sequence'] | undefined {
  const nowMs = performance.now();
  return running
    .get(key)
    ?.find(
      ({ sequence, options, startedMs }) =>
        !sequence.isOver && covers(options, nowMs - startedMs, wanted),
    )?.sequence;
}

function begin(
  key: string,
  identity: ProcessIdentity,
  options: CheckedStopOptions,
): Running['sequence'] {
  const beside = () =>
    (running.get(key) ?? [])
      .map((each) => each.sequence)
      .filter((each) => each instanceof StopSequence && !each.isOver) as StopSequence[];
  const sequence = options.tree
    ? new TreeStop(identity, options)
    : new StopSequence(identity, options, beside);
  const started = { sequence, options, startedMs: performance.now() };
  running.set(key, [...(running.get(key) ?? []), started]);
  return sequence;
}

/** What to report besides the outcome. */
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
      // It names another process by now, or cannot be read.
      if (!(await removePidfile(pidfile, who))) {
        const detail = `${JSON.stringify(pidfile)} stays: it names another process now, or cannot be trusted`;
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
  // The trace was running before the first signal was sent.
  const isKnown = exit?.traced === true && via !== 'control';
  return { endedBy: null, endedByUs: isKnown ? false : null };
}

function requestTo(exit: ExitEvent): SignalSender | null {
  if (exit.how !== 'exited') return null;
  const request = requestBefore(exit);
  const isRequest = (sender: SignalSender) => sender === request || sender.pid === process.pid;
  return exit.signalsReceived.findLast(isRequest) ?? null;
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
