import type { SaidPhase, ShutdownReason, VmEvent, VmPhase } from './vm-event.js';

/** What a virtual machine's events say of its last run, and what of its end. */
export type Timeline = {
  /** The first word on its end, unless it was revived since. */
  shutdown: { reason: ShutdownReason | null; byGuest: boolean | null; at: Date | null } | null;
  /** The power button was pressed, each time: which of them the guest has obeyed, if any, it does not say. */
  presses: Press[];
  /** Since when it counts, of one that was revived or reset from outside; `null`: since its start. */
  since: Date | null;
  /** The guest had hibernated. */
  hibernates: boolean;
  panicked: boolean;
  /** What its watchdog did. */
  watchdog: 'end' | 'press' | 'other' | null;
  migrated: boolean;
  /** It was stopped, and did not go on; that is how the source of a migration looks, too. */
  isPaused: boolean;
  /** When that was. */
  pausedAt: Date | null;
  /** It was so before its shutdown, if there was one: afterwards one that stays is stopped by that. */
  wasPaused: boolean;
  /** It tells of migrations, so that one which it does not tell of was none. */
  tellsMigration: boolean;
  /** It has run. */
  hasRun: boolean;
  /** Its first word was of a migration: it goes on with what was begun elsewhere. */
  wasIncoming: boolean;
  /** It had shut down before we came; why, it does not say any more. */
  wasShutDown: boolean;
};

/** Somebody has pressed the power button. */
export type Press = { byWatchdog: boolean; at: Date | null };

/** What a machine that was revived has behind it. */
const REVIVED = {
  shutdown: null,
  hibernates: false,
  panicked: false,
  watchdog: null,
  migrated: false,
  wasShutDown: false,
} as const;

/** Its processors stand still, for whatever reason. */
const PAUSED: readonly (VmPhase | undefined)[] = ['paused', 'saving', 'halted'];

/**
 * What the events, in their order, add up to, from what the machine was doing at first to what it was doing
 * when it was asked last.
 */
export function timelineOf(
  events: readonly VmEvent[],
  initialPhase: SaidPhase | null,
  lastPhase: SaidPhase | null = null,
): Timeline {
  const initial = initialPhase?.phase;
  const timeline: Timeline = {
    ...REVIVED,
    presses: [],
    since: null,
    panicked: initial === 'panicked',
    migrated: initial === 'migrated',
    wasShutDown: initial === 'shut-down',
    isPaused: PAUSED.includes(initial),
    wasPaused: PAUSED.includes(initial),
    pausedAt: null,
    tellsMigration: false,
    wasIncoming: false,
    hasRun: initial !== undefined && initial !== 'not-started' && initial !== 'incoming',
  };
  for (const event of events) take(event, timeline);
  if (lastPhase?.phase === 'migrated') timeline.migrated = true;
  if (lastPhase?.phase === 'panicked') timeline.panicked = true;
  if (lastPhase?.phase === 'shut-down' && timeline.shutdown === null) timeline.wasShutDown = true;
  return timeline;
}

function take(event: VmEvent, timeline: Timeline): void {
  const { at } = event;
  switch (event.what) {
    case 'shutdown':
      timeline.shutdown ??= { reason: event.reason, byGuest: event.byGuest, at };
      break;
    case 'powerdown':
      if (timeline.shutdown !== null) break;
      timeline.presses.push({ byWatchdog: timeline.watchdog === 'press', at });
      timeline.watchdog = null;
      break;
    case 'hibernate':
      timeline.hibernates = true;
      break;
    case 'panic':
      if (!event.goesOn) timeline.panicked = true;
      break;
    case 'watchdog':
      timeline.watchdog = event.action;
      break;
    case 'migration':
      timeline.tellsMigration = true;
      timeline.wasIncoming ||= !timeline.hasRun;
      // To another host: it has stopped before that. From another host it runs by then.
      timeline.migrated = event.isComplete && timeline.isPaused;
      break;
    case 'pause':
      timeline.isPaused = true;
      timeline.pausedAt = at;
      if (timeline.shutdown === null) timeline.wasPaused = true;
      break;
    // It begins anew: what was before has not ended it. But a guest that was asked to power off may install
    // updates and reboot first.
    case 'reset':
      if (timeline.shutdown !== null || event.byGuest === false) {
        timeline.presses = [];
        timeline.since = at;
      }
      Object.assign(timeline, REVIVED);
      break;
    case 'resume':
      timeline.isPaused = timeline.wasPaused = false;
      timeline.pausedAt = null;
      timeline.hasRun = true;
      timeline.migrated = false;
      if (timeline.shutdown === null && !timeline.panicked && !timeline.wasShutDown) break;
      Object.assign(timeline, REVIVED, { presses: [], since: at });
      break;
    case 'other':
      break;
  }
}
