import { requestBefore } from '../../../events/ended-by.js';
import type { StopCase } from '../stop-case.js';
import type { Cause, VmVerdict } from '../vm-verdict.js';

/** The hypervisor never got far enough to shut down cleanly on a signal. */
export function beforeReady(one: StopCase): VmVerdict | null {
  const { exit, ready, obeyed } = one.evidence;
  if (one.timeline.shutdown !== null || exit === null) return null;
  if (exit.how === 'killed' || exit.how === 'dumped') {
    if (ready !== false) return null;
    if (exit.oom === true) return one.verdict.sure('oom-killed', 'kernel');
    const initiator = one.initiatorOf(exit.sender, exit.signal, exit.pid);
    return one.verdict.sure('start-killed', initiator);
  }
  if (ready !== false || exit.how === 'unknown') return null;
  if (exit.exitCode !== 0) return one.verdict.sure('start-failed', 'vmm');
  if (obeyed !== null || requestBefore(exit) !== null) return null;
  const hidden: Cause[] = one.hasSeenSignals(exit) ? [] : ['forced-stop'];
  return one.verdict.likely('start-exited', 'vmm', ['vmm-exit', ...hidden]);
}
