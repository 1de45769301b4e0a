import { reviveStory } from '../ends/service-story.js';

import type { ServiceView } from './protocol.js';

/** An answer has texts for dates. */
export function revivedView(view: ServiceView): ServiceView {
  const { startedAt, nextStartAt, lastEnd, lastStory, stopped } = view;
  return {
    ...view,
    startedAt: dateOf(startedAt),
    nextStartAt: dateOf(nextStartAt),
    lastEnd: lastEnd === null ? null : { ...lastEnd, at: new Date(lastEnd.at) },
    stopped: stopped === null ? null : { ...stopped, at: dateOf(stopped.at) },
    lastStory: lastStory === null ? null : reviveStory(lastStory),
  };
}

function dateOf(value: Date | string | null): Date | null {
  return value === null ? null : new Date(value);
}
