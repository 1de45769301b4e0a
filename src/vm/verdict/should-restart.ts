import { ELSEWHERE } from './causes.js';
import { lastStatus } from './facts.js';
import type { Cause, VmVerdict } from './vm-verdict.js';

/**
 * Whether to start a machine again.
 *
 * @see [Whether to start it again](../../../docs/vm-causes.md#whether-to-start-it-again)
 */
export type RestartAdvice = {
  /** `null`: unknown. Leave it off, and ask somebody. */
  restart: boolean | null;
  /** The reason, for people. */
  because: string;
};

/** The guest powered itself off, on its own or on request. */
const POWERED_OFF: readonly Cause[] = [
  ...(['guest-shutdown', 'guest-hibernate', 'admin-powerdown', 'other-powerdown'] as const),
  'watchdog-powerdown',
];

/** It could not be started, or was not meant to keep running. */
const FUTILE: readonly Cause[] = ['start-failed', 'start-exited'];

/** It was meant to keep running. */
const CUT_SHORT: readonly Cause[] = [
  ...(['guest-panic', 'guest-watchdog', 'guest-reboot', 'host-reset', 'other-quit'] as const),
  ...(['forced-stop', 'host-ui', 'host-error', 'oom-killed', 'killed', 'vmm-crash'] as const),
  ...(['vmm-exit', 'start-killed'] as const),
];

/**
 * What is known about a machine's later starts, such as a `VmEnd`; default: that there are none.
 *
 * @see [Whether to start it again](../../../docs/vm-causes.md#whether-to-start-it-again)
 */
export type LaterStarts = { isSuperseded?: boolean | null };

/**
 * Whether to start a machine again. Not if it may continue elsewhere, if its guest powered it off,
 * if we ended it, or if it was started again already. Yes if it was cut short, unless a candidate
 * says otherwise.
 *
 * It keeps no record of failures: wait a while between two starts.
 *
 * @see [Whether to start it again](../../../docs/vm-causes.md#whether-to-start-it-again)
 */
export function shouldRestart(
  stop: VmVerdict,
  { isSuperseded = false }: LaterStarts = {},
): RestartAdvice {
  if (isSuperseded === true) return { restart: false, because: 'it was started again since' };
  const advice = adviceOn(stop);
  return advice.restart === true && isSuperseded === null
    ? { restart: null, because: 'it may have been started again since' }
    : advice;
}

function adviceOn(stop: VmVerdict): RestartAdvice {
  const { candidates, certainty, initiator } = stop;
  const all = (causes: readonly Cause[]) => candidates.every((each) => causes.includes(each));
  const any = (causes: readonly Cause[]) => candidates.some((each) => causes.includes(each));
  if (candidates.length === 0 || certainty === 'unknown') {
    return { restart: null, because: 'why it ended is unknown' };
  }
  if (all(ELSEWHERE)) return { restart: false, because: 'it continues elsewhere' };
  if (initiator === 'manager') return { restart: false, because: 'we ended it' };
  if (all(POWERED_OFF)) return { restart: false, because: 'its guest powered off' };
  if (all(FUTILE)) return { restart: false, because: 'it would fail again' };
  // We may have waited too briefly for our own request to work, or our intents are unknown.
  const isDoubtful = initiator === 'unknown' && all(CUT_SHORT);
  if (isDoubtful && stop.evidence.some(({ source }) => source === 'intent')) {
    return { restart: null, because: 'we may have ended it' };
  }
  if (all(CUT_SHORT)) return { restart: true, because: 'it was cut short' };
  if (any(ELSEWHERE)) {
    const because = 'it may continue elsewhere: two copies would share its disks';
    return { restart: wasStopped(stop) ? false : null, because };
  }
  if (any(['manager-quit'])) return { restart: null, because: 'we may have ended it' };
  return any(POWERED_OFF)
    ? { restart: null, because: 'its guest may have powered off' }
    : { restart: null, because: 'it may be unable to start' };
}

/** Events that pause or resume a machine. */
const RUNS = /^(STOP|RESUME)$/;

/**
 * Whether it was paused and never resumed, like the source of a migration; not if it was merely
 * paused when it was last asked.
 */
function wasStopped({ evidence }: VmVerdict): boolean {
  const wasPausedAtLast = evidence.some(
    ({ source, text }) => source === 'status' && text === lastStatus('paused'),
  );
  const runs = evidence.filter(({ source, text }) => source === 'event' && RUNS.test(text));
  return runs.at(-1)?.text === 'STOP' && !wasPausedAtLast;
}
