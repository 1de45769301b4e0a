import { killerOf } from '../../events/ended-by.js';
import type { Intent } from '../../process/intent-log.js';
import type { SignalSender } from '../../events/signal-event.js';

import { MAY_TAKE_MS, SLACK_MS } from './power-requests.js';
import type { StopEvidence } from '../qemu/stop-evidence.js';
import type { Timeline } from '../evidence/timeline.js';
import type { Cause, Certainty, Evidence, Initiator, VmStop } from './vm-verdict.js';

/** Causes that are the user's own doing, inside of the guest. */
const USERS: readonly Cause[] = ['guest-shutdown', 'guest-hibernate'];

/** What the hypervisor obeys in good order, and says so. */
const OBEYED: readonly string[] = ['quit', 'SIGTERM', 'SIGINT', 'SIGHUP'];

/** What stops it; its hypervisor may end much later. */
const LEAVING: readonly string[] = ['migrate', 'save'];

/** Of more candidates, none is worth a line. */
const MOST_SENTENCES = 8;

const SENTENCES: Record<Cause, string> = {
  'start-failed': 'it could not be started',
  'start-exited': 'it exited before it was ready',
  'start-killed': 'it was killed before it was ready',
  'migrated-away': 'it had been migrated away',
  saved: 'it had been saved to a file',
  'guest-panic': 'the guest has panicked',
  'guest-watchdog': "the guest's watchdog has ended it",
  'guest-reboot': 'the guest has rebooted, or crashed, and that ends it',
  'host-reset': 'it was reset from outside, and that ends it',
  'guest-hibernate': 'the guest has hibernated',
  'guest-shutdown': 'the guest has powered itself off',
  'admin-powerdown': 'the guest has powered off, as we had asked it to',
  'watchdog-powerdown': 'the guest has powered off when its watchdog had pressed the power button',
  'other-powerdown': 'the guest has powered off after somebody had pressed its power button',
  'manager-quit': 'we have told the hypervisor to quit',
  'other-quit': 'somebody has told the hypervisor to quit',
  'forced-stop': 'a signal has asked the hypervisor to end',
  'host-ui': 'its window was closed',
  'host-error': 'the hypervisor has given up',
  'oom-killed': 'the kernel was out of memory, and killed it',
  killed: 'a signal has killed it',
  'vmm-crash': 'the hypervisor has crashed',
  'vmm-exit': 'the hypervisor has exited by itself',
  unknown: 'why it ended is not known',
};

function wasDone({ outcome }: Intent): boolean {
  return outcome !== 'not-delivered' && outcome !== 'superseded';
}

/** Writes verdicts down, with what they rest on. */
export class Verdict {
  readonly #evidence: StopEvidence;
  readonly #timeline: Timeline;

  constructor(evidence: StopEvidence, timeline: Timeline) {
    this.#evidence = evidence;
    this.#timeline = timeline;
  }

  sure(cause: Cause, initiator: Initiator): VmStop {
    return this.#write(cause, 'sure', initiator, []);
  }

  /** `others`: what it may have been as well, if it was not that. */
  likely(cause: Cause, initiator: Initiator, others: readonly Cause[]): VmStop {
    return this.#write(cause, 'likely', initiator, others);
  }

  oneOf(candidates: readonly Cause[]): VmStop {
    return this.#write('unknown', 'one-of', 'unknown', candidates);
  }

  unknown(candidates: readonly Cause[]): VmStop {
    return this.#write('unknown', 'unknown', 'unknown', candidates);
  }

  /** What we were about to do to it, if its end may have been that. */
  own(what: string): Intent | null {
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
  mayBeOwn(what: string): boolean {
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

  #write(
    cause: Cause,
    certainty: Certainty,
    initiator: Initiator,
    others: readonly Cause[],
  ): VmStop {
    const { name, exit } = this.#evidence;
    const candidates = [...new Set(cause === 'unknown' ? others : [cause, ...others])];
    return {
      event: 'stopped',
      name,
      cause,
      userShutdown: userShutdown(cause, candidates),
      initiator,
      certainty,
      candidates,
      evidence: this.#facts(),
      summary: this.#summary(cause, certainty, candidates),
      exit,
    };
  }

  #summary(cause: Cause, certainty: Certainty, candidates: readonly Cause[]): string {
    const { name } = this.#evidence;
    if (cause !== 'unknown') {
      const sender = this.#sender();
      const by =
        sender?.pid == null ? '' : `: ${sender.signal} from ${sender.pid} (${sender.name})`;
      const isSignal = cause === 'killed' || cause === 'forced-stop' || cause === 'start-killed';
      return `${name}: ${SENTENCES[cause]}${isSignal ? by : ''} (${certainty})`;
    }
    if (certainty === 'unknown' || candidates.length > MOST_SENTENCES) {
      return `${name}: ${SENTENCES.unknown}, because ${this.#missing()}`;
    }
    return `${name}: one of ${candidates.map((each) => SENTENCES[each]).join('; ')}`;
  }

  /** What there would have to be to know it. */
  #missing(): string {
    const { exit, events, eventsComplete } = this.#evidence;
    const end = exit === null ? 'nobody saw its process end' : describeExit(exit);
    if (events.length === 0) return `${end}, and nothing was heard of it`;
    return eventsComplete ? end : `${end}, and events may be missing`;
  }

  #sender(): SignalSender | null {
    const { exit } = this.#evidence;
    return exit === null ? null : (killerOf(exit) ?? exit.signalsReceived.at(-1) ?? null);
  }

  #facts(): Evidence[] {
    const { events, initialStatus, exit, obeyed, intents, leftovers, eventsComplete } =
      this.#evidence;
    const { lastStatus = null, lastWords = [] } = this.#evidence;
    const facts: Evidence[] = [];
    const add = (source: Evidence['source'], text: string, at: Date | null = null) => {
      facts.push({ source, text, at });
    };
    if (initialStatus !== null) add('status', `it was ${initialStatus} when we came`);
    for (const { event, data, at } of events) {
      if (event === 'RTC_CHANGE') continue;
      const details = Object.keys(data).length === 0 ? '' : ` ${JSON.stringify(data)}`;
      add('event', `${event}${details}`, at);
    }
    if (!eventsComplete) add('event', 'events may be missing');
    if (lastStatus !== null) add('status', `it was ${lastStatus} when it was asked last`);
    for (const line of lastWords) add('log', `it says: ${line}`);
    if (obeyed !== null) {
      const from = obeyed.pid === null ? '' : ` from pid ${obeyed.pid}`;
      const path = obeyed.path === null ? '' : ` (${obeyed.path})`;
      add('log', `it says to have obeyed ${obeyed.signal ?? 'a signal'}${from}${path}`);
    }
    if (intents === null) add('intent', 'what we were about to do is not known');
    for (const { what, why, at, outcome } of intents ?? []) {
      add('intent', `we were about to: ${what}${why === null ? '' : ` (${why})`}, ${outcome}`, at);
    }
    for (const sender of exit?.signalsReceived ?? []) {
      const from = sender.pid === null ? sender.origin : `${sender.pid} (${sender.name})`;
      add('signal', `${sender.signal} from ${from}`, sender.sentAt);
    }
    if (exit !== null) add('exit', describeExit(exit), exit.exitedAt);
    for (const [name, isLeft] of Object.entries(leftovers)) {
      if (isLeft !== null) add('files', `its ${name} is ${isLeft ? 'left' : 'gone'}`);
    }
    if (this.#timeline.shutdown !== null && facts.length === 0) add('event', 'SHUTDOWN');
    return facts;
  }
}

function describeExit(exit: StopEvidence['exit'] & object): string {
  switch (exit.how) {
    case 'exited':
      return `it exited with ${exit.exitCode}`;
    case 'killed':
    case 'dumped':
      return `it was killed by ${exit.signal}${exit.oom === true ? ', for want of memory' : ''}`;
    case 'unknown':
      return `how it ended is not known (${exit.unknownReason})`;
  }
}

/**
 * A power-down that somebody asked for, then obeyed, is not the user's own, most likely: the candidates
 * may differ, and the answer is `false` all the same.
 */
function userShutdown(cause: Cause, candidates: readonly Cause[]): boolean | null {
  if (cause.endsWith('-powerdown')) return false;
  const users = candidates.filter((each) => USERS.includes(each));
  if (users.length === 0) return candidates.length === 0 ? null : false;
  return users.length === candidates.length ? true : null;
}
