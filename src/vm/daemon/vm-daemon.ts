import { EventEmitter } from 'node:events';
import { join } from 'node:path';

import { emitSafely } from '../../common/emit-safely.js';
import { checkOptionNames, invalidOption } from '../../common/options.js';
import { ExitwatchError } from '../../common/errors.js';
import type { SourceName } from '../../events/exit-event.js';
import type { RecorderOptions } from '../../monitor/memory-options.js';
import { IntentLog } from '../../process/intent-log.js';
import { VmDirectory } from '../directory/vm-directory.js';
import type { KnownStart, VmStart } from '../directory/vm-start.js';
import { VmMonitor } from '../monitor/vm-monitor.js';
import type { ExitOf } from '../monitor/vm-watch.js';

import { EndDelivery } from './end-delivery.js';
import { StateDirectory } from './state-directory.js';
import { intentLogPath } from './state-file.js';
import type { StoredVmEnd, VmEnd, VmRecord } from './vm-record.js';
import { VmRecords } from './vm-records.js';

/** Options of a {@link VmDaemon}. */
export interface VmDaemonOptions {
  /**
   * Where virtual machines have their files: `NAME.qmp` (a QMP socket for us alone), `NAME.pid`,
   * `NAME.events` (see `eventLogArguments()`), `NAME.log` (see `logArguments()`). Either of the
   * first two makes a machine known. The directory may be absent, and come and go.
   */
  controlDir: string;
  /** Where the daemon keeps its records; created if it is missing. One daemon at a time. */
  stateDir: string;
  /** Called for each end; see {@link VmDaemonEvents}. A rejection becomes a warning. */
  hook?: (end: VmEnd) => Promise<void>;
  /** As for an `ExitMonitor`. */
  source?: 'auto' | SourceName;
  /** As for an `ExitMonitor`. */
  trace?: 'auto' | 'on' | 'off';
  /** As for an `ExitMonitor`: what records how machines end while no daemon is running. */
  recorder?: RecorderOptions;
  /** Who knows how a process ended that nobody saw end. @internal */
  exitOf?: ExitOf;
}

/** The events of a {@link VmDaemon}. */
export interface VmDaemonEvents {
  /** A start was found. */
  found: [VmStart];
  /** It has ended, which is on the disk. Repeated after a restart if the hook had not finished. */
  stopped: [VmEnd];
  /** Something does not work; the rest continues. `null`: it concerns no machine in particular. */
  warning: [error: Error, name: string | null];
  /** The control directory has appeared, or is gone. */
  presence: [isThere: boolean];
  /** Nothing can be watched, or recorded, any more. */
  error: [Error];
}

/** Where the watches are, in the state directory. */
const WATCHES = 'watches';

const KEYS = ['controlDir', 'stateDir', 'hook', 'source', 'trace', 'recorder', 'exitOf'];

/**
 * Watches the virtual machines of a directory, and remembers why they ended: durably, and once
 * each. A record belongs to a process, so neither a restart nor a race with a machine's manager
 * changes the answer.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
export class VmDaemon extends EventEmitter<VmDaemonEvents> implements AsyncDisposable {
  readonly #options: VmDaemonOptions;
  readonly #delivery: EndDelivery;
  #state: StateDirectory | undefined;
  #records: VmRecords | undefined;
  #monitor: VmMonitor | undefined;
  #directory: VmDirectory | undefined;
  #starting: Promise<void> | undefined;
  #isClosed = false;
  /** Ends that are about to be delivered. */
  readonly #looks = new Set<Promise<void>>();

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(options: VmDaemonOptions) {
    super();
    checkOptionNames(options, KEYS);
    for (const key of ['controlDir', 'stateDir'] as const) {
      if (typeof options[key] !== 'string' || options[key] === '') {
        throw invalidOption(`${key} must be a path`);
      }
    }
    const { source = 'auto', trace = 'auto', recorder = {} } = options;
    void new VmMonitor({ source, trace }, { recorder }).close(); // throws if these are wrong
    this.#options = options;
    this.#delivery = new EndDelivery(options.hook, {
      isSuperseded: (end) => this.#records?.isSuperseded(end) === true,
      delivered: async (end) => {
        await this.#records?.delivered(end, () => this.#state === undefined);
      },
      warning: (error, name) => {
        this.#warn(error, name);
      },
    });
  }

  /** How many virtual machines are under watch. */
  get watched(): number {
    return this.#directory?.watched ?? 0;
  }

  /**
   * Resolves when all running machines are under watch, and all that ended meanwhile are reported.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR`, and
   * as `VmMonitor.start()` does.
   */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const { controlDir, stateDir, source = 'auto', trace = 'auto', recorder = {} } = this.#options;
    const { exitOf } = this.#options;
    const state = await StateDirectory.open(stateDir);
    this.#state = state;
    try {
      this.#checkOpen();
      const intentsSince = await this.#makeIntentLog(state);
      this.#monitor = new VmMonitor(
        { intentLog: intentLogPath(state.path), source, trace },
        {
          ...{ stateDir: join(state.path, WATCHES), recorder, intentsSince },
          ...(exitOf === undefined ? {} : { exitOf }),
        },
      );
      this.#monitor.on('warning', (error, name) => {
        emitSafely(() => this.emit('warning', error, name));
      });
      await this.#monitor.start();
      this.#checkOpen();
      const known = await this.#recall(state);
      this.#checkOpen();
      const records = new VmRecords(state, (error, name) => {
        this.#warn(error, name);
      });
      this.#records = records;
      this.#directory = this.#openDirectory(controlDir, this.#monitor, state, records);
      const undelivered = known.records.flatMap((record) => records.restore(record));
      const opened = this.#directory.open([...known.records.map(asKnown), ...known.forgotten]);
      // Deliver now what was not delivered before: before any later end of the same machine.
      for (const end of undelivered) this.#deliver({ ...end, isRepeated: true });
      await opened;
      this.#checkOpen();
      this.#monitor.forgetRestored();
    } catch (error) {
      this.#isClosed = true;
      await this.#delivery.close();
      await this.#release();
      throw error;
    }
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the daemon is closed');
  }

  /** Stops watching; the machines keep running. What is known by then is on the disk. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#looks);
    const isDelivered = this.#delivery.close();
    // This ends what is under way there.
    await this.#directory?.close();
    await this.#starting?.catch(() => undefined);
    await isDelivered;
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

  /** Resolves with the time since when a missing log is a lost one. */
  async #makeIntentLog(state: StateDirectory): Promise<Date> {
    const log = new IntentLog(intentLogPath(state.path));
    try {
      await log.create();
      return await state.markIntents();
    } catch (error) {
      this.#warn(error as Error, null);
      return new Date();
    } finally {
      await log.close();
    }
  }

  /** What is on the disk. A record that cannot be read counts as forgotten. */
  async #recall(state: StateDirectory): Promise<{ records: VmRecord[]; forgotten: KnownStart[] }> {
    const forgotten: KnownStart[] = [];
    const records = await state.records((error, name) => {
      // The record can be read later, so it is not forgotten.
      if (isShortage(error)) throw error;
      this.#warn(error, name);
      forgotten.push(asForgotten(name));
    });
    return { records, forgotten };
  }

  #openDirectory(
    path: string,
    monitor: VmMonitor,
    state: StateDirectory,
    records: VmRecords,
  ): VmDirectory {
    return new VmDirectory(path, monitor, state.since, {
      found: async (start) => {
        await records.found(start);
        emitSafely(() => this.emit('found', start));
      },
      logged: (start) => records.logged(start),
      ended: async (start, stop, accounted) => {
        const end = await records.ended(start, stop, accounted);
        if (stop.exit !== null) monitor.commit(stop.exit);
        this.#deliver(end);
      },
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

  /** For an end that is on the disk. */
  #deliver(stored: StoredVmEnd): void {
    const look = this.#lookAndDeliver(stored).finally(() => this.#looks.delete(look));
    this.#looks.add(look);
  }

  /** Looks first whether the machine was started again since. */
  async #lookAndDeliver(stored: StoredVmEnd): Promise<void> {
    const { name } = stored.stop;
    const isThere = this.#isClosed ? null : await this.#directory?.hasLaterStart(name);
    const isSuperseded = this.#records?.isSuperseded(stored) === true || (isThere ?? null);
    const end = { ...stored, isSuperseded };
    emitSafely(() => this.emit('stopped', end));
    this.#delivery.add(end);
  }

  #warn(error: Error, name: string | null): void {
    emitSafely(() => this.emit('warning', error, name));
  }
}

function asKnown(record: VmRecord): KnownStart {
  const { name, identity, uid, eventLog, command = null, state, judgedUntil, foundAt } = record;
  const start = { name, identity, uid, eventLog, command };
  return { ...start, isOver: state === 'stopped', judgedUntil, foundAt };
}

/** The record is lost: make sure that nothing from before is delivered again. */
function asForgotten(name: string): KnownStart {
  const now = new Date();
  const start = { name, identity: null, uid: null, eventLog: null, command: null };
  return { ...start, isOver: true, judgedUntil: now, foundAt: now };
}

/** No descriptor, or no memory, is left. */
function isShortage(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM';
}
