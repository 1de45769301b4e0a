import { killerOf } from '../../events/ended-by.js';
import type { SignalSender } from '../../events/signal-event.js';
import type { VmEvidence } from '../evidence/vm-evidence.js';

import { describeExit } from './facts.js';
import type { Cause, Certainty } from './vm-verdict.js';

/** With more candidates than this, the sentence lists none. */
const MOST_SENTENCES = 8;

const SENTENCES: Record<Cause, string> = {
  'start-failed': 'it failed to start',
  'start-exited': 'it exited before it was ready',
  'start-killed': 'it was killed before it was ready',
  'migrated-away': 'it was migrated away',
  saved: 'it was saved to a file',
  'guest-panic': 'the guest panicked',
  'guest-watchdog': "the guest's watchdog ended it",
  'guest-reboot': 'the guest rebooted or crashed, which ends it',
  'host-reset': 'it was reset from outside, which ends it',
  'guest-hibernate': 'the guest hibernated',
  'guest-shutdown': 'the guest powered itself off',
  'admin-powerdown': 'the guest powered off at our request',
  'watchdog-powerdown': 'the guest powered off after its watchdog pressed the power button',
  'other-powerdown': 'the guest powered off after somebody else pressed its power button',
  'manager-quit': 'we told the hypervisor to quit',
  'other-quit': 'somebody else told the hypervisor to quit',
  'forced-stop': 'a signal told the hypervisor to exit',
  'host-ui': 'its window was closed',
  'host-error': 'the hypervisor gave up because of an error',
  'oom-killed': "the kernel's OOM killer killed it",
  killed: 'a signal killed it',
  'vmm-crash': 'the hypervisor crashed',
  'vmm-exit': 'the hypervisor exited on its own',
  unknown: 'why it ended is unknown',
};

/** A verdict as one sentence for people. */
export function sentenceOf(
  evidence: VmEvidence,
  cause: Cause,
  certainty: Certainty,
  candidates: readonly Cause[],
): string {
  const { name } = evidence;
  if (cause !== 'unknown') {
    const sender = senderOf(evidence);
    const by = sender?.pid == null ? '' : `: ${sender.signal} from ${sender.pid} (${sender.name})`;
    const isSignal = cause === 'killed' || cause === 'forced-stop' || cause === 'start-killed';
    return `${name}: ${SENTENCES[cause]}${isSignal ? by : ''} (${certainty})`;
  }
  if (certainty === 'unknown' || candidates.length > MOST_SENTENCES) {
    return `${name}: ${SENTENCES.unknown}, because ${missingFrom(evidence)}`;
  }
  return `${name}: possible causes: ${candidates.map((each) => SENTENCES[each]).join('; ')}`;
}

function senderOf({ exit }: VmEvidence): SignalSender | null {
  return exit === null ? null : (killerOf(exit) ?? exit.signalsReceived.at(-1) ?? null);
}

/** What is missing to know the cause. */
function missingFrom({ exit, events, eventsComplete }: VmEvidence): string {
  const end = exit === null ? 'nobody saw its process exit' : describeExit(exit);
  if (events.length === 0) return `${end}, and it reported no events`;
  return eventsComplete ? end : `${end}, and events may be missing`;
}
