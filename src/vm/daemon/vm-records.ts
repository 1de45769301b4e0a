import { ExitwatchError } from '../../common/errors.js';
import { startOf, type ProcessIdentity } from '../../identity/process-identity.js';
import type { Accounted, VmStart } from '../directory/vm-start.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { EndGroups } from './end-groups.js';
import { hostId } from './host-id.js';
import type { StateDirectory } from './state-directory.js';
import { readVmRecord, type StoredVmEnd, type VmRecord } from './vm-record.js';

/** Limits for the evidence of one end. */
const MOST_EVIDENCE = 100;
const MOST_TEXT = 1000;

/** Ends of one machine that may wait for the hook. */
const MOST_UNDELIVERED = 10;

/** One virtual machine with something left to do. */
interface Entry {
  record: VmRecord;
  /** One write after the other. */
  writing: Promise<void>;
}

/** Keeps one record on the disk for each virtual machine, and updates it as things happen. */
export class VmRecords {
  readonly #state: StateDirectory;
  readonly #warn: (error: Error, name: string) => void;
  readonly #entries = new Map<string, Entry>();
  readonly #groups = new EndGroups();

  constructor(state: StateDirectory, warn: (error: Error, name: string) => void) {
    this.#state = state;
    this.#warn = warn;
  }

  /** Restores a record from before. Returns its ends that have yet to be delivered. */
  restore(record: VmRecord): StoredVmEnd[] {
    if (record.state === 'running' || record.undelivered.length > 0) this.#enter(record);
    return record.undelivered;
  }

  /**
   * Durable when it resolves, unless the process has exited already: its verdict is written later.
   */
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
    // The mark is of an earlier start, and says nothing about this one.
    await this.#state.unmark(name);
    await this.#write(entry);
  }

  /** Its event log has appeared. */
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
  ): Promise<StoredVmEnd> {
    const stop = cut(verdict);
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new Error(`${name} ended before it was found`);
    const id = identity?.id ?? `${name}-unseen-${until.getTime()}`;
    const end = { id, identity, stop, group: this.#groups.of(id, stop), isRepeated: false };
    const { record } = entry;
    const startedAfter = record.judgedUntil;
    record.state = 'stopped';
    record.lastStop = stop;
    record.lastStopped = identity;
    record.judgedUntil = new Date(Math.max(until.getTime(), record.judgedUntil?.getTime() ?? 0));
    this.#queue(record, end);
    const startedAt = identity === null ? firstWordAt : startOf(identity);
    // In this order: what a crash in between leaves is judged and written once more.
    await this.#mark(stop, { identity, startedAt, startedAfter }, until);
    await this.#write(entry);
    return end;
  }

  /** Whether a later start of the machine than that of this undelivered end is on record. */
  isSuperseded({ id, stop: { name } }: StoredVmEnd): boolean {
    const record = this.#entries.get(name)?.record;
    return record?.state !== 'stopped' || record.undelivered.at(-1)?.id !== id;
  }

  /** Notes that an end was delivered, and need not be again; on the disk unless `isClosed`. */
  async delivered({ id, stop: { name } }: StoredVmEnd, isClosed: () => boolean): Promise<void> {
    const entry = this.#entries.get(name);
    // Closed meanwhile: the next daemon delivers it again, so no later write may leave it out.
    if (entry === undefined || isClosed()) return;
    const { record } = entry;
    record.undelivered = record.undelivered.filter((each) => each.id !== id);
    try {
      await this.#write(entry);
    } catch (error) {
      this.#warn(error as Error, name);
    }
    const isOver = entry.record.state === 'stopped' && entry.record.undelivered.length === 0;
    if (isOver && this.#entries.get(name) === entry) this.#entries.delete(name);
  }

  #queue(record: VmRecord, end: StoredVmEnd): void {
    record.undelivered = [...record.undelivered, end];
    if (record.undelivered.length <= MOST_UNDELIVERED) return;
    record.undelivered.shift();
    const detail = `more than ${MOST_UNDELIVERED} ends wait for the hook; after a restart, the oldest ones are not delivered again`;
    this.#warn(new ExitwatchError('ERR_EXITWATCH_HOOK', detail), record.name);
  }

  /** Keeps the mark only if the last end was the user's shutdown. */
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

  /** Writes the record as it is when the writes before are done. */
  #write(entry: Entry): Promise<void> {
    const written = entry.writing.then(() => this.#state.write(entry.record));
    entry.writing = written.catch(() => undefined); // the caller gets the error
    return written;
  }

  /** A record that cannot be read counts as forgotten. */
  async #read(name: string): Promise<VmRecord | null> {
    try {
      return await readVmRecord(this.#state.path, name);
    } catch (error) {
      this.#warn(error as Error, name);
      return null;
    }
  }
}

/** Limits a verdict to what fits into a record, however much a machine has reported. */
function cut(verdict: VmVerdict): VmVerdict {
  const evidence = verdict.evidence.slice(-MOST_EVIDENCE).map((fact) => ({
    ...fact,
    text: fact.text.slice(0, MOST_TEXT),
  }));
  return { ...verdict, evidence };
}
