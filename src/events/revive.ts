import { isObject } from '../common/is-object.js';
import { NOWHERE, whereaboutsOf } from '../where/whereabouts.js';

import type { ExitEvent } from './exit-event.js';

const DATES = ['startedAt', 'exitedAt', 'tracedSince'] as const;

const PLACES = Object.keys(NOWHERE);

const OUTCOMES: ReadonlySet<unknown> = new Set(['exited', 'killed', 'dumped', 'unknown']);

/** Whether it is the end of a process, after `JSON.parse()`. */
export function isExitJson(json: Record<string, unknown>): boolean {
  const { id, pid, how, exitedAt } = json;
  return (
    typeof id === 'string' &&
    Number.isSafeInteger(pid) &&
    OUTCOMES.has(how) &&
    typeof exitedAt === 'string' &&
    !Number.isNaN(Date.parse(exitedAt))
  );
}

/** As it was before it became JSON: changes `json`. Earlier versions did not write everything. */
export function reviveExit(json: Record<string, unknown>): ExitEvent {
  for (const name of ['parentName', 'usage', 'commandLine']) json[name] ??= null;
  for (const name of DATES) {
    const date = json[name];
    json[name] = typeof date === 'string' ? new Date(date) : null;
  }
  addPlaces(json);
  json['sender'] = reviveSender(json['sender']);
  json['raisedAfter'] = reviveSender(json['raisedAfter']);
  const received: unknown = json['signalsReceived'];
  json['signalsReceived'] = Array.isArray(received)
    ? received.map(reviveSender).filter(isObject)
    : [];
  return json as unknown as ExitEvent;
}

function reviveSender(sender: unknown): Record<string, unknown> | null {
  if (!isObject(sender)) return null;
  sender['sentAt'] = new Date(String(sender['sentAt']));
  if (typeof sender['pid'] !== 'number') return sender;
  sender['commandLine'] ??= null;
  sender['onBehalf'] ??= false;
  sender['onBehalfReason'] ??= null;
  if (!Array.isArray(sender['ancestors'])) sender['ancestors'] = [];
  addPlaces(sender);
  return sender;
}

/** The places of its cgroup, if it does not have them. */
function addPlaces(json: Record<string, unknown>): void {
  if (PLACES.every((name) => json[name] !== undefined)) return;
  const { cgroup } = json;
  Object.assign(json, whereaboutsOf(typeof cgroup === 'string' ? cgroup : null));
}
