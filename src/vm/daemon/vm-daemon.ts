import { EventEmitter } from 'node:events';

import { ExitwatchError } from '../../errors.js';
import type { SourceName } from '../../exit-event.js';
import { startOf } from '../../process-identity.js';

import { emitSafely } from '../../common/emit-safely.js';
import { EndGroups } from './end-groups.js';
import { Turns } from '../../common/semaphore.js';
import { VmDirectory } from '../directory/vm-directory.js';
import { VmMonitor } from '../monitor/vm-monitor.js';
import { hostId, intentLogPath, readVmRecord, type VmEnd, type VmRecord } from './vm-record.js';
import type { KnownStart, VmStart } from '../directory/vm-start.js';
import { VmState } from './state-directory.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

/** Options of a {@link VmDaemon}. */
export interface VmDaemonOptions {
  /**
   * Where virtual machines have their files: `NAME.qmp` (a QMP socket for us alone), `NAME.pid`,
   * `NAME.events` (see `eventLogArguments()`), `NAME.log` (see `logArguments()`). One of the first two
   * makes it known. It may be absent, and come and go.
   */
  controlDir: string;
  /** Where it remembers, durably; made where it is missing. One daemon at a time. */
  stateDir: string;
  /** Told of each end; see {@link VmDaemonEvents}. What it rejects with becomes a warning. */
  hook?: (end: VmEnd) => Promise<void>;
  /** As for an `ExitMonitor`. */
  source?: 'auto' | SourceName;
  /** As for an `ExitMonitor`. */
  trace?: 'auto' | 'on' | 'off';
}

/** The events of a {@link VmDaemon}. */
export interface VmDaemonEvents {
  /** A start was found. */
  found: [VmStart];
  /** It has ended, and that is on the disk. Once more after a restart that came before the hook was done. */
  stopped: [VmEnd];
  /** Something is of no use; the rest goes on. `null`: it is about none in particular. */
  warning: [error: Error, name: string | null];
  /** The control directory is there, or not any more. */
  presence: [isThere: boolean];
  /** Nothing can be watched, or written down, any more. */
  error: [Error];
}

const KEYS = ['controlDir', 'stateDir', 'hook', 'source', 'trace'];

/** Of an end. */
const MOST_EVIDENCE = 100;
const MOST_TEXT = 1000;

/** Ends of one machine that its hook has yet to be told of. */
const MOST_UNTOLD = 10;

/** Hooks that run at once. */
const MOST_HOOKS = 4;

/** One virtual machine of which there is something to do. */
interface Entry {
  record: VmRecord;
  /** One thing after the other. */
  telling: Promise<void>;
  writing: Promise<void>;
}

/**
 * Watches the virtual machines of a directory, and remembers why they ended: durably, once each, keyed by
 * the process, so that neither a restart nor a race with their manager changes the answer.
 */
export class VmDaemon extends EventEmitter<VmDaemonEvents> implements AsyncDisposable {
  readonly #options: VmDaemonOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #groups = new EndGroups();
  readonly #hooks = new Turns(MOST_HOOKS);
  #state: VmState | undefined;
  #monitor: VmMonitor | undefined;
  #directory: VmDirectory | undefined;
  #starting: Promise<void> | undefined;
  #isClosed = false;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(options: VmDaemonOptions) {
    super();
    const stranger = Object.keys(options).find((key) => !KEYS.includes(key));
    if (stranger !== undefined) throw invalid(`there is no option ${JSON.stringify(stranger)}`);
    for (const key of ['controlDir', 'stateDir'] as const) {
      if (typeof options[key] !== 'string' || options[key] === '') {
        throw invalid(`${key} is a path`);
      }
    }
    const { source = 'auto', trace = 'auto' } = options;
    void new VmMonitor({ source, trace }).close(); // it says what is wrong with these
    this.#options = options;
  }

  /** How many virtual machines are under watch. */
  get watched(): number {
    return this.#directory?.watched ?? 0;
  }

  /**
   * Resolves when all that runs is under watch, and what has ended meanwhile was told.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR`, and as
   * `VmMonitor.start()` does.
   */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const { controlDir, stateDir, source = 'auto', trace = 'auto' } = this.#options;
    const state = await VmState.open(stateDir);
    this.#state = state;
    try {
      this.#checkOpen();
      this.#monitor = new VmMonitor({ intentLog: intentLogPath(state.path), source, trace });
      this.#monitor.on('warning', (error, name) => {
        emitSafely(() => this.emit('warning', error, name));
      });
      await this.#monitor.start();
      this.#checkOpen();
      const records = await state.records((error, name) => {
        this.#warn(error, name);
      });
      this.#directory = this.#openDirectory(controlDir, this.#monitor, state);
      this.#checkOpen();
      for (const record of records) this.#remember(record);
      await this.#directory.open(records.map(asKnown));
      this.#checkOpen();
    } catch (error) {
      this.#isClosed = true;
      await this.#release();
      throw error;
    }
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the daemon is closed');
  }

  /** Leaves all of them alone. What is known by then is on the disk. */
  async close(): Promise<void> {
    this.#isClosed = true;
    // What is under way there ends at once.
    await this.#directory?.close();
    await this.#starting?.catch(() => undefined);
    await this.#release();
  }

  async #release(): Promise<void> {
    await this.#directory?.close();
    await this.#monitor?.close();
    await this.#state?.close();
    this.#state = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #openDirectory(path: string, monitor: VmMonitor, state: VmState): VmDirectory {
    return new VmDirectory(path, monitor, state.since, {
      recall: async (name) => {
        try {
          const record = this.#entries.get(name)?.record ?? (await readVmRecord(state.path, name));
          return record === null ? null : asKnown(record);
        } catch (error) {
          if (isShortage(error)) throw error;
          this.#warn(error as Error, name);
          return asForgotten(name);
        }
      },
      found: (start) => this.#onFound(start, state),
      logged: (start) => this.#onLogged(start, state),
      ended: (start, stop, until) => this.#onEnded(start, stop, until, state),
      warning: (error, name) => {
        this.#warn(error, name);
      },
      presence: (isThere) => {
        emitSafely(() => this.emit('presence', isThere));
      },
      failed: (error) => {
        if (!this.#isClosed) emitSafely(() => this.emit('error', error));
      },
    });
  }

  /** What cannot be read is as good as forgotten. */
  #read(state: VmState, name: string): Promise<VmRecord | null> {
    return readVmRecord(state.path, name).catch((error: unknown) => {
      this.#warn(error as Error, name);
      return null;
    });
  }

  /** From before: what was not told then is told now. */
  #remember(record: VmRecord): void {
    if (record.state === 'stopped' && record.untold.length === 0) return;
    const entry = this.#enter(record);
    for (const end of record.untold) this.#announce(entry, { ...end, isRepeated: true });
  }

  async #onFound(start: VmStart, state: VmState): Promise<void> {
    const { name, identity, uid, eventLog, command } = start;
    const known = this.#entries.get(name)?.record ?? (await this.#read(state, name));
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
      untold: known?.untold ?? [],
      host: hostId(),
    };
    const entry = this.#enter(record);
    // One that has ended already is written down with its verdict.
    if (identity !== null) {
      // Of an earlier start: it says nothing of this one.
      await state.unmark(name);
      await this.#write(entry, state);
    }
    emitSafely(() => this.emit('found', start));
  }

  async #onLogged({ name, eventLog }: VmStart, state: VmState): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    entry.record.eventLog = eventLog;
    await this.#write(entry, state);
  }

  #enter(record: VmRecord): Entry {
    const entry = this.#entries.get(record.name) ?? {
      ...{ record, telling: Promise.resolve(), writing: Promise.resolve() },
    };
    entry.record = record;
    this.#entries.set(record.name, entry);
    return entry;
  }

  /** What it is by then, when it is this one's turn. */
  #write(entry: Entry, state: VmState): Promise<void> {
    const written = entry.writing.then(() => state.write(entry.record));
    entry.writing = written.catch(() => undefined); // whoever asked for it is told
    return written;
  }

  async #onEnded(start: VmStart, all: VmVerdict, until: Date, state: VmState): Promise<void> {
    const { name, identity } = start;
    const stop = cut(all);
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
    record.untold = [...record.untold, end];
    if (record.untold.length > MOST_UNTOLD) {
      record.untold.shift();
      const detail = `more than ${MOST_UNTOLD} ends wait for the hook: of those before, it is not told again after a restart`;
      this.#warn(new ExitwatchError('ERR_EXITWATCH_HOOK', detail), name);
    }
    // In this order: what a crash in between leaves is judged, and written, once more.
    if (stop.userShutdown === true) {
      const { cause } = stop;
      const at = stop.exit?.exitedAt ?? until;
      const startedAt = identity === null ? firstWordOf(stop) : startOf(identity);
      const run = { identity, startedAt, startedAfter };
      const mark = { name, ...run, at, cause, host: hostId() };
      await state.mark({ event: 'shutdown', ...mark });
    } else {
      await state.unmark(name);
    }
    await this.#write(entry, state);
    this.#announce(entry, end);
  }

  /** Tells of an end, and then remembers that it was told. */
  #announce(entry: Entry, end: VmEnd): void {
    emitSafely(() => this.emit('stopped', end));
    entry.telling = entry.telling.then(() => this.#tell(entry, end));
  }

  async #tell(entry: Entry, end: VmEnd): Promise<void> {
    const { name } = entry.record;
    await this.#runHook(end).catch((error: unknown) => {
      this.#warn(error as Error, name);
    });
    const { record } = entry;
    record.untold = record.untold.filter(({ id }) => id !== end.id);
    // Whoever closes meanwhile has it told again.
    if (this.#isClosed || this.#state === undefined) return;
    try {
      await this.#write(entry, this.#state);
    } catch (error) {
      this.#warn(error as Error, name);
    }
    const isOver = entry.record.state === 'stopped' && entry.record.untold.length === 0;
    if (isOver && this.#entries.get(name) === entry) this.#entries.delete(name);
  }

  async #runHook(end: VmEnd): Promise<void> {
    const { hook } = this.#options;
    if (hook === undefined) return;
    await this.#hooks.take(async () => {
      if (!this.#isClosed) await hook(end);
    });
  }

  #warn(error: Error, name: string | null): void {
    emitSafely(() => this.emit('warning', error, name));
  }
}

/** When it began, of one that nobody has seen. */
function firstWordOf({ evidence }: VmVerdict): Date | null {
  return evidence.find(({ source }) => source === 'event')?.at ?? null;
}

function asKnown(record: VmRecord): KnownStart {
  const { name, identity, uid, eventLog, command = null, state, judgedUntil, foundAt } = record;
  const start = { name, identity, uid, eventLog, command };
  return { ...start, isOver: state === 'stopped', judgedUntil, foundAt };
}

/** What was known can be known no more: at least nothing of that is told again. */
function asForgotten(name: string): KnownStart {
  const now = new Date();
  const start = { name, identity: null, uid: null, eventLog: null, command: null };
  return { ...start, isOver: true, judgedUntil: now, foundAt: now };
}

/** What fits into a record, whatever a machine has said in its life. */
function cut(stop: VmVerdict): VmVerdict {
  const evidence = stop.evidence.slice(-MOST_EVIDENCE).map((fact) => ({
    ...fact,
    text: fact.text.slice(0, MOST_TEXT),
  }));
  return { ...stop, evidence };
}

/** It may be there later. */
function isShortage(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM';
}

function invalid(message: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_INVALID_OPTION', message);
}
