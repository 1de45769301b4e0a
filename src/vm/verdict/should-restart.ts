import { ELSEWHERE } from './causes.js';
import type { Cause, VmVerdict } from './vm-verdict.js';

/** Whether a machine that has ended is to be started again. */
export type RestartAdvice = {
  /** `null`: that is not known. Leave it off, and ask somebody. */
  restart: boolean | null;
  /** For people. */
  because: string;
};

/** The guest has powered itself off, of itself or asked to. */
const POWERED_OFF: readonly Cause[] = [
  ...(['guest-shutdown', 'guest-hibernate', 'admin-powerdown', 'other-powerdown'] as const),
  'watchdog-powerdown',
];

/** It could not be started, or was not meant to run. */
const FUTILE: readonly Cause[] = ['start-failed', 'start-exited'];

/** It was to run on. */
const CUT_SHORT: readonly Cause[] = [
  ...(['guest-panic', 'guest-watchdog', 'guest-reboot', 'host-reset', 'other-quit'] as const),
  ...(['forced-stop', 'host-ui', 'host-error', 'oom-killed', 'killed', 'vmm-crash'] as const),
  ...(['vmm-exit', 'start-killed'] as const),
];

/**
 * Whether a machine is to be started again. Never where it may go on elsewhere, nor where its guest has
 * powered it off, nor where we have ended it; where it was cut short, it is, unless one of its candidates
 * says otherwise.
 *
 * Of a machine that fails again and again it knows nothing: wait a while between two starts.
 */
export function shouldRestart(stop: VmVerdict): RestartAdvice {
  const { candidates, certainty, initiator } = stop;
  const all = (causes: readonly Cause[]) => candidates.every((each) => causes.includes(each));
  const any = (causes: readonly Cause[]) => candidates.some((each) => causes.includes(each));
  if (candidates.length === 0 || certainty === 'unknown') {
    return { restart: null, because: 'why it ended is not known' };
  }
  if (all(ELSEWHERE)) return { restart: false, because: 'it goes on elsewhere' };
  if (initiator === 'manager') return { restart: false, because: 'we have ended it' };
  if (all(POWERED_OFF)) return { restart: false, because: 'its guest has powered off' };
  if (all(FUTILE)) return { restart: false, because: 'it would fail again' };
  // We may have waited too shortly for what we had asked for, or nobody knows what that was.
  const isDoubtful = initiator === 'unknown' && all(CUT_SHORT);
  if (isDoubtful && stop.evidence.some(({ source }) => source === 'intent')) {
    return { restart: null, because: 'we may have ended it' };
  }
  if (all(CUT_SHORT)) return { restart: true, because: 'it was cut short' };
  if (any(ELSEWHERE)) {
    const because = 'it may go on elsewhere: two of it would share its disks';
    return { restart: wasStopped(stop) ? false : null, because };
  }
  if (any(['manager-quit'])) return { restart: null, because: 'we may have ended it' };
  return any(POWERED_OFF)
    ? { restart: null, because: 'its guest may have powered off' }
    : { restart: null, because: 'it may be unable to start' };
}

/** Events of whether it goes on. */
const RUNS = /^(STOP|RESUME)$/;

/** As the source of a migration is, and it did not go on; not where it was paused, and nothing else. */
function wasStopped({ evidence }: VmVerdict): boolean {
  const has = (of: string, what: RegExp) =>
    evidence.some(({ source, text }) => source === of && what.test(text));
  const runs = evidence.filter(({ source, text }) => source === 'event' && RUNS.test(text));
  return runs.at(-1)?.text === 'STOP' && !has('status', /^it was paused when it was asked last$/);
}
