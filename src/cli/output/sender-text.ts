import { requestBefore } from '../../events/ended-by.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { Ancestor, SignalSender } from '../../events/signal-event.js';

import { escapeText } from './escape.js';

const BY_ITSELF: Partial<Record<SignalSender['origin'], string>> = {
  fault: 'itself (fault)',
  timer: 'its own timer',
  kernel: 'kernel',
};

/** The sender of a signal to the process with this pid, in a few words. */
export function describeSender(sender: SignalSender, pid: number): string {
  if (sender.pid === null) return BY_ITSELF[sender.origin] ?? sender.origin;
  const who = sender.pid === pid ? 'itself' : describeProcess(sender);
  return sender.origin === 'kill' ? who : `${who} (${sender.origin})`;
}

export function describeProcess({ pid, name }: Ancestor): string {
  return `${pid} ${escapeText(name)}`;
}

/** The sender was not seen, though there may be one. */
export const NOT_SEEN = '?';

/** Who killed a process or asked it to exit, in a few words: the BY column. */
export function describeKiller(event: ExitEvent): string {
  if (event.oom === true) return 'kernel (out of memory)';
  if (event.raisedAfter !== null) return `itself, ${describeRequest(event.raisedAfter, event.pid)}`;
  if (event.sender !== null) return describeSender(event.sender, event.pid);
  if (event.signal !== null) return event.traced ? 'nobody' : NOT_SEEN;
  const request = requestBefore(event);
  if (request !== null) return describeRequest(request, event.pid);
  return event.traced ? '-' : NOT_SEEN;
}

function describeRequest(request: SignalSender, pid: number): string {
  return `after ${request.signal} from ${describeSender(request, pid)}`;
}
