import type { QmpEvent } from './qmp-event.js';

/**
 * The events of one run that an event log and a QMP connection have together, in order. QEMU gives
 * an event the same time for both.
 */
export function joined(logged: readonly QmpEvent[], heard: readonly QmpEvent[]): QmpEvent[] {
  const events = [...logged];
  let next = 0;
  for (const event of heard) {
    const known = events.findIndex((each, at) => at >= next && isSame(each, event));
    if (known !== -1) {
      next = known + 1;
      continue;
    }
    while (isBefore(events[next], event)) next++;
    events.splice(next++, 0, event);
  }
  return events;
}

/** What somebody asked of the guest before a connection heard its first event. */
export function pressesBefore(logged: readonly QmpEvent[], since: Date | null): QmpEvent[] {
  const isPress = ({ event }: QmpEvent) => event === 'POWERDOWN' || event === 'WATCHDOG';
  return logged.filter((event) => isPress(event) && isBefore(event, { at: since }));
}

function isSame(one: QmpEvent, other: QmpEvent): boolean {
  return one.event === other.event && one.at?.getTime() === other.at?.getTime();
}

function isBefore(one: QmpEvent | undefined, { at }: { at: Date | null }): boolean {
  return one?.at != null && at !== null && one.at < at;
}
