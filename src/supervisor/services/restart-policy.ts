import { killerOf } from '../../events/ended-by.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';
import type { SignalSender } from '../../events/signal-event.js';
import { isInUnit } from '../../where/whereabouts.js';

/**
 * When a service is started again after its process has ended by itself.
 * - `'always'`
 * - `'on-failure'`: unless its exit code is one of `successExitCodes`; a signal is a failure
 * - `'unless-asked'`: unless somebody asked it to end
 * - `'never'`
 *
 * @see [Services](../../../docs/services.md)
 */
export type RestartMode = 'always' | 'on-failure' | 'unless-asked' | 'never';

/**
 * Whose signal asks a service to end: a user's id, a systemd unit from which it comes, or the kernel's
 * name of the process that sent it or of one of its ancestors. Names are what processes call themselves.
 *
 * @see [Services](../../../docs/services.md)
 */
export type AskedBy = { uid: number } | { unit: string } | { ancestor: string };

/**
 * What we were about to do when a process ended.
 * - `'stop'`: somebody called `stop()`, or the service was removed
 * - `'restart'`: somebody called `restart()`, or its command has changed
 * - `'health'`: it was not ready in time, or its watchdog was not served
 *
 * @see [Services](../../../docs/services.md)
 */
export type StopPurpose = 'stop' | 'restart' | 'health';

/**
 * On disk before the first signal.
 *
 * @see [Services](../../../docs/services.md)
 */
export type StopIntent = { purpose: StopPurpose; at: string; why: string | null };

/**
 * Why a service is started again, or not.
 *
 * @see [Services](../../../docs/services.md)
 */
export type RestartReason =
  /** An intent of ours. */
  | 'stop'
  | 'restart'
  | 'health'
  /** A signal of somebody in `askedBy` ended it. */
  | 'asked-by-signal'
  /** Nobody asked. */
  | 'not-asked'
  | 'success'
  | 'failure'
  /** What a judge knows of it beyond how its process ended: of a virtual machine. */
  | 'verdict'
  /** The mode says it whatever happened. */
  | 'always'
  | 'never'
  /** How it ended, or who sent the signal, is not known. */
  | 'not-known'
  /** Its machine or its container has started again; all services that nobody stopped start then. */
  | 'reboot'
  /** `backoff.giveUpAfter` */
  | 'gave-up';

/**
 * @see [Services](../../../docs/services.md)
 */
export type RestartDecision = {
  restart: boolean;
  reason: RestartReason;
  /** The same for people. */
  because: string;
  /** What it is based on. */
  evidence: {
    intent: StopIntent | null;
    /** Who ended it; `null`: nobody did, or that is not known. */
    sender: SignalSender | null;
    /** The trace saw who sent the signals. */
    traced: boolean;
  };
};

/** What the decision depends on. @internal */
export interface RestartRules {
  restart: RestartMode;
  successExitCodes: readonly number[];
  askedBy: readonly AskedBy[];
  /** What follows if it is not known. */
  onUnknown: 'restart' | 'stay';
}

/** Whether to start again what has ended. @internal */
export function decideRestart(
  rules: RestartRules,
  exit: ExitEvent,
  intent: StopIntent | null,
): RestartDecision {
  const sender = killerOf(exit);
  const isLate = intent !== null && isAfter(intent, exit);
  const evidence = { intent: isLate ? null : intent, sender, traced: exit.traced };
  const decision = (restart: boolean, reason: RestartReason, because: string) => ({
    restart,
    reason,
    because,
    evidence,
  });
  if (isLate && intent.purpose !== 'health') return decision(...ofLateIntent(exit, intent));
  if (intent !== null && !isLate) return decision(...ofIntent(rules, intent));
  if (rules.restart === 'always') return decision(true, 'always', `${howOf(exit)}; it always runs`);
  if (rules.restart === 'never') return decision(false, 'never', `${howOf(exit)}; it runs once`);
  if (rules.restart === 'on-failure') return decision(...ofOutcome(rules, exit));
  return decision(...ofSender(rules, exit, sender));
}

/** Says why a run has ended; never rejects. */
export type Judge = (exit: ExitEvent, identity: ProcessIdentity | null) => Promise<Judgement>;

/** What a judge says of an end. */
export interface Judgement {
  /** `null`: it does not know. */
  restart: boolean | null;
  because: string;
}

/** By what a judge says, unless it is an intent of ours. @internal */
export function decideByJudge(
  rules: RestartRules,
  exit: ExitEvent,
  { restart, because }: Judgement,
): RestartDecision {
  const evidence = { intent: null, sender: killerOf(exit), traced: exit.traced };
  if (rules.restart === 'never') {
    return { restart: false, reason: 'never', because: `${because}; it runs once`, evidence };
  }
  if (restart !== null) return { restart, reason: 'verdict', because, evidence };
  const [isAgain, reason] = notKnown(rules, because);
  return { restart: isAgain, reason, because, evidence };
}

/** What ended because the machine did is started, whatever its mode. @internal */
export function afterReboot(exit: ExitEvent, intent: StopIntent | null): RestartDecision {
  return {
    restart: true,
    reason: 'reboot',
    because: 'its machine, or its container, has started again',
    evidence: { intent, sender: killerOf(exit), traced: exit.traced },
  };
}

/** @internal */
export function askedToStop(why: string | null = null): string {
  return `we were asked to stop it${why === null ? '' : `: ${why}`}`;
}

function askedToRestart(why: string | null): string {
  return `we were asked to restart it${why === null ? '' : `: ${why}`}`;
}

/**
 * Whether a run had ended before we asked it to: then it did not end because of that. Who reports an end may hear of it
 * late, but never early. @internal
 */
export function isAfter(intent: StopIntent, { how, exitedAt }: ExitEvent): boolean {
  return how !== 'unknown' && exitedAt.getTime() < Date.parse(intent.at);
}

type Verdict = [restart: boolean, reason: RestartReason, because: string];

function ofIntent({ restart }: RestartRules, { purpose, why }: StopIntent): Verdict {
  const reason = why === null ? '' : `: ${why}`;
  if (purpose === 'stop') return [false, 'stop', askedToStop(why)];
  if (purpose === 'restart') return [true, 'restart', askedToRestart(why)];
  if (restart === 'never') return [false, 'never', `we ended it${reason}; it runs once`];
  return [true, 'health', `we ended it${reason}`];
}

function ofLateIntent(exit: ExitEvent, { purpose, why }: StopIntent): Verdict {
  const asked = purpose === 'stop' ? askedToStop(why) : askedToRestart(why);
  return [purpose !== 'stop', purpose, `${howOf(exit)} before ${asked}`];
}

function ofOutcome(rules: RestartRules, exit: ExitEvent): Verdict {
  if (exit.how === 'unknown') return notKnown(rules, 'how it ended is not known');
  const isSuccess = exit.how === 'exited' && rules.successExitCodes.includes(exit.exitCode);
  return isSuccess
    ? [false, 'success', `${howOf(exit)}, which is a success`]
    : [true, 'failure', `${howOf(exit)}, which is a failure`];
}

function ofSender(rules: RestartRules, exit: ExitEvent, sender: SignalSender | null): Verdict {
  // Without askedBy only intents count, and we know all of those.
  if (rules.askedBy.length === 0 || exit.how === 'exited') {
    return [true, 'not-asked', `${howOf(exit)}, and nobody asked`];
  }
  if (exit.how === 'unknown') return notKnown(rules, 'how it ended is not known');
  if (sender === null) return notKnown(rules, `who sent ${exit.signal} is not known`);
  if (sender.pid === null) {
    return [true, 'not-asked', `${howOf(exit)}, which the kernel sent`];
  }
  const who = `${sender.name} (pid ${sender.pid}, uid ${sender.uid})`;
  return rules.askedBy.some((each) => isFrom(sender, each))
    ? [false, 'asked-by-signal', `${howOf(exit)} from ${who}, who may ask`]
    : [true, 'not-asked', `${howOf(exit)} from ${who}, who may not ask`];
}

function notKnown({ onUnknown }: RestartRules, what: string): Verdict {
  return [onUnknown === 'restart', 'not-known', what];
}

function isFrom(sender: SignalSender & { pid: number }, by: AskedBy): boolean {
  if ('uid' in by) return sender.uid === by.uid;
  if ('unit' in by) {
    const owners = [null, process.geteuid?.() ?? null];
    return owners.some((uid) => isInUnit(sender.cgroup, uid, (name) => name === by.unit));
  }
  const names = [sender.name, ...sender.ancestors.map(({ name }) => name)];
  // The kernel keeps 15 bytes of a name.
  return names.some((name) => Buffer.from(by.ancestor).subarray(0, 15).equals(Buffer.from(name)));
}

function howOf(exit: ExitEvent): string {
  if (exit.how === 'unknown') return 'it ended in an unknown way';
  if (exit.oom === true) return 'the OOM killer ended it';
  return exit.how === 'exited' ? `it exited with ${exit.exitCode}` : `it got ${exit.signal}`;
}
