import { NamePattern } from '../../common/name-pattern.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { namesOf } from '../../journal/terms.js';

import { hasOutcome } from './outcome-filter.js';
import { parseUser, unitMatcher } from './process-filter.js';
import { UsageError } from './usage-error.js';

type Match = (event: ExitEvent) => boolean;

/**
 * Whether to keep an end: if one of these values of `--match` fits, or may. What is left out is lost,
 * so what is not known of an end (its unit, where there is no cgroup v2) speaks for keeping it.
 *
 * @throws UsageError
 */
export function parseMatches(texts: readonly string[]): Match {
  const matches = texts.map(parseMatch);
  return matches.length === 0 ? () => true : (event) => matches.some((fits) => fits(event));
}

/** What of it a reader of the journal should know: nothing if all ends are kept. */
export function keptBy(texts: readonly string[]): readonly string[] {
  return texts.includes('all') ? [] : texts;
}

function parseMatch(text: string): Match {
  const [, kind = text, value] = /^([a-z]+)=(.+)$/s.exec(text) ?? [];
  if (value === undefined) {
    switch (kind) {
      case 'all':
        return () => true;
      case 'failed':
        return (event) => hasOutcome(event, { failed: true, killed: false });
      case 'killed':
        return (event) =>
          event.how === 'unknown' || hasOutcome(event, { failed: false, killed: true });
    }
  } else {
    switch (kind) {
      case 'name':
        return matchName(value);
      case 'user':
        return matchUser(value);
      case 'unit':
        return matchUnit(value);
    }
  }
  throw new UsageError(
    `--match must be all, failed, killed, name=GLOB, user=USER or unit=UNIT, not ${JSON.stringify(text)}`,
  );
}

function matchName(glob: string): Match {
  const pattern = new NamePattern([glob]);
  return (event) => {
    const names = namesOf(event);
    return names.length === 0 || pattern.mayMatch(names);
  };
}

function matchUnit(glob: string): Match {
  const isInUnit = unitMatcher([glob]);
  return ({ cgroup }) => isInUnit(cgroup) !== false;
}

function matchUser(user: string): Match {
  const wanted = parseUser(user);
  return ({ uid }) => uid === null || uid === wanted;
}
