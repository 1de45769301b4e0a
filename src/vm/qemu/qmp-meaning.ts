import type {
  SaidPhase,
  ShutdownReason,
  VmEvent,
  VmHappening,
  VmPhase,
} from '../evidence/vm-event.js';

import { bounded, type QmpEvent } from './qmp-event.js';

/** `reason` of SHUTDOWN (qapi/run-state.json, ShutdownCause), since QEMU 4.0. */
const REASONS = new Map<unknown, ShutdownReason>([
  ['guest-shutdown', 'guest-shutdown'],
  ['guest-reset', 'guest-reset'],
  ['guest-panic', 'guest-panic'],
  ['host-qmp-system-reset', 'host-reset'],
  ['host-qmp-quit', 'host-quit'],
  ['host-signal', 'host-signal'],
  ['host-ui', 'host-ui'],
  ['host-error', 'host-error'],
]);

/** `status` of query-status (RunState); any other counts as running. */
const PHASES = new Map<string, VmPhase>([
  ['prelaunch', 'not-started'],
  ['inmigrate', 'incoming'],
  ['paused', 'paused'],
  ['save-vm', 'saving'],
  ['finish-migrate', 'halted'],
  ['io-error', 'halted'],
  ['watchdog', 'halted'],
  ['postmigrate', 'migrated'],
  ['guest-panicked', 'panicked'],
  ['shutdown', 'shut-down'],
]);

/** What an event of QEMU means. */
export function meaningOf(event: QmpEvent): VmEvent {
  const { data, at } = bounded(event);
  const details = Object.keys(data).length === 0 ? '' : ` ${JSON.stringify(data)}`;
  return { ...happeningOf(event), at, said: `${event.event}${details}` };
}

function happeningOf({ event, data }: QmpEvent): VmHappening {
  const byGuest = typeof data['guest'] === 'boolean' ? data['guest'] : null;
  switch (event) {
    case 'SHUTDOWN':
      return { what: 'shutdown', reason: REASONS.get(data['reason']) ?? null, byGuest };
    case 'POWERDOWN':
      return { what: 'powerdown' };
    case 'RESET':
      return { what: 'reset', byGuest };
    case 'RESUME':
      return { what: 'resume' };
    case 'STOP':
      return { what: 'pause' };
    case 'SUSPEND_DISK':
      return { what: 'hibernate' };
    case 'GUEST_PANICKED':
      return { what: 'panic', goesOn: data['action'] === 'run' };
    case 'WATCHDOG':
      return { what: 'watchdog', action: watchdogAction(data['action']) };
    case 'MIGRATION':
      return { what: 'migration', isComplete: data['status'] === 'completed' };
    default:
      return { what: 'other' };
  }
}

function watchdogAction(action: unknown): 'end' | 'press' | 'other' {
  if (action === 'poweroff') return 'end';
  return action === 'shutdown' ? 'press' : 'other';
}

/** What a status means; `null` if there is none. */
export function phaseOf(status: string | null): SaidPhase | null {
  return status === null ? null : { phase: PHASES.get(status) ?? 'running', said: status };
}
