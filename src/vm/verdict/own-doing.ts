import type { VmEvidence } from '../evidence/vm-evidence.js';
import type { Timeline } from '../evidence/timeline.js';
import type { Intent } from '../../process/intent-log.js';

import { MAY_TAKE_MS, SLACK_MS } from './power-requests.js';

/** A hypervisor that is ready catches these, and shuts down cleanly. */
export const SHUTDOWN_SIGNALS: readonly string[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** The hypervisor obeys these with a clean shutdown, and reports it. */
const OBEYED: readonly string[] = ['quit', ...SHUTDOWN_SIGNALS];

/** These pause the machine; its hypervisor may exit much later. */
const LEAVING: readonly string[] = ['migrate', 'save'];

/** Which of our intents may have caused an end. */
export class OwnDoing {
  readonly #evidence: VmEvidence;
  readonly #timeline: Timeline;

  constructor(evidence: VmEvidence, timeline: Timeline) {
    this.#evidence = evidence;
    this.#timeline = timeline;
  }

  /** Our intent to do this, if it may have caused the end. */
  of(what: string): Intent | null {
    const { intents } = this.#evidence;
    const at = this.#timeOf(what);
    // A migration may take long, and no other request goes by that name.
    const slackMs = LEAVING.includes(what) ? MAY_TAKE_MS : SLACK_MS;
    const isTimely = (intent: Intent) =>
      at === null ||
      (intent.at.getTime() <= at.getTime() + SLACK_MS &&
        intent.deadline.getTime() + slackMs >= at.getTime());
    const isIt = (intent: Intent) => intent.what === what && isTimely(intent) && wasDone(intent);
    return intents?.find(isIt) ?? null;
  }

  /** An intent of ours may have taken effect late: after its deadline. */
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

  /** When this would have taken effect: by the hypervisor's own event, if there is one. */
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
