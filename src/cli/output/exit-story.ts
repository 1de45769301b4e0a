import {
  hasSeenRequests,
  isSince,
  killerOf,
  RECEIVED_MS,
  requestBefore,
  REQUESTS,
} from '../../events/ended-by.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { SignalSender } from '../../events/signal-event.js';
import type { Usage } from '../../events/usage.js';
import { sourceKind } from '../../sources/registry.js';

import { describeCommand, isCalledTruly } from './command-text.js';
import { escapeText } from './escape.js';
import {
  describeNames,
  describeOnBehalf,
  describePlace,
  describeProcess,
  describeSender,
} from './sender-text.js';
import { span } from './times.js';

/** How many clients of a sender to name. */
const MOST_CLIENTS = 5;

/** What may have asked a sender; `endedAt`: `null` if it was still running. */
export type Client = Pick<ExitEvent, 'pid' | 'name' | 'uid' | 'commandLine' | 'startedAt'> &
  Partial<Pick<ExitEvent, 'program' | 'parentPid'>> & { endedAt: Date | null };

/** What is known about an exit, and how certain that is: one fact per line. */
export function tellStory(event: ExitEvent, moreClients: readonly Client[] = []): string {
  return [
    row('process', describeIdentity(event)),
    ...describeArguments(event),
    ...(hasPlace(event) ? [row('in', describePlace(event))] : []),
    row('lived', describeRun(event)),
    ...(event.usage === null ? [] : [row('used', describeUsage(event.usage))]),
    ...describeLacks(event),
    row('ended', describeEnd(event)),
    ...describeSenders(event, moreClients),
    row('memory', describeOom(event)),
    row('gaps', describeGaps(event)),
    '',
  ].join('\n');
}

/** A process can choose its arguments. */
function describeArguments({ commandLine, name, program }: ExitEvent): string[] {
  if (commandLine === null) return [];
  const [called = ''] = commandLine;
  const what = describeCommand(commandLine);
  return [
    row('command', isCalledTruly(called, { name, program }) ? what : `${what}, as it calls itself`),
  ];
}

function describeIdentity(event: ExitEvent): string {
  const { id, pid, uid, parentPid, parentName } = event;
  const what = describeNames(event) ?? 'name unknown';
  const whose = uid === null ? 'user unknown' : `uid ${uid}`;
  const parent =
    parentPid === null
      ? 'parent unknown'
      : `child of ${describeProcess({ pid: parentPid, name: parentName ?? '' }).trimEnd()}`;
  return `${pid} ${what}, ${whose}, ${parent} (id ${escapeText(id)})`;
}

function describeLacks({ source, usage, commandLine }: ExitEvent): string[] {
  if (source !== 'recorder' || usage !== null || commandLine !== null) return [];
  return [
    row('lacks', 'what it used, and its arguments: a recorder told its end, and keeps neither'),
  ];
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

function describeSenders(event: ExitEvent, moreClients: readonly Client[]): string[] {
  const { sender, raisedAfter } = event;
  const isOther = (each: SignalSender) => !isSame(each, sender) && !isSame(each, raisedAfter);
  const received = event.signalsReceived.filter(isOther);
  const ender = killerOf(event) ?? requestBefore(event);
  const describe = (each: SignalSender, name: string) => [
    ...describeReceived(event, each, name),
    ...describeClients(each, isSame(each, ender) ? moreClients : []),
  ];
  return [
    ...(sender === null
      ? describeNobody(event)
      : raisedAfter === null
        ? [...describe(sender, 'by'), ...describeEarlier(event, sender)]
        : [...describe(raisedAfter, 'by'), ...describe(sender, 'again')]),
    ...received.flatMap((each) => describe(each, 'before')),
  ];
}

/** Events that were stored do not share a sender. */
function isSame(one: SignalSender, other: SignalSender | null): boolean {
  return (
    one.pid === other?.pid &&
    one.signal === other.signal &&
    one.origin === other.origin &&
    one.sentAt.getTime() === other.sentAt.getTime()
  );
}

function describeNobody(event: ExitEvent): string[] {
  if (event.how === 'unknown') return [row('by', 'unknown, because how it ended is unknown')];
  if (event.how !== 'exited') {
    return [row('by', 'unknown: the signal trace did not run, or has lost signals')];
  }
  const what = 'itself (sure: no signal killed it)';
  return [
    event.signalsReceived.length === 0
      ? row('by', `${what}; ${describeSilence(event)}`)
      : row('by', `${what}, after what follows${describeUnseen(event)}`),
  ];
}

/** It may have raised again what it was sent before anybody looked. */
function describeEarlier(event: ExitEvent, { pid }: SignalSender): string[] {
  const unseen = pid === event.pid ? describeUnseen(event) : '';
  return unseen === '' ? [] : [row('', unseen.slice(2))];
}

/** Earlier requests than those that are known. */
function describeUnseen(event: ExitEvent): string {
  if (hasSeenRequests(event)) return '';
  const { requestsSince } = event;
  if (requestsSince === null) return '; what else it was sent is not known';
  return `; what it was sent before ${requestsSince.toISOString()} is not known`;
}

/** What it is worth that no signal is known: what was looked for, and since when. */
function describeSilence({
  tracedSince,
  requestsSince,
  startedAt,
  exitedAt,
  source,
}: ExitEvent): string {
  if (tracedSince === null || requestsSince === null) {
    return 'whether a signal asked it to exit is not known';
  }
  const since = (from: Date) =>
    isSince(from, startedAt) ? 'since it began' : `since ${from.toISOString()}`;
  const recently = new Date(exitedAt.getTime() - RECEIVED_MS);
  const others = since(tracedSince > recently ? tracedSince : recently);
  const requests = since(requestsSince);
  const what =
    others === requests
      ? `none ${others} that could have ended it`
      : `no ${REQUESTS_TEXT} ${requests}, and none ${others} that could have ended it`;
  // A recorder has no room for what runtimes send themselves all day.
  const own = source === 'recorder' ? ', what it sent itself' : '';
  return (
    `the signal trace has ${what}. Left out is what it ignored${own}, ` +
    'and those faults, timers and real-time signals that it caught and no other process sent'
  );
}

const REQUESTS_TEXT = `${REQUESTS.slice(0, -1).join(', ')} or ${REQUESTS.at(-1)}`;

function describeReceived(event: ExitEvent, sender: SignalSender, name: string): string[] {
  const ago = span(event.exitedAt.getTime() - sender.sentAt.getTime());
  const what = `${sender.signal} from ${describeSender(sender, event.pid)}, ${ago} before the end`;
  if (sender.pid === null) return [row(name, `${what} (sure: reported by the kernel)`)];
  const onBehalf = describeOnBehalf(sender);
  const parents = describeAncestors(sender);
  return [
    row(name, `${what} (sure: reported by the kernel)`),
    row('', [`uid ${sender.uid}, ${describePlace(sender)}`, ...parents].join(' < ')),
    ...(onBehalf === null ? [] : [row('', onBehalf)]),
  ];
}

/** Each with its place where that is not the one of the process before it. */
function describeAncestors(sender: SignalSender & { pid: number }): string[] {
  let { cgroup } = sender;
  return sender.ancestors.map((ancestor) => {
    const isElsewhere = ancestor.cgroup !== null && ancestor.cgroup !== cgroup;
    ({ cgroup } = ancestor);
    return describeProcess(ancestor) + (isElsewhere ? ` (${describePlace(ancestor)})` : '');
  });
}

function describeOom({ oom }: ExitEvent): string {
  if (oom === null) return 'unknown whether the OOM killer killed it';
  return oom ? 'killed by the OOM killer (sure)' : 'not killed by the OOM killer (sure)';
}

function describeGaps({ lossless, traced }: ExitEvent): string {
  const ends = lossless ? 'no events were lost' : 'EVENTS WERE LOST while it was watched';
  return traced
    ? ends
    : `${ends}; some or all signals were not seen: "exitwatch doctor" says whether they can be`;
}

/** /proc tells starts to 10 ms. */
function isSameClient(one: Client, other: Client): boolean {
  if (one.pid !== other.pid) return false;
  if (one.startedAt === null || other.startedAt === null) return true;
  return Math.abs(one.startedAt.getTime() - other.startedAt.getTime()) <= 20;
}

/** What may have asked a sender that acts for others; what somebody else knows of one counts more. */
function describeClients(sender: SignalSender, known: readonly Client[]): string[] {
  const isNew = (client: Client) => !known.some((each) => isSameClient(each, client));
  const clients: Client[] = [...(sender.likelyClients ?? []).filter(isNew), ...known];
  const aheadMs = ({ endedAt }: Client) =>
    endedAt === null ? 0 : Math.max(0, sender.sentAt.getTime() - endedAt.getTime());
  const nearest = clients.sort((one, other) => aheadMs(one) - aheadMs(other));
  return nearest.slice(0, MOST_CLIENTS).map((client, i) => {
    const { pid, name, program = null, uid, parentPid = null, commandLine } = client;
    const names = describeNames({ name, program });
    const what = commandLine === null ? names : describeCommand(commandLine);
    const parent = parentPid === null ? '' : `, child of ${parentPid}`;
    const who = `${pid} ${what ?? 'name unknown'}, uid ${uid ?? 'unknown'}${parent}`;
    const ahead = aheadMs(client);
    const when = ahead === 0 ? 'ran at that time' : `had ended ${span(ahead)} before`;
    return row(i === 0 ? 'for' : '', `${who} ${when} (likely)`);
  });
}

/** How wide the name of a fact is. */
export const NAME_WIDTH = 9;

/** A fact with its name. */
export function row(name: string, text: string): string {
  return `${name.padEnd(NAME_WIDTH)}${text}`;
}
