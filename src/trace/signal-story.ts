import type { ExitEvent } from '../events/exit-event.js';
import type { SignalSender } from '../events/signal-event.js';

/** What {@link SignalHistory.end} knows about a process that has exited. */
export interface SignalStory {
  /** Who sent the signal that killed it; `null` if no signal did, or none was seen. */
  sender: SignalSender | null;
  /** Who sent it the same signal before it sent that to itself; `null` if it did not. */
  raisedAfter: SignalSender | null;
  received: readonly SignalSender[];
  /** The OOM killer killed it; `null`: it was marked, but it may have been dying already. */
  oom: boolean | null;
  /** Part of this may belong to another process, or something may be missing. */
  isDoubtful: boolean;
}

/** For a process of which the trace has seen nothing. */
export const NO_STORY: SignalStory = Object.freeze({
  sender: null,
  raisedAfter: null,
  received: Object.freeze([]),
  oom: false,
  isDoubtful: false,
});

/**
 * Adds what the signal trace knows to an exit event. `null`: there is no trace, or it is not
 * trusted.
 */
export function joinStory(event: ExitEvent, story: SignalStory | null): void {
  if (story !== null) {
    event.sender = story.sender;
    event.raisedAfter = story.raisedAfter;
    event.signalsReceived = story.received;
  }
  event.traced = event.traced && isWhole(event, story);
  event.oom = oomOf(event, story);
  if (!event.traced) event.tracedSince = event.requestsSince = null;
}

/** Whether the signal trace, which was running, saw everything that belongs to this exit. */
function isWhole(event: ExitEvent, story: SignalStory | null): boolean {
  if (story === null || story.isDoubtful || event.how === 'unknown') return false;
  // A signal that killed it must have a sender.
  return event.signal === null || story.sender !== null;
}

/** Whether the OOM killer killed it; `null` if unknown. */
function oomOf(event: ExitEvent, story: SignalStory | null): boolean | null {
  if (story !== null && event.signal === 'SIGKILL' && story.oom !== false) return story.oom;
  return event.traced ? false : null;
}
