import { GrowingFile } from '../evidence/growing-file.js';

import { parseLogLine } from './event-log-line.js';
import { isWhole, runOf } from './log-runs.js';
import type { QmpEvent } from './qmp-event.js';
import { isSince } from './since.js';
import { isTelling, keepEvent } from './telling-events.js';

/** What a run has of an event log that earlier and later ones may share. */
export interface LogShare {
  /** When its process started; `null`: not known. */
  startedAt: Date | null;
  /** What the log has of up to then is an earlier start's. */
  after: Date | null;
  /** When it was seen to be there, where its start is not known. */
  seenAt: Date | null;
}

/** Who was seen to be there has begun to run by then, and no other one has. */
const BEGUN_MS = 10_000;

/** The event log of one run of a QEMU, as it grows. */
export class EventLog {
  readonly file: GrowingFile;
  readonly #share: LogShare;
  readonly #events: QmpEvent[] = [];
  #isReadOnce = false;
  #isOverflown = false;
  /** A line was not written whole. */
  #isTorn = false;

  constructor(path: string, share: LogShare) {
    this.#share = share;
    this.file = new GrowingFile(path, (line) => {
      this.#keep(parseLogLine(line));
    });
  }

  /** Reads what is new. Resolves with whether there is such a file, and all of it could be read. */
  async read(): Promise<boolean> {
    const isThere = await this.file.read();
    this.#isReadOnce = true;
    return isThere;
  }

  /** Its own events, of those that were read. */
  ownEvents(endedAt: Date | null): QmpEvent[] {
    return runOf(this.#events, { ...this.#share, endedAt });
  }

  /** Of a start before the host's last boot, only when it was seen says which of the log's runs it was. */
  isSurelyOwn([first]: readonly QmpEvent[]): boolean {
    const { startedAt, seenAt } = this.#share;
    if (startedAt !== null) return true;
    return seenAt !== null && (first?.at?.getTime() ?? Infinity) <= seenAt.getTime() + BEGUN_MS;
  }

  /** Why events may be missing from what was read; `null`: nothing says so. */
  get defect(): string | null {
    if (this.#isTorn || this.file.wasFull) return 'may lack events: its disk is full, or was';
    if (this.file.wasReplaced) return 'may lack events: it was replaced, or cut';
    return this.#isOverflown ? 'has more events than anybody can judge' : null;
  }

  /** What is there at first may be of an earlier start; what comes while we are there is not. */
  #keep(event: QmpEvent | 'torn' | null): void {
    if (event === 'torn') this.#isTorn = true;
    if (event === null || event === 'torn' || !isTelling(event)) return;
    if (!this.#isReadOnce && !isSince(event.at, this.#share.startedAt)) {
      this.#isTorn = false; // that was another's, too
      return;
    }
    if (!keepEvent(this.#events, event)) this.#isOverflown = true;
  }
}

/** Whether these events are there from its start: one that was started paused has no RESUME there. */
export function isFromItsStart(
  logged: readonly QmpEvent[],
  initialStatus: string | null | undefined,
): boolean {
  return isWhole(logged) || (logged.length > 0 && initialStatus === 'prelaunch');
}

/** Nothing that one witness has heard is missing from the other. */
export function hasAllOf(logged: readonly QmpEvent[], heard: readonly QmpEvent[]): boolean {
  const count = (events: readonly QmpEvent[], name: string) =>
    events.filter(({ event }) => event === name).length;
  return heard.every(({ event }) => count(logged, event) >= count(heard, event));
}
