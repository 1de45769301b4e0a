import { isObject } from '../common/is-object.js';
import {
  type Check,
  isAmount,
  isBoolean,
  isCount,
  isListOf,
  isObjectOf,
  isText,
  isTime,
  isWord,
  orNull,
} from '../common/json-checks.js';
import { NOWHERE, whereaboutsOf } from '../where/whereabouts.js';

import { RECEIVED_MS } from './ended-by.js';
import type { ExitEvent } from './exit-event.js';

type Json = Record<string, unknown>;

const isUsage = isObjectOf({
  ...{ userMs: isAmount, systemMs: isAmount, maxRssBytes: isAmount },
  ...{ readBytes: orNull(isAmount), writtenBytes: orNull(isAmount) },
});

const PLACES: Readonly<Record<string, Check>> = {
  unit: isText,
  container: isObjectOf({ runtime: orNull(isWord), id: isText, name: orNull(isText) }),
  pod: isObjectOf({ manager: isWord, uid: isText }),
  machine: isObjectOf({ manager: isWord, name: isText }),
};

const PLACE_NAMES = Object.keys(NOWHERE);

/** What is not of its kind is not known: somebody has changed the file. */
const FIELDS: Readonly<Record<string, Check>> = {
  ...{ parentPid: isCount, parentName: isText, name: isText, program: isText, uid: isCount },
  ...{
    commandLine: isListOf(isText),
    cgroup: isText,
    exitedNs: isAmount,
    oom: isBoolean,
    usage: isUsage,
  },
  ...{ coreDumped: isBoolean, exitCode: isCount, signal: isWord, unknownReason: isWord },
  ...PLACES,
};

const isClient = isObjectOf({
  ...{ pid: isCount, name: isText, uid: orNull(isCount), commandLine: orNull(isListOf(isText)) },
  ...{ startedAt: isTime, endedAt: orNull(isTime) },
});

const SENDER_FIELDS: Readonly<Record<string, Check>> = {
  likelyClients: isListOf(isClient),
  ...{ program: isText, commandLine: isListOf(isText), cgroup: isText, onBehalfReason: isWord },
  ...PLACES,
};

const ANCESTOR_FIELDS: Readonly<Record<string, Check>> = { cgroup: isText, ...PLACES };

const areAncestors = isListOf(isObjectOf({ pid: isCount, name: isText }));

const isOfNobody = isObjectOf({ signal: isWord, sentAt: isTime, origin: isWord });
const isOfSomebody = isObjectOf({ pid: isCount, name: isText, uid: isCount });
const isSender: Check = (value) =>
  isOfNobody(value) && ((value as Json)['pid'] === null || isOfSomebody(value));

const TRACED = ['tracedSince', 'requestsSince'] as const;
const DATES = ['startedAt', ...TRACED] as const;
const FLAGS = ['isRepeated', 'lossless', 'traced'] as const;

/** Of these fields each outcome has one. */
const OUTCOMES = new Map<unknown, string>([
  ['exited', 'exitCode'],
  ['killed', 'signal'],
  ['dumped', 'signal'],
  ['unknown', 'unknownReason'],
]);

/** Whether it is the end of a process, after `JSON.parse()`. */
export function isExitJson(json: Json): boolean {
  const { id, pid, how, exitedAt, uncertaintyMs, source } = json;
  const own = OUTCOMES.get(how);
  return (
    isText(id) &&
    isCount(pid) &&
    isTime(exitedAt) &&
    isAmount(uncertaintyMs) &&
    isWord(source) &&
    own !== undefined &&
    FIELDS[own]?.(json[own]) === true
  );
}

/** As it was before it became JSON: changes `json`. Earlier versions did not write everything. */
export function reviveExit(json: Json): ExitEvent {
  addPlaces(json);
  keepValid(json, FIELDS);
  const own = OUTCOMES.get(json['how']);
  for (const name of OUTCOMES.values()) if (name !== own) json[name] = null;
  for (const name of FLAGS) json[name] = json[name] === true;
  json['exitedAt'] = reviveDate(json['exitedAt']);
  const { sender, raisedAfter, signalsReceived } = json;
  const signals = Array.isArray(signalsReceived) ? signalsReceived.map(reviveSender) : [null];
  json['sender'] = reviveSender(sender);
  json['raisedAfter'] = reviveSender(raisedAfter);
  json['signalsReceived'] = signals.filter((each) => each !== null);
  const isWhole =
    (json['sender'] === null) === (sender === null) &&
    (json['raisedAfter'] === null) === (raisedAfter === null) &&
    !signals.includes(null);
  // Who is not told here is not nobody.
  if (!isWhole) json['traced'] = false;
  const isOlder = json['requestsSince'] === undefined;
  for (const name of DATES) json[name] = reviveDate(json[name]);
  if (json['traced'] === false) for (const name of TRACED) json[name] = null;
  const event = json as unknown as ExitEvent;
  if (isOlder) event.requestsSince = sinceLater(event);
  return event;
}

/** Earlier versions kept requests as long as other signals. */
function sinceLater({ tracedSince, exitedAt }: ExitEvent): Date | null {
  if (tracedSince === null) return null;
  return new Date(Math.max(tracedSince.getTime(), exitedAt.getTime() - RECEIVED_MS));
}

/** `null`: it is none that can be read. */
function reviveSender(sender: unknown): Json | null {
  if (!isObject(sender) || !isSender(sender)) return null;
  sender['sentAt'] = reviveDate(sender['sentAt']);
  if (sender['pid'] === null) return sender;
  addPlaces(sender);
  keepValid(sender, SENDER_FIELDS);
  sender['startedAt'] = reviveDate(sender['startedAt']);
  sender['onBehalf'] = sender['onBehalf'] === true;
  if (!areAncestors(sender['ancestors'])) sender['ancestors'] = [];
  for (const ancestor of sender['ancestors'] as Json[]) {
    addPlaces(ancestor);
    keepValid(ancestor, ANCESTOR_FIELDS);
  }
  sender['likelyClients'] = reviveClients(sender['likelyClients']);
  return sender;
}

function reviveClients(clients: unknown): Json[] | null {
  if (!Array.isArray(clients)) return null;
  // Nothing but what was checked.
  return (clients as Json[]).map(({ pid, name, uid, commandLine, startedAt, endedAt }) => ({
    ...{ pid, name, uid, commandLine },
    ...{ startedAt: reviveDate(startedAt), endedAt: reviveDate(endedAt) },
  }));
}

function reviveDate(value: unknown): Date | null {
  return isTime(value) ? new Date(value as string) : null;
}

function keepValid(json: Json, fields: Readonly<Record<string, Check>>): void {
  for (const name in fields) if (fields[name]?.(json[name]) !== true) json[name] = null;
}

/** The places of its cgroup, if it does not have them. */
function addPlaces(json: Json): void {
  if (PLACE_NAMES.every((name) => json[name] !== undefined)) return;
  const { cgroup } = json;
  Object.assign(json, whereaboutsOf(typeof cgroup === 'string' ? cgroup : null));
}
