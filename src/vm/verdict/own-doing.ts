import type { VmEvidence } from '../evidence/vm-evidence.js';
import type { Timeline } from '../evidence/timeline.js';
import type { Intent } from '../../process/intent-log.js';

import { MAY_TAKE_MS, SLACK_MS } from './power-requests.js';

/** What the hypervisor obeys in good order, and says so. */
const OBEYED: readonly string[] = ['quit', 'SIGTERM', 'SIGINT', 'SIGHUP'];

/** What stops it; its hypervisor may end much later. */
const LEAVING: readonly string[] = ['migrate', 'save'];

/** Which of our intents an end may have come from. */
export class OwnDoing {
  readonly #evidence: VmEvidence;
  readonly #timeline: Timeline;

  constructor(evidence: VmEvidence, timeline: Timeline) {
    this.#evidence = evidence;
    this.#timeline = timeline;
  }

  /** What we were about to do to it, if its end may have been that. */
  of(what: string): Intent | null {
    const { intents } = this.#evidence;
    const at = this.#timeOf(what);
    // A migration takes its time, and nothing else of that name stops it.
    const slackMs = LEAVING.includes(what) ? MAY_TAKE_MS : SLACK_MS;
    const isTimely = (intent: Intent) =>
      at === null ||
      (intent.at.getTime() <= at.getTime() + SLACK_MS &&
        intent.deadline.getTime() + slackMs >= at.getTime());
    const isIt = (intent: Intent) => intent.what === what && isTimely(intent) && wasDone(intent);
    return intents?.find(isIt) ?? null;
  }

  /** We were about to, and it came later than we had waited for it. */
  mayBeLate(what: string): boolean {
    const { intents } = this.#evidence;
    const at = this.#timeOf(what)?.getTime() ?? -Infinity;
    return (intents ?? []).some(
      (intent) =>
        intent.what === what &&
        wasDone(intent) &&
        at > intent.deadline.getTime() &&
        at <= intent.deadline.getTime() + MAY_TAKE_MS,
    );
  }

  /** When that would have taken effect: by the hypervisor's own word, if it has one. */
  #timeOf(what: string): Date | null {
    const { exit } = this.#evidence;
    const { pausedAt, shutdown } = this.#timeline;
    const exitedAt = exit === null || exit.how === 'unknown' ? null : exit.exitedAt;
    if (LEAVING.includes(what)) return pausedAt;
    return OBEYED.includes(what) ? (shutdown?.at ?? exitedAt) : exitedAt;
  }
}

function wasDone({ outcome }: Intent): boolean {
  return outcome !== 'not-delivered' && outcome !== 'superseded';
}
