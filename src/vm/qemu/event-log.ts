import { GrowingFile } from '../evidence/growing-file.js';

import { parseLogLine } from './event-log-line.js';
import { isWhole, runOf } from './log-runs.js';
import type { QmpEvent } from './qmp-event.js';
import { isSince } from './since.js';
import { keepEvent, tellingOf } from './telling-events.js';

/** What identifies one run in an event log that earlier and later runs may share. */
export interface LogShare {
  /** When its process started; `null` if unknown. */
  startedAt: Date | null;
  /** Events up to this time belong to an earlier start. */
  after: Date | null;
  /** When it was seen to exist; used if its start is unknown. */
  seenAt: Date | null;
}

/** Within this time of being seen, a process has begun to run, and no successor has. */
const BEGUN_MS = 10_000;

/** More than a machine reports between two reads, and in years without any. */
const MOST_DOUBTFUL = 100_000;

/** The event log of one run of a QEMU, followed as it grows. */
export class EventLog {
  readonly file: GrowingFile;
  readonly #share: LogShare;
  readonly #events: QmpEvent[] = [];
  /** Events that a later start may have written. */
  #doubtful: QmpEvent[] = [];
  #isReadOnce = false;
  #isOverflown = false;
  /** A line was incomplete. */
  #isTorn = false;

  constructor(path: string, share: LogShare) {
    this.#share = share;
    this.file = new GrowingFile(path, (line) => {
      this.#keep(parseLogLine(line));
    });
  }

  /** Reads new lines. Resolves with true if the file exists and was read completely. */
  async read(): Promise<boolean> {
    const isThere = await this.file.read();
    this.#isReadOnce = true;
    return isThere;
  }

  /** The process still existed after the last read, so no later start has written what was read. */
  settle(): void {
    this.#take(this.#doubtful);
    this.#doubtful = [];
  }

  /** The events of this run, among those that were read. */
  ownEvents(endedAt: Date | null): QmpEvent[] {
    // A later start's RESUME does not undo this one's STOP.
    const isOwn = ({ at }: QmpEvent) => endedAt === null || at === null || at <= endedAt;
    this.#doubtful = this.#doubtful.filter(isOwn);
    this.settle();
    return runOf(this.#events, { ...this.#share, endedAt });
  }

  /**
   * Whether the events are surely this run's. If it started before the host's last boot, only
   * `seenAt` can tell.
   */
  isSurelyOwn([first]: readonly QmpEvent[]): boolean {
    const { startedAt, seenAt } = this.#share;
    if (startedAt !== null) return true;
    return seenAt !== null && (first?.at?.getTime() ?? Infinity) <= seenAt.getTime() + BEGUN_MS;
  }

  /** Why events may be missing; `null`: no sign of that. */
  get defect(): string | null {
    if (this.#isTorn || this.file.wasFull) return 'may lack events: its disk is or was full';
    if (this.file.wasReplaced) return 'may lack events: it was replaced or truncated';
    return this.#isOverflown ? 'has too many events to judge' : null;
  }

  /** Events of the first read may be an earlier start's; later ones are not. */
  #keep(said: QmpEvent | 'torn' | null): void {
    if (said === 'torn') this.#isTorn = true;
    const event = said === null || said === 'torn' ? null : tellingOf(said);
    if (event === null) return;
    if (!this.#isReadOnce && !isSince(event.at, this.#share.startedAt)) {
      this.#isTorn = false; // that line was an earlier start's, too
      return;
    }
    if (this.#doubtful.length < MOST_DOUBTFUL) this.#doubtful.push(event);
    else this.#isOverflown = true;
  }

  #take(events: readonly QmpEvent[]): void {
    for (const event of events) {
      if (!keepEvent(this.#events, event)) this.#isOverflown = true;
    }
  }
}

/** Whether these events begin at its start: a run that was started paused has no RESUME there. */
export function isFromItsStart(
  logged: readonly QmpEvent[],
  initialStatus: string | null | undefined,
): boolean {
  return isWhole(logged) || (logged.length > 0 && initialStatus === 'prelaunch');
}

/** Whether one witness has every event that the other has heard. */
export function hasAllOf(logged: readonly QmpEvent[], heard: readonly QmpEvent[]): boolean {
  const count = (events: readonly QmpEvent[], name: string) =>
    events.filter(({ event }) => event === name).length;
  return heard.every(({ event }) => count(logged, event) >= count(heard, event));
}
