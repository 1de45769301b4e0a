import { killerOf } from '../../events/ended-by.js';
import type { SignalSender } from '../../events/signal-event.js';
import type { VmEvidence } from '../evidence/vm-evidence.js';

import { describeExit } from './facts.js';
import type { Cause, Certainty } from './vm-verdict.js';

/** With more candidates than this, the sentence lists none. */
const MOST_SENTENCES = 8;

const SENTENCES: Record<Cause, string> = {
  'start-failed': 'it could not be started',
  'start-exited': 'it exited before it was ready',
  'start-killed': 'it was killed before it was ready',
  'migrated-away': 'it had been migrated away',
  saved: 'it had been saved to a file',
  'guest-panic': 'the guest has panicked',
  'guest-watchdog': "the guest's watchdog has ended it",
  'guest-reboot': 'the guest has rebooted, or crashed, and that ends it',
  'host-reset': 'it was reset from outside, and that ends it',
  'guest-hibernate': 'the guest has hibernated',
  'guest-shutdown': 'the guest has powered itself off',
  'admin-powerdown': 'the guest has powered off, as we had asked it to',
  'watchdog-powerdown': 'the guest has powered off when its watchdog had pressed the power button',
  'other-powerdown': 'the guest has powered off after somebody had pressed its power button',
  'manager-quit': 'we have told the hypervisor to quit',
  'other-quit': 'somebody has told the hypervisor to quit',
  'forced-stop': 'a signal has asked the hypervisor to end',
  'host-ui': 'its window was closed',
  'host-error': 'the hypervisor has given up',
  'oom-killed': 'the kernel was out of memory, and killed it',
  killed: 'a signal has killed it',
  'vmm-crash': 'the hypervisor has crashed',
  'vmm-exit': 'the hypervisor has exited by itself',
  unknown: 'why it ended is not known',
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
  return `${name}: one of ${candidates.map((each) => SENTENCES[each]).join('; ')}`;
}

function senderOf({ exit }: VmEvidence): SignalSender | null {
  return exit === null ? null : (killerOf(exit) ?? exit.signalsReceived.at(-1) ?? null);
}

/** What is missing to know the cause. */
function missingFrom({ exit, events, eventsComplete }: VmEvidence): string {
  const end = exit === null ? 'nobody saw its process end' : describeExit(exit);
  if (events.length === 0) return `${end}, and nothing was heard of it`;
  return eventsComplete ? end : `${end}, and events may be missing`;
}
