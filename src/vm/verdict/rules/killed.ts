import { killerOf } from '../../../events/ended-by.js';
import type { ExitEvent } from '../../../events/exit-event.js';
import type { SignalSender } from '../../../events/signal-event.js';
import type { StopCase } from '../stop-case.js';
import type { VmVerdict } from '../vm-verdict.js';

const CRASHES: readonly string[] = [
  'SIGSEGV',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGTRAP',
  'SIGSYS',
];

/** A signal has killed it, and it had no word on that. */
export function bySignal(one: StopCase): VmVerdict | null {
  const { exit } = one.evidence;
  if (exit?.how !== 'killed' && exit?.how !== 'dumped') return null;
  const { pid, sender, signal } = exit;
  if (exit.oom === true) return one.afterwards('oom-killed', 'kernel');
  const by = attackerOf(exit);
  if (by !== null) {
    const initiator = one.initiatorOf(by, signal, pid);
    // Sent from outside, and what came of it is not known.
    if (sender === null) return one.likely('killed', initiator, ['vmm-crash']);
    return one.afterwards('killed', initiator);
  }
  if (CRASHES.includes(signal)) {
    const isOwn = sender !== null && (sender.pid === null || sender.pid === pid);
    return isOwn
      ? one.afterwards('vmm-crash', 'vmm')
      : one.likely('vmm-crash', 'unknown', ['killed']);
  }
  if (sender !== null) return one.afterwards('killed', one.initiatorOf(sender, signal, pid));
  if (one.own.of(signal) !== null) {
    return one.likely('killed', 'manager', signal === 'SIGKILL' ? ['oom-killed'] : []);
  }
  return signal === 'SIGKILL'
    ? one.oneOf(['killed', 'oom-killed'])
    : one.likely('killed', 'unknown', ['vmm-crash']);
}

/** Who killed it from outside, also where it has caught the signal and raised it once more. */
function attackerOf(exit: ExitEvent): SignalSender | null {
  const isOther = (sender: SignalSender) => sender.pid !== null && sender.pid !== exit.pid;
  const killer = killerOf(exit);
  if (killer !== null) return isOther(killer) ? killer : null;
  return exit.signalsReceived.find((each) => each.signal === exit.signal && isOther(each)) ?? null;
}
