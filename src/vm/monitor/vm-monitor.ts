import { EventEmitter } from 'node:events';

import { checkOptionNames } from '../../common/options.js';
import { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent, SourceName } from '../../events/exit-event.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';
import { ExitMonitor } from '../../monitor/exit-monitor.js';
import type { ExitWatch } from '../../monitor/exit-watch.js';
import type { ExitMonitorOptions } from '../../monitor/options.js';
import type { Ready } from '../../monitor/ready.js';
import { IntentHistory } from '../../process/intent-history.js';
import { IntentLog, type Intent, type IntentRecorder } from '../../process/intent-log.js';

import { emitSafely } from '../../common/emit-safely.js';
import { IntentMemory } from './intent-memory.js';
import { checkVmOptions, type VmOptions } from './vm-options.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';
import { type ExitOf, VmWatch } from './vm-watch.js';

/** Options of a {@link VmMonitor}. */
export interface VmMonitorOptions {
  /**
   * Where {@link VmWatch.stop} writes what it is about to do, and where intents are read from: so
   * that our own requests are recognized even if the process that made them has died since.
   * Default: only this monitor knows its own.
   */
  intentLog?: string | IntentLog;
  /** As for an `ExitMonitor`. */
  source?: 'auto' | SourceName;
  /** As for an `ExitMonitor`. */
  trace?: 'auto' | 'on' | 'off';
}

/** The events of a {@link VmMonitor}. */
export interface VmMonitorEvents {
  /** It is under watch, and its hypervisor answers, if that can be asked. */
  running: [name: string];
  /** It has ended, and this is why. */
  stopped: [VmVerdict];
  /** A witness does not work; the others continue. */
  warning: [error: Error, name: string];
}

/**
 * Watches virtual machines, no matter what started them, and reports why they end.
 *
 * @see [Why a virtual machine ended](../../../docs/virtual-machines.md)
 */
export class VmMonitor extends EventEmitter<VmMonitorEvents> implements AsyncDisposable {
  readonly #monitor: ExitMonitor;
  readonly #recorder: IntentRecorder;
  readonly #ownLog: IntentLog | undefined;
  readonly #history: IntentHistory | undefined;
  readonly #readIntents: (since: Date) => Promise<readonly Intent[]>;
  readonly #exitOf: ExitOf;
  readonly #watches = new Set<VmWatch>();
  #starting: Promise<Ready> | undefined;
  /** Of earlier monitors. */
  #restored: readonly ExitWatch[] = [];
  #isClosed = false;

  /**
   * The second one: what a daemon's monitor remembers its watches with, when its intent log was
   * made, and who knows more of ends.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`
   */
  constructor(
    options: VmMonitorOptions = {},
    {
      exitOf,
      intentsSince = null,
      ...memory
    }: Pick<ExitMonitorOptions, 'stateDir' | 'recorder'> & {
      intentsSince?: Date | null;
      exitOf?: (identity: ProcessIdentity) => Promise<ExitEvent | null>;
    } = {},
  ) {
    super();
    checkOptionNames(options, ['intentLog', 'source', 'trace']);
    const { intentLog, source = 'auto', trace = 'auto' } = options;
    this.#monitor = new ExitMonitor({
      ...{ scope: 'watched', source, trace, ...memory },
      autoCommit: memory.stateDir === undefined,
    });
    this.#exitOf = exitOf ?? (() => Promise.resolve(null));
    // An error makes its watches reject, and with them `stopped`.
    this.#monitor.on('error', () => undefined);
    if (intentLog === undefined) {
      const memory = new IntentMemory();
      this.#recorder = memory;
      this.#readIntents = () => Promise.resolve(memory.intents);
    } else {
      this.#ownLog = typeof intentLog === 'string' ? new IntentLog(intentLog) : undefined;
      const log = this.#ownLog ?? (intentLog as IntentLog);
      this.#recorder = log;
      const history = new IntentHistory(log.path, intentsSince);
      this.#history = history;
      this.#readIntents = (since) => history.read(since);
    }
  }

  /**
   * Starts the monitor, unless the first watch has. Resolves once the kernel has proved that it
   * reports exits, and signals if they can be traced. Earlier signals are not seen.
   *
   * Rejects as {@link ExitMonitor.start} does.
   */
  async start(): Promise<void> {
    this.#starting ??= this.#begin();
    const { restored } = await this.#starting;
    this.#restored = restored;
  }

  async #begin(): Promise<Ready> {
    const [ready] = await Promise.all([this.#monitor.start(), this.#history?.note()]);
    return ready;
  }

  /** The verdict of a process's exit is stored. @internal */
  commit(exit: ExitEvent): void {
    this.#monitor.commit(exit);
  }

  /** Forgets the watches of earlier monitors: those of now took up what they need. @internal */
  forgetRestored(): void {
    for (const watch of this.#restored) watch.close();
    this.#restored = [];
  }

  /**
   * Watches one virtual machine until it ends. For a pid or an identity, the watch is armed as that
   * of {@link ExitMonitor.watch} is; for a pidfile, as soon as that was read.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`, `ERR_EXITWATCH_CLOSED`, and what
   *   {@link ExitMonitor.watch} throws for a pid
   */
  watch(options: VmOptions): VmWatch {
    if (this.#isClosed) throw new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the monitor is closed');
    checkVmOptions(options);
    const watch = new VmWatch(options, {
      monitor: this.#monitor,
      recorder: this.#recorder,
      readIntents: this.#readIntents,
      exitOf: this.#exitOf,
      running: (name) => {
        emitSafely(() => this.emit('running', name));
      },
      warning: (error, name) => {
        emitSafely(() => this.emit('warning', error, name));
      },
      ended: (ended, stop) => {
        this.#watches.delete(ended);
        if (stop !== null) emitSafely(() => this.emit('stopped', stop));
      },
    });
    this.#watches.add(watch);
    this.start().catch(() => undefined); // the watches reject
    return watch;
  }

  /** Stops watching; the machines keep running. Watches that have not resolved reject. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const watch of this.#watches) watch.close();
    await this.#monitor.close();
    await this.#ownLog?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
