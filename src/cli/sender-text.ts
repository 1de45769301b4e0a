import type { ExitEvent } from '../exit-event.js';
import type { Ancestor, SignalSender } from '../signal-event.js';
import type { SignalName } from '../wait-status.js';

import { escapeText } from './escape.js';

/** What a program catches to end in good order; it may then exit with 0. */
const REQUESTS: readonly SignalName[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

const BY_ITSELF: Partial<Record<SignalSender['origin'], string>> = {
  fault: 'itself (fault)',
  timer: 'its own timer',
  kernel: 'kernel',
};

/** Who sent a signal to a process with this pid, in a few words. */
export function describeSender(sender: SignalSender, pid: number): string {
  if (sender.pid === null) return BY_ITSELF[sender.origin] ?? sender.origin;
  const who = sender.pid === pid ? 'itself' : describeProcess(sender);
  return sender.origin === 'kill' ? who : `${who} (${sender.origin})`;
}

export function describeProcess({ pid, name }: Ancestor): string {
  return `${pid} ${escapeText(name)}`;
}

/** The last signal that asked a process to end before it exited; `null` where there was none. */
export function requestBefore(event: ExitEvent): SignalSender | null {
  if (event.how !== 'exited') return null;
  return event.signalsReceived.findLast(({ signal }) => REQUESTS.includes(signal)) ?? null;
}

/** Who ended a process, in a few words: the column BY. */
export function describeKiller(event: ExitEvent): string {
  if (event.oom === true) return 'kernel (out of memory)';
  if (event.sender !== null) return describeSender(event.sender, event.pid);
  if (event.signal !== null) return event.traced ? 'nobody' : 'not seen';
  const request = requestBefore(event);
  if (request === null) return '-';
  return `after ${request.signal} from ${describeSender(request, event.pid)}`;
}
