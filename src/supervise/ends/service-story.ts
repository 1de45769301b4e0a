import { isObject } from '../../common/is-object.js';
import {
  isObjectOf,
  isBoolean,
  isCount,
  isText,
  isTime,
  orNull,
} from '../../common/json-checks.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { isExitJson, reviveExit } from '../../events/revive.js';
import type { RestartDecision, ServiceExit, StopIntent } from '../../supervisor/index.js';

/** How a run ended, and what followed. */
export type EndedRun = ExitEvent & {
  service: string;
  run: string;
  decision: Pick<RestartDecision, 'restart' | 'reason' | 'because'> & {
    intent: StopIntent | null;
  };
};

/** Why none could begin: the last time, if that has happened several times in a row. */
export interface FailedStart {
  event: 'start-failed';
  service: string;
  at: Date;
  message: string;
  count: number;
  /** The first time. */
  since: Date;
}

/** What happened to a service. */
export type ServiceStory = EndedRun | FailedStart;

/** The sender is in the event. */
export function endedRun({ decision, ...exit }: ServiceExit): EndedRun {
  const { restart, reason, because, evidence } = decision;
  return { ...exit, decision: { restart, reason, because, intent: evidence.intent } };
}

/** When it happened. */
export function timeOfStory(story: ServiceStory): Date {
  return story.event === 'exit' ? story.exitedAt : story.at;
}

const isIntent = orNull(isObjectOf({ purpose: isText, at: isTime, why: orNull(isText) }));

const isDecision = isObjectOf({
  ...{ restart: isBoolean, reason: isText, because: isText, intent: isIntent },
});

const isFailure = isObjectOf({
  ...{ service: isText, at: isTime, message: isText, count: isCount, since: isTime },
});

/** From JSON; `null`: it is none, or one of a later version. */
export function reviveStory(value: unknown): ServiceStory | null {
  if (!isObject(value)) return null;
  if (value['event'] === 'start-failed') {
    if (!isFailure(value)) return null;
    const [at, since] = [value['at'], value['since']].map((each) => new Date(String(each)));
    return { ...(value as unknown as FailedStart), ...{ at, since } } as FailedStart;
  }
  if (value['event'] !== 'exit' || !isDecision(value['decision']) || !isExitJson(value))
    return null;
  const isRun = typeof value['service'] === 'string' && typeof value['run'] === 'string';
  return isRun ? (reviveExit(value) as EndedRun) : null;
}
