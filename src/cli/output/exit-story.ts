import { hasSeenSignals } from '../../events/ended-by.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { SignalSender } from '../../events/signal-event.js';
import type { Usage } from '../../events/usage.js';
import { sourceKind } from '../../sources/registry.js';

import { describeNames, span } from './exit-table.js';
import {
  describeCommand,
  describeOnBehalf,
  describePlace,
  describeProcess,
  describeSender,
} from './sender-text.js';

/** What is known about an exit, and how certain that is: one fact per line. */
export function tellStory(event: ExitEvent): string {
  return [
    row('process', describeIdentity(event)),
    ...(event.commandLine === null ? [] : [row('command', describeCommand(event.commandLine))]),
    ...(hasPlace(event) ? [row('in', describePlace(event))] : []),
    row('lived', describeRun(event)),
    ...(event.usage === null ? [] : [row('used', describeUsage(event.usage))]),
    row('ended', describeEnd(event)),
    ...describeSenders(event),
    row('memory', describeOom(event)),
    row('gaps', describeGaps(event)),
    '',
  ].join('\n');
}

function describeIdentity(event: ExitEvent): string {
  const { id, pid, uid, parentPid, parentName } = event;
  const what = describeNames(event) ?? 'name unknown';
  const whose = uid === null ? 'user unknown' : `uid ${uid}`;
  const parent =
    parentPid === null
      ? 'parent unknown'
      : `child of ${describeProcess({ pid: parentPid, name: parentName ?? '' }).trimEnd()}`;
  return `${pid} ${what}, ${whose}, ${parent} (id ${id})`;
}

/** Its cgroup says more than the path. */
function hasPlace({ unit, container, pod, machine }: ExitEvent): boolean {
  return [unit, container, pod, machine].some((place) => place !== null);
}

function describeRun({ startedAt, exitedAt, uncertaintyMs, source }: ExitEvent): string {
  const until = `until ${exitedAt.toISOString()}`;
  const accuracy =
    uncertaintyMs === 0
      ? 'sure: reported by the kernel'
      : `seen by ${witness(source)}, accurate to ${span(uncertaintyMs)}`;
  if (startedAt === null) return `start unknown, ${until} (${accuracy})`;
  const lived = span(exitedAt.getTime() - startedAt.getTime());
  return `${lived}, from ${startedAt.toISOString()} ${until} (${accuracy})`;
}

function describeUsage({ userMs, systemMs, maxRssBytes, readBytes, writtenBytes }: Usage): string {
  const io =
    readBytes === null || writtenBytes === null
      ? []
      : [`${bytes(readBytes)} read`, `${bytes(writtenBytes)} written`];
  const cpu = `${span(userMs)} user, ${span(systemMs)} system`;
  return [cpu, `at most ${bytes(maxRssBytes)} of memory`, ...io].join(', ');
}

function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 10));
  const value = count / 1024 ** power;
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}

function witness(source: ExitEvent['source']): string {
  return source === 'recorder' || source === 'keeper' ? `a ${source}` : sourceKind(source).title;
}

function describeEnd(event: ExitEvent): string {
  switch (event.how) {
    case 'exited':
      return `exited with ${event.exitCode} (sure: reported by the kernel)`;
    case 'killed':
      return event.coreDumped === null
        ? `killed by ${event.signal} (sure: reported by the kernel), core dump unknown`
        : `killed by ${event.signal}, no core dump (sure: reported by the kernel)`;
    case 'dumped':
      return `killed by ${event.signal}, dumped core (sure: reported by the kernel)`;
    case 'unknown':
      return `how is unknown (${event.unknownReason})`;
  }
}

function describeSenders(event: ExitEvent): string[] {
  const { sender, raisedAfter } = event;
  const received = event.signalsReceived.filter((each) => each !== sender && each !== raisedAfter);
  return [
    ...describeKiller(event),
    ...(raisedAfter === null ? [] : describeReceived(event, raisedAfter, 'after')),
    ...received.flatMap((each) => describeReceived(event, each, 'before')),
  ];
}

function describeKiller(event: ExitEvent): string[] {
  if (event.sender !== null) return describeReceived(event, event.sender, 'by');
  if (event.how === 'unknown') return [row('by', 'unknown, because how it ended is unknown')];
  if (hasSeenSignals(event)) return [row('by', 'no signal (sure: the signal trace saw none)')];
  if (event.tracedSince !== null) {
    const since = event.tracedSince.toISOString();
    return [row('by', `no signal since ${since}, when the signal trace began to cover it`)];
  }
  const why = 'unknown: the signal trace did not cover its whole life';
  return event.how === 'exited' ? [] : [row('by', why)];
}

function describeReceived(event: ExitEvent, sender: SignalSender, name: string): string[] {
  const ago = span(event.exitedAt.getTime() - sender.sentAt.getTime());
  const what = `${sender.signal} from ${describeSender(sender, event.pid)}, ${ago} before the end`;
  if (sender.pid === null) return [row(name, `${what} (sure: reported by the kernel)`)];
  const onBehalf = describeOnBehalf(sender);
  const parents = sender.ancestors.map(describeProcess);
  return [
    row(name, `${what} (sure: reported by the kernel)`),
    row('', [`uid ${sender.uid}, ${describePlace(sender)}`, ...parents].join(' < ')),
    ...(onBehalf === null ? [] : [row('', onBehalf)]),
  ];
}

function describeOom({ oom }: ExitEvent): string {
  if (oom === null) return 'unknown whether the OOM killer killed it';
  return oom ? 'killed by the OOM killer (sure)' : 'not killed by the OOM killer (sure)';
}

function describeGaps({ lossless, traced }: ExitEvent): string {
  const ends = lossless ? 'no events were lost' : 'EVENTS WERE LOST while it was watched';
  return traced ? ends : `${ends}; some or all signals were not seen`;
}

/** A fact with its name. */
export function row(name: string, text: string): string {
  return `${name.padEnd(9)}${text}`;
}
