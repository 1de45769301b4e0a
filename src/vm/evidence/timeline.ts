import type { SaidPhase, ShutdownReason, VmEvent, VmPhase } from './vm-event.js';

/** What the events say about a virtual machine's last run and its end. */
export type Timeline = {
  /** The first shutdown event, unless the machine was revived since. */
  shutdown: { reason: ShutdownReason | null; byGuest: boolean | null; at: Date | null } | null;
  /** Presses of the power button. No event says which of them the guest obeyed, if any. */
  presses: Press[];
  /** Earlier requests do not count: it was revived, or reset from outside. `null`: all count. */
  since: Date | null;
  /** The guest hibernated. */
  hibernates: boolean;
  panicked: boolean;
  /** What the guest's watchdog did. */
  watchdog: 'end' | 'press' | 'other' | null;
  migrated: boolean;
  /** Paused, and not resumed since. The source of a migration looks the same. */
  isPaused: boolean;
  /** When it was paused; `null` also if no event says so. */
  pausedAt: Date | null;
  /** Paused before its shutdown, if any: the shutdown itself pauses a machine that lingers. */
  wasPaused: boolean;
  /** It reports migrations as events, so no event means no migration. */
  tellsMigration: boolean;
  /** It has run. */
  hasRun: boolean;
  /** A migration event came before it ran: it continues a run that began elsewhere. */
  wasIncoming: boolean;
  /** It was found shut down, and no event says why. */
  wasShutDown: boolean;
};

/** One press of the power button. */
export type Press = { byWatchdog: boolean; at: Date | null };

/** What a reset or revived machine starts over with. */
const REVIVED = {
  shutdown: null,
  hibernates: false,
  panicked: false,
  watchdog: null,
  migrated: false,
  wasShutDown: false,
} as const;

/** Phases in which the virtual CPUs do not run. */
const PAUSED: readonly (VmPhase | undefined)[] = ['paused', 'saving', 'halted'];

/** Folds the events, in order, into one timeline, from the first known phase to the last. */
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
      // An outgoing migration completes while the machine is paused, an incoming one while it runs.
      timeline.migrated = event.isComplete && timeline.isPaused;
      break;
    case 'pause':
      timeline.isPaused = true;
      timeline.pausedAt = at;
      if (timeline.shutdown === null) timeline.wasPaused = true;
      break;
    // A reset starts over: earlier events did not end the run. But a guest that was asked to power
    // off may install updates and reboot first, so its own reset keeps the presses.
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
