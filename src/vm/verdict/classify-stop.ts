import { hasSeenSignals, killerOf, REQUESTS } from '../../events/ended-by.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { Intent } from '../../process/intent-log.js';
import type { SignalSender } from '../../events/signal-event.js';

import { ELSEWHERE, GUESTS, HOSTS, KILLED, LINGERING, ORDERLY } from './causes.js';
import { isLongAfter, requestsBefore, type Request } from './power-requests.js';
import type { StopEvidence } from '../qemu/stop-evidence.js';
import { timelineOf, type Timeline } from '../evidence/timeline.js';
import { Verdict } from './verdict-writer.js';
import type { Cause, Initiator, VmStop } from './vm-verdict.js';

const REQUESTED: Record<NonNullable<Request['by']> | 'somebody', Cause[]> = {
  us: ['admin-powerdown'],
  another: ['other-powerdown'],
  watchdog: ['watchdog-powerdown'],
  somebody: ['admin-powerdown', 'other-powerdown'],
};

const CRASHES: readonly string[] = [
  'SIGSEGV',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGTRAP',
  'SIGSYS',
];

/**
 * Why a virtual machine ended, by all that is known of it. The hypervisor's first word on it counts most;
 * where it has none, how its process ended, and who sent it signals. Of several explanations that fit, none
 * is chosen: they are the candidates.
 */
export function classifyStop(evidence: StopEvidence): VmStop {
  return new Classifier(evidence).classify();
}

class Classifier {
  readonly #evidence: StopEvidence;
  readonly #timeline: Timeline;
  readonly #verdict: Verdict;

  constructor(evidence: StopEvidence) {
    this.#evidence = evidence;
    const { events, initialStatus, lastStatus = null } = evidence;
    this.#timeline = timelineOf(events, initialStatus, lastStatus);
    this.#verdict = new Verdict(evidence, this.#timeline);
  }

  classify(): VmStop {
    return (
      this.#beforeReady() ??
      this.#byGuestState() ??
      this.#byShutdown() ??
      this.#bySignal() ??
      this.#byExit() ??
      this.#verdict.unknown([...ORDERLY, 'killed', 'oom-killed', 'vmm-crash'])
    );
  }

  #beforeReady(): VmStop | null {
    const { exit, ready, obeyed } = this.#evidence;
    if (this.#timeline.shutdown !== null || exit === null) return null;
    if (exit.how === 'killed' || exit.how === 'dumped') {
      // Once it is ready it catches these.
      const isEarly = ready === false || (ready === null && REQUESTS.includes(exit.signal));
      if (!isEarly) return null;
      if (exit.oom === true) return this.#verdict.sure('oom-killed', 'kernel');
      return this.#verdict.sure(
        'start-killed',
        this.#initiatorOf(exit.sender, exit.signal, exit.pid),
      );
    }
    if (ready !== false || exit.how === 'unknown') return null;
    if (exit.exitCode !== 0) return this.#verdict.sure('start-failed', 'vmm');
    if (obeyed !== null || requestsOf(exit).length > 0) return null;
    const hidden: Cause[] = this.#hasSeenSignals(exit) ? [] : ['forced-stop'];
    return this.#verdict.likely('start-exited', 'vmm', ['vmm-exit', ...hidden]);
  }

  /** What the guest, or its host, had come to before the end. */
  #byGuestState(): VmStop | null {
    const { isPaused, migrated, panicked, shutdown, watchdog } = this.#timeline;
    const { exit } = this.#evidence;
    const wasKilled = exit?.how === 'killed' || exit?.how === 'dumped';
    if (migrated && shutdown?.reason !== 'guest-shutdown') {
      // It may have come back when nobody heard it.
      if (this.#isBroken()) {
        const ends =
          exit?.how === 'exited' ? ORDERLY : wasKilled ? KILLED : [...ORDERLY, ...KILLED];
        return this.#verdict.oneOf([...ELSEWHERE, ...ends]);
      }
      const cause = this.#ownDeparture();
      const initiator = cause === null ? 'unknown' : 'manager';
      return this.#verdict.likely(cause ?? 'migrated-away', initiator, ELSEWHERE);
    }
    // We were about to, and do not know whether it went so far.
    const endedWell =
      exit?.how === 'exited' ? exit.exitCode === 0 : !wasKilled && shutdown !== null;
    const mayHaveLeft = this.#before().includes('migrated-away') && shutdown?.isGuests !== true;
    if (this.#ownDeparture() !== null && mayHaveLeft && endedWell && !panicked) {
      if (!isPaused || this.#isBroken()) return this.#verdict.oneOf([...ELSEWHERE, ...ORDERLY]);
      return this.#oneOf(['forced-stop', 'other-quit', 'manager-quit']);
    }
    if (panicked || shutdown?.reason === 'guest-panic') {
      return this.#verdict.sure('guest-panic', 'guest');
    }
    if (watchdog === 'poweroff' && shutdown === null && !wasKilled) {
      return this.#verdict.sure('guest-watchdog', 'guest');
    }
    return null;
  }

  /** Where we were about to have it go. */
  #ownDeparture(): 'migrated-away' | 'saved' | null {
    if (this.#own('save') !== null) return 'saved';
    return this.#own('migrate') === null ? null : 'migrated-away';
  }

  /** By the hypervisor's first word. */
  #byShutdown(): VmStop | null {
    const { shutdown, wasShutDown } = this.#timeline;
    if (wasShutDown) {
      // It may have been started again when nobody heard it.
      const ends = this.#isBroken() ? [...ORDERLY, ...KILLED] : [];
      return this.#verdict.oneOf([...LINGERING, ...ends]);
    }
    if (shutdown === null) return null;
    switch (shutdown.reason) {
      case 'guest-shutdown':
        return this.#byGuestShutdown();
      case 'guest-reset':
        return this.#verdict.sure('guest-reboot', 'guest');
      case 'host-qmp-system-reset':
        return this.#afterwards('host-reset', 'host');
      case 'host-qmp-quit':
        if (this.#own('quit') !== null) return this.#afterwards('manager-quit', 'manager');
        if (this.#verdict.mayBeOwn('quit')) return this.#oneOf(['manager-quit', 'other-quit']);
        return this.#evidence.intents === null
          ? this.#oneOf(['manager-quit', 'other-quit'])
          : this.#afterwards('other-quit', 'host');
      case 'host-signal':
        return this.#afterwards('forced-stop', this.#initiatorOfRequest());
      case 'host-ui':
        return this.#afterwards('host-ui', 'host');
      case 'host-error':
        return this.#afterwards('host-error', 'vmm');
      default:
        return this.#bySide(shutdown.isGuests);
    }
  }

  /** What was done to it: its end, unless it had ended its work before, and nobody can tell. */
  #afterwards(cause: Cause, initiator: Initiator): VmStop {
    const before = this.#before();
    if (before.length === 0) return this.#verdict.sure(cause, initiator);
    // It was being saved when it was asked last; or it may have powered off as we had asked it to, and
    // have stayed.
    const isBeingSaved = this.#evidence.lastStatus === 'save-vm';
    if (isBeingSaved || (this.#wasAsked() && before.includes('guest-shutdown'))) {
      return this.#oneOf([cause]);
    }
    return this.#verdict.likely(cause, initiator, before);
  }

  #likely(cause: Cause, initiator: Initiator, others: readonly Cause[]): VmStop {
    return this.#verdict.likely(cause, initiator, [...others, ...this.#before()]);
  }

  #oneOf(candidates: readonly Cause[]): VmStop {
    return this.#verdict.oneOf([...candidates, ...this.#before()]);
  }

  /** What may have come before that nobody was there to see, or that no event tells. */
  #before(): readonly Cause[] {
    const { eventsComplete, eventsUnbroken, initialStatus, mayLinger } = this.#evidence;
    const { lastStatus, tellsMigration } = this.#evidence;
    if (eventsComplete || (initialStatus !== null && eventsUnbroken)) {
      const { shutdown, tellsMigration: hasTold, wasPaused } = this.#timeline;
      if (!wasPaused || shutdown?.isGuests === true) return [];
      if (!hasTold && tellsMigration !== true) return ELSEWHERE;
      // What is saved as a snapshot is no migration.
      return lastStatus === 'paused' ? [] : ['saved'];
    }
    return mayLinger === false ? ELSEWHERE : [...ELSEWHERE, ...LINGERING];
  }

  #byGuestShutdown(): VmStop {
    const { debugExit, eventsComplete, exit } = this.#evidence;
    const { hibernates, isPaused, presses } = this.#timeline;
    const cause = hibernates ? 'guest-hibernate' : 'guest-shutdown';
    // isa-debug-exit: a guest of a test suite has said so. One that stays has said nothing of its exit.
    const isError = exit?.how === 'exited' && exit.exitCode !== 0;
    const unheard = this.#unheard();
    const requests = this.#requests();
    if (isError && debugExit !== false && !isPaused) {
      const others: Cause[] = [cause, ...causesOf(requests), ...(eventsComplete ? [] : unheard)];
      return this.#verdict.likely('vmm-exit', 'guest', others);
    }
    // It stayed, and may have been started again when nobody heard it.
    if (this.#isBroken() && isPaused) {
      return this.#verdict.oneOf([cause, ...causesOf(requests), ...unheard]);
    }
    const byRequest = this.#byRequest(requests, [cause, ...unheard]);
    if (byRequest !== null) return byRequest;
    if (unheard.length > 0) return this.#verdict.oneOf([cause, ...unheard]);
    return eventsComplete && presses.length === 0
      ? this.#verdict.sure(cause, 'guest')
      : this.#verdict.likely(cause, 'guest', []);
  }

  /** Events may have come that nobody heard, also the last ones. */
  #isBroken(): boolean {
    return !this.#evidence.eventsComplete && !this.#evidence.eventsUnbroken;
  }

  /** Why a guest may have powered off that left no trace: an agent's request, or what came before us. */
  #unheard(): Cause[] {
    const { agent = 'none', debugExit = false, eventsComplete, exit } = this.#evidence;
    const { eventsUnbroken, heardSince = null, intents } = this.#evidence;
    const { hibernates, isPaused, shutdown } = this.#timeline;
    const wasIncoming = this.#wasIncoming();
    const isOver = isLongAfter(heardSince, shutdown?.at ?? null);
    const unheard: Cause[] = [];
    if (exit?.how !== 'exited' && debugExit !== false && !isPaused) unheard.push('vmm-exit');
    if (!eventsComplete && !eventsUnbroken) {
      if (!hibernates) unheard.push('guest-hibernate');
      // It stayed, and may have been started again.
      if (isPaused) unheard.push(...ELSEWHERE, ...ORDERLY, ...KILLED);
    }
    if (agent === 'open' || agent === null) unheard.push('other-powerdown');
    if (agent !== 'none' && intents === null) unheard.push('admin-powerdown');
    if (!isOver && (!eventsComplete || wasIncoming)) {
      unheard.push('other-powerdown');
      if (!eventsComplete) unheard.push('watchdog-powerdown');
      if (wasIncoming || intents === null) unheard.push('admin-powerdown');
    }
    return unheard;
  }

  /** What the guest may have obeyed. */
  #requests(): Request[] {
    const { agent, eventsComplete, eventsUnbroken, exit, intents } = this.#evidence;
    const { heardSince = null } = this.#evidence;
    const since = eventsComplete ? new Date(0) : eventsUnbroken ? heardSince : null;
    const heardFrom = agent === 'none' ? since : null;
    return requestsBefore(this.#timeline, intents, exit?.exitedAt ?? null, heardFrom);
  }

  #wasAsked(): boolean {
    return this.#requests().some(({ by, fits }) => by === 'us' && fits === 'likely');
  }

  #byRequest(requests: readonly Request[], otherwise: readonly Cause[]): VmStop | null {
    const causes = causesOf(requests);
    const last = requests.filter(({ fits }) => fits === 'likely').at(-1);
    if (last === undefined)
      return causes.length === 0 ? null : this.#verdict.oneOf([...causes, ...otherwise]);
    const others: Cause[] = [...causes, ...otherwise];
    switch (last.by) {
      case 'us':
        return this.#verdict.likely('admin-powerdown', 'manager', others);
      case 'another':
        return this.#verdict.likely('other-powerdown', 'host', others);
      case 'watchdog':
        return this.#verdict.likely('watchdog-powerdown', 'guest', others);
      case null:
        return this.#verdict.oneOf(others);
    }
  }

  /** Before QEMU 4.0 it gave no reason, and it may have new ones some day. */
  #bySide(isGuests: boolean | null): VmStop {
    if (isGuests === true) return this.#oneOf(GUESTS);
    return this.#oneOf(isGuests === false ? HOSTS : [...GUESTS, ...HOSTS]);
  }

  #bySignal(): VmStop | null {
    const { exit } = this.#evidence;
    if (exit?.how !== 'killed' && exit?.how !== 'dumped') return null;
    if (exit.oom === true) return this.#afterwards('oom-killed', 'kernel');
    const by = attackerOf(exit);
    if (by !== null && exit.sender === null) {
      // Sent from outside, and what came of it is not known.
      const initiator = this.#initiatorOf(by, exit.signal, exit.pid);
      return this.#likely('killed', initiator, ['vmm-crash']);
    }
    if (by !== null)
      return this.#afterwards('killed', this.#initiatorOf(by, exit.signal, exit.pid));
    if (CRASHES.includes(exit.signal)) {
      const isOwn =
        exit.sender !== null && (exit.sender.pid === null || exit.sender.pid === exit.pid);
      return isOwn
        ? this.#afterwards('vmm-crash', 'vmm')
        : this.#likely('vmm-crash', 'unknown', ['killed']);
    }
    if (exit.sender !== null)
      return this.#afterwards('killed', this.#initiatorOf(exit.sender, exit.signal, exit.pid));
    if (this.#own(exit.signal) !== null) {
      return this.#likely('killed', 'manager', exit.signal === 'SIGKILL' ? ['oom-killed'] : []);
    }
    return exit.signal === 'SIGKILL'
      ? this.#oneOf(['killed', 'oom-killed'])
      : this.#likely('killed', 'unknown', ['vmm-crash']);
  }

  #byExit(): VmStop | null {
    const { exit, eventsComplete, obeyed } = this.#evidence;
    const isSeen = exit?.how === 'exited';
    if (isSeen && exit.exitCode !== 0) return this.#byError();
    if (obeyed !== null && (isSeen || !this.#hasLeftAll())) {
      return this.#afterwards('forced-stop', this.#initiatorOfRequest());
    }
    if (!isSeen) return this.#byLeftovers();
    // A full disk takes the last word of an event log.
    if (eventsComplete) {
      return this.#oneOf(['guest-watchdog', 'vmm-exit', 'start-exited', 'guest-shutdown']);
    }
    return this.#byOrderlyExit(exit);
  }

  /** It exited with an error. */
  #byError(): VmStop {
    const { events, eventsComplete, initialStatus, ready } = this.#evidence;
    const { hasRun } = this.#timeline;
    // RESUME comes before it is ready; who has never run was never ready, though it may have greeted us.
    const hasHeard = eventsComplete || initialStatus !== null || this.#wasIncoming();
    const neverRan = !hasRun && hasHeard;
    if (neverRan || ready !== true) {
      return this.#likely('start-failed', 'vmm', ['vmm-exit', 'guest-panic']);
    }
    const before = this.#before();
    if (eventsComplete && before.length === 0) {
      return this.#verdict.sure('vmm-exit', 'vmm');
    }
    const causes: Cause[] = ['vmm-exit', 'guest-panic', 'start-failed'];
    return hasHeard || events.length > 0
      ? this.#likely('vmm-exit', 'vmm', causes)
      : this.#oneOf(causes);
  }

  #wasIncoming(): boolean {
    const { incoming, initialStatus } = this.#evidence;
    return incoming ?? (initialStatus === 'inmigrate' || this.#timeline.wasIncoming);
  }

  /** As one does that is killed: what ends in good order removes them. */
  #hasLeftAll(): boolean {
    const { pidfile, socket } = this.#evidence.leftovers;
    return pidfile === true && socket !== false;
  }

  /** Nobody saw how it ended, and it had no word on that, or one that may be of an earlier start. */
  #byLeftovers(): VmStop | null {
    const { eventsComplete, leftovers, obeyed } = this.#evidence;
    const exited: Cause[] = ['vmm-exit', 'guest-watchdog', 'start-failed'];
    if (this.#hasLeftAll()) {
      if (obeyed !== null) return this.#oneOf([...KILLED, 'forced-stop']);
      return this.#own('SIGKILL') === null || !eventsComplete
        ? this.#oneOf(KILLED)
        : this.#likely('killed', 'manager', KILLED);
    }
    if (!eventsComplete) return null;
    if (leftovers.pidfile === false && leftovers.socket === true) {
      return this.#oneOf(exited);
    }
    // Of its last word, a full disk may have robbed us.
    return this.#oneOf([...KILLED, ...exited, 'guest-shutdown']);
  }

  /** It exited with 0, and neither it nor its log has a word of why. */
  #byOrderlyExit(exit: ExitEvent): VmStop {
    const orderly = (...without: Cause[]) => ORDERLY.filter((cause) => !without.includes(cause));
    const request = requestsOf(exit).at(-1);
    const own = REQUESTS.some((signal) => this.#own(signal) !== null);
    const wasAsked = this.#wasAsked();
    if (request !== undefined && !own && wasAsked) return this.#oneOf(orderly());
    if (request !== undefined || own) {
      const initiator = own ? 'manager' : this.#initiatorOf(request ?? null, 'SIGTERM', exit.pid);
      // It may have ended by itself a moment before.
      return this.#likely('forced-stop', initiator, orderly());
    }
    const without = this.#hasSeenSignals(exit) ? orderly('forced-stop') : orderly();
    if (this.#own('quit') !== null) {
      return this.#likely('manager-quit', 'manager', without);
    }
    if (wasAsked) return this.#likely('admin-powerdown', 'manager', without);
    return this.#oneOf(without);
  }

  /** One that it has obeyed would be known: by the signal trace, or by its own log. */
  #hasSeenSignals(exit: ExitEvent): boolean {
    return this.#evidence.hasLog || hasSeenSignals(exit);
  }

  #initiatorOfRequest(): Initiator {
    if (REQUESTS.some((signal) => this.#own(signal) !== null)) return 'manager';
    if (REQUESTS.some((signal) => this.#verdict.mayBeOwn(signal))) return 'unknown';
    return this.#evidence.intents === null ? 'unknown' : 'host';
  }

  #initiatorOf(sender: SignalSender | null, signal: string, pid: number): Initiator {
    if (this.#own(signal) !== null) return 'manager';
    if (sender === null) return 'unknown';
    if (sender.pid === pid) return 'vmm';
    if (sender.pid === null) return 'kernel';
    return this.#evidence.intents === null ? 'unknown' : 'host';
  }

  /** What we were about to do, if it may have been that. */
  #own(what: string): Intent | null {
    return this.#verdict.own(what);
  }
}

function causesOf(requests: readonly Request[]): Cause[] {
  return requests.flatMap(({ by, mayBeOthers }) =>
    mayBeOthers ? REQUESTED.somebody : REQUESTED[by ?? 'somebody'],
  );
}

/** Signals that ask it to end, by the trace. */
function requestsOf(exit: ExitEvent): SignalSender[] {
  return exit.signalsReceived.filter(({ signal }) => REQUESTS.includes(signal));
}

/** Who killed it from outside, also where it has caught the signal and raised it once more. */
function attackerOf(exit: ExitEvent): SignalSender | null {
  const isOther = (sender: SignalSender) => sender.pid !== null && sender.pid !== exit.pid;
  const killer = killerOf(exit);
  if (killer !== null) return isOther(killer) ? killer : null;
  return exit.signalsReceived.find((each) => each.signal === exit.signal && isOther(each)) ?? null;
}
