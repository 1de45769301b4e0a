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

/** A signal killed it, and no shutdown event explains it. */
export function bySignal(one: StopCase): VmVerdict | null {
  const { exit } = one.evidence;
  if (exit?.how !== 'killed' && exit?.how !== 'dumped') return null;
  const { pid, sender, signal } = exit;
  if (exit.oom === true) return one.afterwards('oom-killed', 'kernel');
  const by = attackerOf(exit);
  if (by !== null) {
    const initiator = one.initiatorOf(by, signal, pid);
    // Another process sent that signal, but whether it had this effect is unknown.
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

/** Which other process killed it, even if it caught the signal and raised it again. */
function attackerOf(exit: ExitEvent): SignalSender | null {
  const isOther = (sender: SignalSender) => sender.pid !== null && sender.pid !== exit.pid;
  const killer = killerOf(exit);
  if (killer !== null) return isOther(killer) ? killer : null;
  return exit.signalsReceived.find((each) => each.signal === exit.signal && isOther(each)) ?? null;
}
