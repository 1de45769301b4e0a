import { spawn } from 'node:child_process';
import { resolve } from 'node:path';

import { withDeadline } from '../common/deadline.js';
import { bootId } from '../identity/boot-id.js';
import type { ExitEvent, Gap, SourceChange } from '../events/exit-event.js';
import { JournalWriter } from '../journal/index.js';
import { type Counted, RateLimit } from '../journal/rate-limit.js';
import { type MemoryKind, recordedBy } from '../memory/keeping.js';
import { LEASE_MS } from '../memory/recorder-pins.js';
import { ExitMonitor } from '../monitor/exit-monitor.js';
import type { ExitMonitorOptions } from '../monitor/options.js';
import type { Ready } from '../monitor/ready.js';

import { CountedEnds } from './counted-ends.js';
import { journalDir, recorderDir } from './journal-dirs.js';
import { isOwnChild } from './own-children.js';
import { ageMs, lastRecorded, type Recorded, RecordingNote } from './recording-note.js';

/** How `record` watches; options that only it needs belong here. */
const MONITOR_OPTIONS = {
  scope: 'all',
  autoCommit: false,
  maxDelayMs: 100,
} satisfies ExitMonitorOptions;

/** How often to write how many ends were skipped, and that it records. */
const TICK_MS = 10_000;

/** Within this time an end is on disk, unless there is trouble. */
const STORED_MS = 2000;

/** How long to wait at most, when it is closed, until all ends of before are told. */
const LONGEST_CLOSE_MS = 2000;

export interface RecordingOptions {
  stateDir: string;
  pinDir: string;
  /** Whether to keep the arguments of processes and of senders, and what they go through before. */
  commandLines: NonNullable<ExitMonitorOptions['commandLines']>;
  gid: number | undefined;
  /** Most rows of one name in a minute. */
  rate: number;
  matches: (event: ExitEvent) => boolean;
  /** The same, in the words of the user; empty: all. */
  keeps: readonly string[];
  onTrouble: (error: Error | null) => void;
}

/**
 * Writes the ends of all processes into a journal. A monitor forgets an end when it is on disk, so that none
 * is lost if this process dies.
 */
export class Recording {
  readonly #options: RecordingOptions;
  readonly #journal: JournalWriter;
  readonly #monitor: ExitMonitor;
  readonly #rate: RateLimit;
  readonly #counted: CountedEnds;
  /** Ends that were skipped, whose number is not on disk, and whether the journal has been given it. */
  #skipped: Counted[] = [];
  #isQueued = false;
  readonly #timer: NodeJS.Timeout;
  #ticking: Promise<void> | undefined;
  readonly #note: RecordingNote;
  /** Until when an earlier one has recorded; `null`: there was none. */
  readonly #last: Recorded | null;
  /** What has recorded since the last row. */
  readonly #recordedBy: MemoryKind;
  #startedMs = Infinity;
  /** Of the process whose end is the last one to wait for. */
  #lastId: string | null = null;
  /** Resolves if the monitor fails. */
  readonly failed: Promise<Error>;

  /** @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR` */
  constructor(options: RecordingOptions) {
    const { stateDir, pinDir, gid, rate, keeps, commandLines, onTrouble } = options;
    this.#options = options;
    this.#journal = new JournalWriter({
      ...{ dir: journalDir(stateDir), keeps, onTrouble },
      ...(gid === undefined ? {} : { gid }),
      onStored: (exits) => {
        this.#commit(exits);
      },
    });
    this.#note = new RecordingNote(journalDir(stateDir), gid);
    this.#last = lastRecorded(this.#journal.last, this.#note.read());
    this.#recordedBy = recordedBy(resolve(pinDir), resolve(recorderDir(stateDir)));
    this.#rate = new RateLimit(rate);
    this.#counted = new CountedEnds(journalDir(stateDir));
    this.#monitor = new ExitMonitor({
      ...MONITOR_OPTIONS,
      commandLines,
      ...{ stateDir: recorderDir(stateDir), recorder: { pinDir } },
    });
    this.#monitor.on('exit', (event) => {
      // The recorder also sees the children with which we have tried it.
      const isOurs = event.id === this.#lastId || isOwnChild(event);
      const isDone = isOurs || this.#counted.has(event.id) || !options.matches(event);
      // A row that is on disk must not be counted, too.
      const isKept = !isDone && this.#journal.has(event.id);
      const admission = isDone ? 'forget' : isKept ? 'keep' : this.#rate.admit(event);
      if (admission === 'keep') this.#journal.append(event);
      else if (admission === 'forget') this.#monitor.commit(event);
    });
    const append = (event: Gap | SourceChange) => {
      this.#journal.append(event);
    };
    this.#monitor.on('gap', append).on('source', append);
    this.failed = new Promise((fail) => this.#monitor.once('error', fail));
    this.#timer = setInterval(() => void this.#tick(), TICK_MS);
  }

  /** Rejects like `start()` of a monitor. */
  async start(): Promise<Ready> {
    await this.#counted.restore();
    const ready = await this.#monitor.start();
    this.#startedMs = performance.now();
    const last = this.#last;
    if (last !== null && !this.#isKept(ready, last)) {
      // The clock may have been set back.
      const times = [last.at.getTime(), Date.now()];
      this.#journal.append({
        ...{ event: 'gap', from: new Date(Math.min(...times)), to: new Date(Math.max(...times)) },
        ...{ lost: null, reason: 'not-recording', recovered: 0 },
      });
    }
    void this.#noteRecording(performance.now());
    return ready;
  }

  /** What comes from now on is delivered again later, unless the system shuts down. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    if (this.#startedMs !== Infinity) await withDeadline(this.#allTold(), LONGEST_CLOSE_MS);
    await this.#ticking;
    await this.#tick(); // what has waited until now
    await this.#tick();
    await this.#journal.close();
    this.#note.close();
    await this.#monitor.close();
  }

  /** Ends wait for others: resolves when those of before were told, because a later one was. */
  async #allTold(): Promise<void> {
    try {
      const child = spawn('sh', ['-c', ':'], { stdio: 'ignore' }).on('error', () => undefined);
      if (child.pid === undefined) return;
      const { identity, exited } = this.#monitor.watch(child.pid, { durable: false });
      this.#lastId = identity.id;
      await exited;
    } catch {
      // The monitor has failed: what is known is what there is.
    }
  }

  /** Whether something has remembered all ends since then. */
  #isKept({ memory }: Ready, last: Recorded): boolean {
    if (last.bootId !== bootId() || ageMs(last) > LEASE_MS) return false;
    return memory !== 'none' && memory === this.#recordedBy;
  }

  /** The latest ones first: then the recorder's room is freed once, and not for each. */
  #commit(exits: readonly Pick<ExitEvent, 'id'>[]): void {
    for (const exit of exits.toReversed()) this.#monitor.commit(exit);
  }

  /** One at a time: a disk may be slow. */
  #tick(): Promise<void> {
    const begin = performance.now();
    this.#ticking ??= this.#writeSkipped()
      .then((isWritten) => (isWritten ? this.#noteRecording(begin) : undefined))
      .finally(() => {
        this.#ticking = undefined;
      });
    return this.#ticking;
  }

  /** All until then is on disk, or about to be: even if no end is kept, none is missing. */
  async #noteRecording(then: number): Promise<void> {
    if (this.#startedMs === Infinity) return;
    const unstoredMs = Math.min(STORED_MS, then - this.#startedMs);
    await this.#journal.flush();
    if (this.#journal.trouble !== null) return;
    const agoMs = performance.now() - then + unstoredMs;
    this.#note.set(agoMs, this.#options.rate !== Infinity);
  }

  /**
   * An end that was skipped is done with when its number is on disk. Until then the next ones wait, so that each
   * is counted once, whenever we are killed. Resolves with whether all are written.
   */
  async #writeSkipped(): Promise<boolean> {
    if (!(await this.#writeTaken())) return false;
    this.#skipped = this.#rate.takeSkipped();
    return this.#writeTaken();
  }

  async #writeTaken(): Promise<boolean> {
    if (this.#skipped.length === 0) return true;
    if (!this.#isQueued) {
      if (!(await this.#counted.note(this.#skipped))) return false;
      for (const { row } of this.#skipped) this.#journal.append(row);
      this.#isQueued = true;
    }
    await this.#journal.flush();
    if (this.#journal.trouble !== null) return false;
    this.#commit(this.#skipped.flatMap(({ ids }) => ids.map((id) => ({ id }))));
    this.#skipped = [];
    this.#isQueued = false;
    return true;
  }
}
