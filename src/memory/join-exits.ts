import type { ExitEvent } from '../events/exit-event.js';
import type { SignalSender } from '../events/signal-event.js';
import { remember } from '../trace/received-signals.js';
import { whereaboutsOf } from '../where/whereabouts.js';

/** The live event has the time when the process was really gone; the recorder may know more. */
export function joined(live: ExitEvent, recorded: ExitEvent): ExitEvent {
  const cgroup = live.cgroup ?? recorded.cgroup;
  // A pidfd may report the status of the first thread, and lack the core: see docs/sources.md.
  const isBetter =
    recorded.how !== 'unknown' && (live.how === 'unknown' || live.source === 'pidfd');
  const { how, exitCode, signal, coreDumped, unknownReason } = isBetter ? recorded : live;
  return {
    ...live,
    ...{ how, exitCode, signal, coreDumped, unknownReason },
    source: isBetter ? 'recorder' : live.source,
    ...joinedStory(live, recorded, signal),
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

type Story = Pick<
  ExitEvent,
  'traced' | 'tracedSince' | 'requestsSince' | 'sender' | 'raisedAfter' | 'signalsReceived' | 'oom'
>;

/**
 * Who sent which signals. The live trace alone has the command lines of senders, and who may have asked
 * them; the recorder has signals from before the live trace began.
 *
 * @param signal what killed the process
 */
function joinedStory(live: ExitEvent, recorded: ExitEvent, signal: ExitEvent['signal']): Story {
  const isLive = live.traced || (live.sender !== null && !recorded.traced);
  if (!isLive) return storyOf(recorded);
  const since = live.tracedSince;
  const earlier = recorded.signalsReceived.filter(({ sentAt }) => since !== null && sentAt < since);
  const received: { sender: SignalSender }[] = [];
  for (const sender of [...earlier, ...live.signalsReceived]) {
    remember(received, { sender }, live.pid);
  }
  const signalsReceived = received.map(({ sender }) => sender);
  // Of an end that it did not see it knows no sender.
  if (live.signal !== signal) return { ...storyOf(recorded), signalsReceived };
  const isOlder = since !== null && recorded.tracedSince !== null && recorded.tracedSince < since;
  return {
    ...storyOf(live),
    tracedSince: isOlder ? recorded.tracedSince : since,
    requestsSince: earlierOf(live.requestsSince, recorded.requestsSince),
    raisedAfter: live.raisedAfter ?? recorded.raisedAfter,
    signalsReceived,
  };
}

/** A recorder knows all from its time on, and so does the live trace. */
function earlierOf(one: Date | null, other: Date | null): Date | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}

function storyOf(event: ExitEvent): Story {
  const { traced, tracedSince, requestsSince, sender } = event;
  const { raisedAfter, signalsReceived, oom } = event;
  return { traced, tracedSince, requestsSince, sender, raisedAfter, signalsReceived, oom };
}
