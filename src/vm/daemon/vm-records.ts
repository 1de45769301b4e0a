import { ExitwatchError } from '../../common/errors.js';
import { startOf, type ProcessIdentity } from '../../identity/process-identity.js';
import type { Accounted, VmStart } from '../directory/vm-start.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { EndGroups } from './end-groups.js';
import { hostId } from './host-id.js';
import type { StateDirectory } from './state-directory.js';
import { readVmRecord, type VmEnd, type VmRecord } from './vm-record.js';

/** Of an end. */
const MOST_EVIDENCE = 100;
const MOST_TEXT = 1000;

/** Ends of one machine that have yet to be delivered to its hook. */
const MOST_UNDELIVERED = 10;

/** One virtual machine of which there is something to do. */
interface Entry {
  record: VmRecord;
  /** One after the other. */
  writing: Promise<void>;
}

/** What is on the disk of each virtual machine, and how that changes with what happens to it. */
export class VmRecords {
  readonly #state: StateDirectory;
  readonly #warn: (error: Error, name: string) => void;
  readonly #entries = new Map<string, Entry>();
  readonly #groups = new EndGroups();

  constructor(state: StateDirectory, warn: (error: Error, name: string) => void) {
    this.#state = state;
    this.#warn = warn;
  }

  /** From before: its ends that have yet to be delivered. */
  restore(record: VmRecord): VmEnd[] {
    if (record.state === 'running' || record.undelivered.length > 0) this.#enter(record);
    return record.undelivered;
  }

  /** Durable when it resolves, unless it has ended already: that is written down with its verdict. */
  async found({ name, identity, uid, eventLog, command }: VmStart): Promise<void> {
    const known = this.#entries.get(name)?.record ?? (await this.#read(name));
    const record: VmRecord = {
      event: 'vm',
      name,
      state: 'running',
      identity,
      uid,
      foundAt: new Date(),
      eventLog,
      command,
      lastStop: known?.lastStop ?? null,
      lastStopped: known?.lastStopped ?? null,
      judgedUntil: known?.judgedUntil ?? null,
      undelivered: known?.undelivered ?? [],
      host: hostId(),
    };
    const entry = this.#enter(record);
    if (identity === null) return;
    // Of an earlier start: it says nothing of this one.
    await this.#state.unmark(name);
    await this.#write(entry);
  }

  /** Its event log has come. */
  async logged({ name, eventLog }: VmStart): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    entry.record.eventLog = eventLog;
    await this.#write(entry);
  }

  /** Resolves with its end when that is on the disk. */
  async ended(
    { name, identity }: VmStart,
    verdict: VmVerdict,
    { firstWordAt, until }: Accounted,
  ): Promise<VmEnd> {
    const stop = cut(verdict);
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new Error(`${name} has ended before it was found`);
    const id = identity?.id ?? `${name}-unseen-${until.getTime()}`;
    const end: VmEnd = { id, identity, stop, group: this.#groups.of(id, stop), isRepeated: false };
    const { record } = entry;
    const startedAfter = record.judgedUntil;
    record.state = 'stopped';
    record.lastStop = stop;
    record.lastStopped = identity;
    record.judgedUntil = new Date(Math.max(until.getTime(), record.judgedUntil?.getTime() ?? 0));
    this.#queue(record, end);
    const startedAt = identity === null ? firstWordAt : startOf(identity);
    // In this order: what a crash in between leaves is judged, and written, once more.
    await this.#mark(stop, { identity, startedAt, startedAfter }, until);
    await this.#write(entry);
    return end;
  }

  /** An end was delivered, and need not be again; written down unless `isClosed`. */
  async delivered({ id, stop: { name } }: VmEnd, isClosed: () => boolean): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    const { record } = entry;
    record.undelivered = record.undelivered.filter((each) => each.id !== id);
    // Closed meanwhile: it is delivered again.
    if (isClosed()) return;
    try {
      await this.#write(entry);
    } catch (error) {
      this.#warn(error as Error, name);
    }
    const isOver = entry.record.state === 'stopped' && entry.record.undelivered.length === 0;
    if (isOver && this.#entries.get(name) === entry) this.#entries.delete(name);
  }

  #queue(record: VmRecord, end: VmEnd): void {
    record.undelivered = [...record.undelivered, end];
    if (record.undelivered.length <= MOST_UNDELIVERED) return;
    record.undelivered.shift();
    const detail = `more than ${MOST_UNDELIVERED} ends wait for the hook: of those before, it is not told again after a restart`;
    this.#warn(new ExitwatchError('ERR_EXITWATCH_HOOK', detail), record.name);
  }

  /** The mark is there if the last end was its user's shutdown. */
  async #mark(
    { cause, exit, name, userShutdown }: VmVerdict,
    run: { identity: ProcessIdentity | null; startedAt: Date | null; startedAfter: Date | null },
    until: Date,
  ): Promise<void> {
    if (userShutdown !== true) return this.#state.unmark(name);
    const at = exit?.exitedAt ?? until;
    await this.#state.mark({ event: 'shutdown', name, ...run, at, cause, host: hostId() });
  }

  #enter(record: VmRecord): Entry {
    const entry = this.#entries.get(record.name) ?? { record, writing: Promise.resolve() };
    entry.record = record;
    this.#entries.set(record.name, entry);
    return entry;
  }

  /** Writes what it is by then, when the writes before are done. */
  #write(entry: Entry): Promise<void> {
    const written = entry.writing.then(() => this.#state.write(entry.record));
    entry.writing = written.catch(() => undefined); // the caller gets it
    return written;
  }

  /** What cannot be read is as good as forgotten. */
  async #read(name: string): Promise<VmRecord | null> {
    try {
      return await readVmRecord(this.#state.path, name);
    } catch (error) {
      this.#warn(error as Error, name);
      return null;
    }
  }
}

/** What fits into a record, however much a machine has said. */
function cut(verdict: VmVerdict): VmVerdict {
  const evidence = verdict.evidence.slice(-MOST_EVIDENCE).map((fact) => ({
    ...fact,
    text: fact.text.slice(0, MOST_TEXT),
  }));
  return { ...verdict, evidence };
}
