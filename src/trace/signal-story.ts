import type { ExitEvent } from '../events/exit-event.js';
import type { SignalSender } from '../events/signal-event.js';

/** What {@link SignalHistory.end} tells of a process that has ended. */
export interface SignalStory {
  /** Who sent the signal that ended it; `null` where none did, or none was seen. */
  sender: SignalSender | null;
  /** It sent that to itself, after it had been sent the same by this one; `null` where not. */
  raisedAfter: SignalSender | null;
  received: readonly SignalSender[];
  /** The OOM killer killed it; `null`: it has marked it, but may have found it dying. */
  oom: boolean | null;
  /** Some of this may be another's, or something may be missing. */
  isDoubtful: boolean;
}

/** Of a process of which the trace has seen nothing. */
export const NO_STORY: SignalStory = Object.freeze({
  sender: null,
  raisedAfter: null,
  received: Object.freeze([]),
  oom: false,
  isDoubtful: false,
});

/** Adds to an end what the signal trace knows of it; `null`: there is no trace, or none to be believed. */
export function joinStory(event: ExitEvent, story: SignalStory | null): void {
  if (story !== null) {
    event.sender = story.sender;
    event.raisedAfter = story.raisedAfter;
    event.signalsReceived = story.received;
  }
  event.traced = event.traced && isWhole(event, story);
  event.oom = oomOf(event, story);
  if (!event.traced) event.tracedSince = null;
}

/** Whether the signal trace, which was at work, has seen all that belongs to this end. */
function isWhole(event: ExitEvent, story: SignalStory | null): boolean {
  if (story === null || story.isDoubtful || event.how === 'unknown') return false;
  // Somebody has sent the signal that ended it.
  return event.signal === null || story.sender !== null;
}

/** Whether the OOM killer ended it; `null` if nobody knows. */
function oomOf(event: ExitEvent, story: SignalStory | null): boolean | null {
  if (story !== null && event.signal === 'SIGKILL' && story.oom !== false) return story.oom;
  return event.traced ? false : null;
}
