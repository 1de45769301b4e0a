import type { ExitEvent } from '../events/exit-event.js';
import { whereaboutsOf } from '../where/whereabouts.js';

/** The live event has the time when the process was really gone; the recorder may know more. */
export function joined(live: ExitEvent, recorded: ExitEvent): ExitEvent {
  const cgroup = live.cgroup ?? recorded.cgroup;
  const { how, exitCode, signal, coreDumped, unknownReason } = recorded;
  const outcome = { how, exitCode, signal, coreDumped, unknownReason };
  // A pidfd may report the status of the first thread, and lack the core: see docs/sources.md.
  const isBetter =
    recorded.how !== 'unknown' && (live.how === 'unknown' || live.source === 'pidfd');
  const { traced, tracedSince, sender, raisedAfter, signalsReceived, oom } = recorded;
  const story = { traced, tracedSince, sender, raisedAfter, signalsReceived, oom };
  return {
    ...live,
    ...(isBetter ? { ...outcome, source: 'recorder' } : {}),
    ...(isBetter || (!live.traced && (traced || live.sender === null)) ? story : {}),
    parentPid: live.parentPid ?? recorded.parentPid,
    parentName: live.parentName ?? recorded.parentName,
    name: live.name ?? recorded.name,
    commandLine: live.commandLine ?? recorded.commandLine,
    program: live.program ?? recorded.program,
    uid: live.uid ?? recorded.uid,
    cgroup,
    ...whereaboutsOf(cgroup),
    startedAt: live.startedAt ?? recorded.startedAt,
  } as ExitEvent;
}
