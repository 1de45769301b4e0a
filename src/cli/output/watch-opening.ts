import type { ExitEvent } from '../../events/exit-event.js';
import type { Ready } from '../../monitor/ready.js';
import { sourceKind } from '../../sources/registry.js';

import { escapeText } from './escape.js';
import { FILTER_TITLES } from './filter-title.js';
import { describeKiller, NOT_SEEN } from './sender-text.js';

/** The first line: what is watched and how, what is missing, why, and what to do about it. */
export function describeWatch(ready: Ready, pids: readonly number[]): string {
  const what = ready.scope === 'all' ? 'every process on this host' : `pid ${pids.join(', ')}`;
  const filter = ready.filter === null ? '' : `, ${FILTER_TITLES[ready.filter]} filter`;
  const poll = sourceKind(ready.source).tellsStatus ? '' : ', polling every second';
  const head = `watching ${what} (${ready.source}${filter}${poll})`;
  const lacks = shortcomings(ready);
  if (lacks.size === 0) return head;
  const reasons = [...lacks].map(([why, what]) => `${what.join(' and ')}, because ${why}`);
  return `${head}, degraded: ${escapeText(reasons.join('; '))}; run exitwatch doctor`;
}

/** Whether something is missing that exitwatch could report. */
export function isDegraded(ready: Ready): boolean {
  return shortcomings(ready).size > 0;
}

/** What is missing, by reason. */
function shortcomings({
  source,
  filter,
  downgrade,
  traced,
  traceDowngrade,
}: Ready): Map<string, string[]> {
  const lacks = new Map<string, string[]>();
  const add = (what: string, why: string) => lacks.set(why, [...(lacks.get(why) ?? []), what]);
  if (!sourceKind(source).tellsStatus) {
    const why = downgrade?.detail ?? `--source ${source} was requested`;
    add(`it cannot report how processes end or who ended them (BY is ${NOT_SEEN})`, why);
    return lacks;
  }
  if (!traced) {
    const why = traceDowngrade?.detail ?? 'the signal trace is not running';
    add(`it cannot report who sent signals (BY is ${NOT_SEEN})`, why);
  }
  if (downgrade !== null) {
    const what =
      filter === null ? 'it uses only pidfds' : 'it reports less about short-lived processes';
    add(what, downgrade.detail);
  }
  return lacks;
}

/** Explains once why a row has no sender, unless the first line has done so. */
export class UnseenNote {
  #isSaid: boolean;

  constructor(ready: Ready) {
    this.#isSaid = !ready.traced;
  }

  /** `null`: nothing to explain, or not again. */
  before(event: ExitEvent): string | null {
    if (this.#isSaid || describeKiller(event) !== NOT_SEEN) return null;
    this.#isSaid = true;
    return (
      `${NOT_SEEN} in the BY column: exitwatch did not see who ended the process, or whether anybody asked it to ` +
      'end. Signals were sent before exitwatch started, a debugger was involved, or how it ended is unknown'
    );
  }
}
