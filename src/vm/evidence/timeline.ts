import type { QmpEvent } from '../qemu/qmp-event.js';

/** What a virtual machine's events say of its last run, and what of its end. */
export type Timeline = {
  /** Its first SHUTDOWN, unless it was revived since. */
  shutdown: {
    /** `null` before QEMU 4.0. */
    reason: string | null;
    isGuests: boolean | null;
    at: Date | null;
  } | null;
  /** The power button was pressed, each time: which of them the guest has obeyed, if any, it does not say. */
  presses: Press[];
  /** When this life began, of one that was revived or reset from outside; `null`: at its start. */
  since: Date | null;
  /** The guest had hibernated. */
  hibernates: boolean;
  panicked: boolean;
  /** What its watchdog did. */
  watchdog: string | null;
  migrated: boolean;
  /** It was stopped, and did not go on; that is how the source of a migration looks, too. */
  isPaused: boolean;
  /** When that was. */
  pausedAt: Date | null;
  /** It was so before its SHUTDOWN, if there was one: afterwards one that stays is stopped by that. */
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

/** Of a new life. */
const NEW = {
  shutdown: null,
  hibernates: false,
  panicked: false,
  watchdog: null,
  migrated: false,
  wasShutDown: false,
} as const;

/** By `query-status`: stopped, for whatever reason. */
const PAUSED: readonly (string | null)[] = [
  ...['paused', 'finish-migrate', 'save-vm', 'io-error', 'watchdog'],
];

/** Those that matter; of others there may be any number. */
const KEPT: readonly string[] = [
  'SHUTDOWN',
  'POWERDOWN',
  'RESET',
  'RESUME',
  'STOP',
  'SUSPEND_DISK',
  'GUEST_PANICKED',
  'WATCHDOG',
  'MIGRATION',
];

/** Whether an event says something of a machine's end. */
export function isTelling({ event, data }: QmpEvent): boolean {
  return KEPT.includes(event) || (event === AGENT && data['open'] === true);
}

/** In the guest a port was opened, or closed: by its agent, if it is the agent's. */
const AGENT = 'VSERPORT_CHANGE';

/** Whether its guest may have had an agent at work, as far as these tell. */
export function hasHadAgent(events: readonly QmpEvent[]): boolean {
  return events.some(({ event }) => event === AGENT);
}

/** Of one run; of what is left of them when those are gone that say nothing any more. */
const MOST_EVENTS = 1000;

/**
 * Keeps an event. A machine that was paused and went on, as for a backup, is what it was before: of that
 * nothing is kept. False: there are too many.
 */
export function keepEvent(events: QmpEvent[], event: QmpEvent): boolean {
  if (event.event === 'RESUME' && events.at(-1)?.event === 'STOP') {
    // After one of these, to go on is a new life.
    const { shutdown, panicked, migrated } = timelineOf(events.slice(0, -1), null);
    if (shutdown === null && !panicked && !migrated) {
      events.pop();
      return true;
    }
  }
  // Once is enough.
  if (event.event === AGENT && hasHadAgent(events)) return true;
  const isRepeated = event.event === 'RESET' && events.at(-1)?.event === 'RESET';
  if (isRepeated) events.pop();
  if (events.length >= MOST_EVENTS) return false;
  events.push(event);
  return true;
}

/**
 * What the events, in their order, add up to, from what it was at first (`query-status`), to what it was
 * when it was asked last.
 */
export function timelineOf(
  events: readonly QmpEvent[],
  initialStatus: string | null,
  lastStatus: string | null = null,
): Timeline {
  const timeline: Timeline = {
    ...NEW,
    presses: [],
    since: null,
    panicked: initialStatus === 'guest-panicked',
    migrated: initialStatus === 'postmigrate',
    wasShutDown: initialStatus === 'shutdown',
    isPaused: PAUSED.includes(initialStatus),
    wasPaused: PAUSED.includes(initialStatus),
    pausedAt: null,
    tellsMigration: false,
    wasIncoming: false,
    hasRun: initialStatus !== null && !['prelaunch', 'inmigrate'].includes(initialStatus),
  };
  for (const event of events) take(event, timeline);
  if (lastStatus === 'postmigrate') timeline.migrated = true;
  if (lastStatus === 'guest-panicked') timeline.panicked = true;
  if (lastStatus === 'shutdown' && timeline.shutdown === null) timeline.wasShutDown = true;
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
      timeline.presses.push({ byWatchdog: timeline.watchdog === 'shutdown', at });
      timeline.watchdog = null;
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
      timeline.tellsMigration = true;
      timeline.wasIncoming ||= !timeline.hasRun;
      // To another host: it has stopped before that. From another host it runs by then.
      timeline.migrated = data['status'] === 'completed' && timeline.isPaused;
      break;
    case 'STOP':
      timeline.isPaused = true;
      timeline.pausedAt = at;
      if (timeline.shutdown === null) timeline.wasPaused = true;
      break;
    // A new life: what was before has not ended it. But a guest that was asked to power off may install
    // updates and reboot first.
    case 'RESET':
      if (timeline.shutdown !== null || data['guest'] === false) {
        timeline.presses = [];
        timeline.since = at;
      }
      Object.assign(timeline, NEW);
      break;
    case 'RESUME':
      timeline.isPaused = timeline.wasPaused = false;
      timeline.pausedAt = null;
      timeline.hasRun = true;
      timeline.migrated = false;
      if (timeline.shutdown === null && !timeline.panicked && !timeline.wasShutDown) break;
      Object.assign(timeline, NEW, { presses: [], since: at });
      break;
  }
}
