import { hasSeenSignals } from '../../events/ended-by.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { SignalSender } from '../../events/signal-event.js';
import { heardSince, isBroken, isKnownFromTheFirst } from '../evidence/completeness.js';
import { timelineOf, type Timeline } from '../evidence/timeline.js';
import type { VmEvidence } from '../evidence/vm-evidence.js';

import { ELSEWHERE, LINGERING } from './causes.js';
import { OwnDoing, SHUTDOWN_SIGNALS } from './own-doing.js';
import { requestsBefore, type Request } from './power-requests.js';
import { VerdictWriter } from './verdict-writer.js';
import type { Cause, Initiator, VmVerdict } from './vm-verdict.js';

/** One end under judgement: answers what several rules ask of the evidence. */
export class StopCase {
  readonly evidence: VmEvidence;
  readonly timeline: Timeline;
  readonly verdict: VerdictWriter;
  /** Our intents that may have caused the end. */
  readonly own: OwnDoing;

  constructor(evidence: VmEvidence) {
    this.evidence = evidence;
    const { events, initialPhase, lastPhase } = evidence;
    this.timeline = timelineOf(events, initialPhase, lastPhase);
    this.verdict = new VerdictWriter(evidence);
    this.own = new OwnDoing(evidence, this.timeline);
  }

  /** Events may be missing, including the last ones. */
  get isBroken(): boolean {
    return isBroken(this.evidence);
  }

  get wasIncoming(): boolean {
    const { isIncoming, initialPhase } = this.evidence;
    return isIncoming ?? (initialPhase?.phase === 'incoming' || this.timeline.wasIncoming);
  }

  /** It left the files that a clean exit removes, as a process does that is killed. */
  get hasLeftAll(): boolean {
    const { pidfile, socket } = this.evidence.leftovers;
    return pidfile === true && socket !== false;
  }

  /** What may have happened earlier that nobody heard, or that no event reports. */
  get before(): readonly Cause[] {
    const { lastPhase, mayLinger, tellsMigration } = this.evidence;
    if (isKnownFromTheFirst(this.evidence)) {
      const { shutdown, tellsMigration: hasTold, wasPaused } = this.timeline;
      if (!wasPaused || shutdown?.byGuest === true) return [];
      if (!hasTold && !tellsMigration) return ELSEWHERE;
      // Saving a snapshot is no migration, so no event reports it.
      return lastPhase?.phase === 'paused' ? [] : ['saved'];
    }
    return mayLinger === false ? ELSEWHERE : [...ELSEWHERE, ...LINGERING];
  }

  /** Requests that the guest may have obeyed. */
  get requests(): Request[] {
    const { agent, exit, intents } = this.evidence;
    const heardFrom = agent === 'none' ? heardSince(this.evidence) : null;
    return requestsBefore(this.timeline, intents, exit?.exitedAt ?? null, heardFrom);
  }

  get wasAsked(): boolean {
    return this.requests.some(({ by, fits }) => by === 'us' && fits === 'likely');
  }

  /** What ended the process is the cause, unless the machine may have finished before, unheard. */
  afterwards(cause: Cause, initiator: Initiator): VmVerdict {
    const { before } = this;
    if (before.length === 0) return this.verdict.sure(cause, initiator);
    // It was being saved when it was last asked. Or it may have powered off at our request, and
    // stayed.
    const isBeingSaved = this.evidence.lastPhase?.phase === 'saving';
    if (isBeingSaved || (this.wasAsked && before.includes('guest-shutdown'))) {
      return this.oneOf([cause]);
    }
    return this.verdict.likely(cause, initiator, before);
  }

  likely(cause: Cause, initiator: Initiator, others: readonly Cause[]): VmVerdict {
    return this.verdict.likely(cause, initiator, [...others, ...this.before]);
  }

  oneOf(candidates: readonly Cause[]): VmVerdict {
    return this.verdict.oneOf([...candidates, ...this.before]);
  }

  /** If it obeyed a signal, we would know: from the signal trace or from its own log. */
  hasSeenSignals(exit: ExitEvent): boolean {
    return this.evidence.hasLog || hasSeenSignals(exit);
  }

  /** Who sent the signal that the hypervisor obeyed. */
  get initiatorOfRequest(): Initiator {
    if (SHUTDOWN_SIGNALS.some((signal) => this.own.of(signal) !== null)) return 'manager';
    if (SHUTDOWN_SIGNALS.some((signal) => this.own.mayBeLate(signal))) return 'unknown';
    return this.evidence.intents === null ? 'unknown' : 'host';
  }

  /** Who initiated a signal, judged by its sender. */
  initiatorOf(sender: SignalSender | null, signal: string, pid: number): Initiator {
    if (this.own.of(signal) !== null) return 'manager';
    if (sender === null) return 'unknown';
    if (sender.pid === pid) return 'vmm';
    if (sender.pid === null) return 'kernel';
    return this.evidence.intents === null ? 'unknown' : 'host';
  }
}
