import type { QmpEvent } from './qmp-event.js';

/** What a virtual machine's events say of its last run, and what of its end. */
export type Timeline = {
  /** Its first SHUTDOWN, unless it was revived since. */
  shutdown: {
    /** `null` before QEMU 4.0. */
    reason: string | null;
    isGuests: boolean | null;
    at: Date | null;
  } | null;
  /** The power button was pressed. */
  powerdown: { byWatchdog: boolean; at: Date | null } | null;
  /** The guest had hibernated. */
  hibernates: boolean;
  panicked: boolean;
  /** What its watchdog did. */
  watchdog: string | null;
  migrated: boolean;
};

const NEW: Readonly<Timeline> = {
  shutdown: null,
  powerdown: null,
  hibernates: false,
  panicked: false,
  watchdog: null,
  migrated: false,
};

/** What the events, in their order, add up to. */
export function timelineOf(events: readonly QmpEvent[]): Timeline {
  const timeline: Timeline = { ...NEW };
  for (const event of events) take(event, timeline);
  return timeline;
}

function take({ event, data, at }: QmpEvent, timeline: Timeline): void {
  switch (event) {
    case 'SHUTDOWN':
      timeline.shutdown ??= {
        reason: typeof data['reason'] === 'string' ? data['reason'] : null,
        isGuests: typeof data['guest'] === 'boolean' ? data['guest'] : null,
        at,
      };
      break;
    case 'POWERDOWN':
      if (timeline.shutdown !== null) break;
      timeline.powerdown ??= { byWatchdog: timeline.watchdog === 'shutdown', at };
      break;
    case 'SUSPEND_DISK':
      timeline.hibernates = true;
      break;
    case 'GUEST_PANICKED':
      if (data['action'] !== 'run') timeline.panicked = true;
      break;
    case 'WATCHDOG':
      timeline.watchdog = typeof data['action'] === 'string' ? data['action'] : null;
      break;
    case 'MIGRATION':
      timeline.migrated = data['status'] === 'completed';
      break;
    // A new life: what was before has not ended it.
    case 'RESET':
      Object.assign(timeline, NEW);
      break;
    case 'RESUME':
      if (timeline.shutdown !== null || timeline.panicked || timeline.migrated) {
        Object.assign(timeline, NEW);
      }
      break;
  }
}
