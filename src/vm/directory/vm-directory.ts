import { resolve } from 'node:path';

import { ExitwatchError } from '../../common/errors.js';
import { isSameProcess, type ProcessIdentity } from '../../identity/process-identity.js';

import { readControlDirectory, SUFFIXES, type ControlFiles } from './control-files.js';
import { DirectoryWatch } from './directory-watch.js';
import { Semaphore } from '../../common/semaphore.js';
import type { VmMonitor } from '../monitor/vm-monitor.js';
import { TrackedVm } from './tracked-vm.js';
import type { TrackingContext } from './tracking-context.js';
import { KnownStarts } from './known-starts.js';
import type { KnownStart, VmDirectoryListener } from './vm-start.js';

/** The shortest time between two scans of a directory that changes often. */
const BETWEEN_SCANS_MS = 50;

/** In an hour. */
const MOST_WARNINGS = 1000;
const HOUR_MS = 3_600_000;

/** Ends to remember, so that another name does not deliver them again. */
const MOST_DELIVERED = 10_000;

/** Names that are looked at concurrently. */
const MOST_LOOKING = 16;

const TOO_MANY = new ExitwatchError(
  'ERR_EXITWATCH_CONTROL_DIR',
  'too many warnings; suppressing further ones for an hour',
);

/**
 * The virtual machines of a control directory. Each machine that appears in it is watched once,
 * until it ends, whatever becomes of the directory meanwhile. Machines that came and went between
 * two looks are found in their event logs.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
export class VmDirectory {
  readonly path: string;
  readonly #listener: VmDirectoryListener;
  readonly #context: TrackingContext;
  readonly #tracked = new Map<string, TrackedVm>();
  readonly #warned = new Set<string>();
  /** Ids of the processes whose ends were delivered. */
  readonly #delivered = new Set<string>();
  #known = new KnownStarts();
  #warnedSince = performance.now();
  #watch: DirectoryWatch | undefined;
  #isThere: boolean | undefined;
  #scanning: Promise<void> | undefined;
  #looks: Promise<void>[] = [];
  #isStale = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #scannedAt = -Infinity;

  /** `since`: ends from before this time are not reported. */
  constructor(path: string, monitor: VmMonitor, since: Date, listener: VmDirectoryListener) {
    this.path = resolve(path);
    this.#listener = listener;
    this.#context = {
      ...{ path: this.path, since, monitor, listener: this.#remembering(listener) },
      known: (name) => this.#known.of(name),
      namesakeOf: (identity, name) => {
        const isSame = (each: TrackedVm) =>
          each.name !== name && each.watched != null && isSameProcess(each.watched, identity);
        return [...this.#tracked.values()].find(isSame)?.name;
      },
      wasDelivered: ({ id }) => this.#delivered.has(id),
      looks: new Semaphore(MOST_LOOKING),
      warn: (error, name) => {
        this.#warn(error, name);
      },
    };
  }

  /**
   * Continues from what is already known, and watches what was running. Resolves when all that
   * exists is under watch.
   */
  async open(known: readonly KnownStart[]): Promise<void> {
    this.#known = new KnownStarts(known);
    const vms = await this.#read();
    const running = known.filter(({ isOver }) => !isOver);
    await Promise.all(
      running.map((start) => this.#track(start.name).resume(start, vms.get(start.name) ?? null)),
    );
    if (this.#isClosed) return;
    this.#watch = new DirectoryWatch(this.path, {
      changed: (written) => {
        // The watches read their logs themselves.
        const isLog = [SUFFIXES.eventLog, SUFFIXES.log].some((each) => written?.endsWith(each));
        if (!isLog) this.#scanSoon();
      },
      warning: (error) => {
        this.#warn(error, null);
      },
    });
    await this.#scan();
    await Promise.all(this.#looks);
  }

  /** How many machines are under watch. */
  get watched(): number {
    return [...this.#tracked.values()].filter(({ watched }) => watched !== null).length;
  }

  /**
   * Looks whether a machine has a later start than its last one that was reported; `null`: unknown.
   *
   * @internal
   */
  hasLaterStart(name: string): Promise<boolean | null> {
    return this.#track(name).hasLaterStart();
  }

  /** Stops watching; the machines keep running. Resolves when all that is known was reported. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch?.close();
    clearTimeout(this.#timer);
    await this.#scanning;
    await Promise.all([...this.#tracked.values()].map((vm) => vm.close()));
  }

  #scanSoon(): void {
    if (this.#isClosed || this.#timer !== undefined) return;
    const waitMs = Math.max(0, BETWEEN_SCANS_MS - (performance.now() - this.#scannedAt));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#scan();
    }, waitMs);
  }

  /** Reports to `listener`, and remembers what was reported. */
  #remembering(listener: VmDirectoryListener): VmDirectoryListener {
    return {
      found: async (start) => {
        this.#known.found(start);
        await listener.found(start);
      },
      logged: async (start) => {
        this.#known.logged(start);
        await listener.logged(start);
      },
      ended: async (start, stop, accounted) => {
        this.#known.ended(start, accounted.until);
        this.#noteDelivery(start.identity);
        await listener.ended(start, stop, accounted);
      },
      warning: (error, name) => {
        listener.warning(error, name);
      },
      presence: (isThere) => {
        listener.presence(isThere);
      },
      failed: (error) => {
        listener.failed(error);
      },
    };
  }

  #noteDelivery(identity: ProcessIdentity | null): void {
    if (identity === null) return;
    this.#delivered.add(identity.id);
    const [oldest] = this.#delivered;
    if (this.#delivered.size > MOST_DELIVERED && oldest !== undefined) {
      this.#delivered.delete(oldest);
    }
  }

  /** One scan at a time; changes during a scan cause another one. */
  #scan(): Promise<void> {
    this.#isStale = true;
    this.#scanning ??= this.#scanAll().finally(() => {
      this.#scanning = undefined;
    });
    return this.#scanning;
  }

  async #scanAll(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      this.#scannedAt = performance.now();
      const vms = await this.#read();
      for (const [name, vm] of this.#tracked) {
        if (!vms.has(name)) void vm.setFiles(null);
        if (vm.isEmpty) this.#tracked.delete(name);
      }
      // A slow one must not keep the others from being found.
      this.#looks = [...vms.values()].map((files) => this.#track(files.name).setFiles(files));
    }
  }

  /** The files that exist; none if the directory cannot be read. */
  async #read(): Promise<Map<string, ControlFiles>> {
    try {
      const { vms, refused, isThere } = await readControlDirectory(this.path);
      if (isThere !== this.#isThere && !this.#isClosed) this.#listener.presence(isThere);
      this.#isThere = isThere;
      for (const { path, reason } of refused) {
        const detail = `${JSON.stringify(path)} ${reason}`;
        this.#warn(new ExitwatchError('ERR_EXITWATCH_CONTROL_DIR', detail), null);
      }
      return vms;
    } catch (error) {
      this.#warn(error as Error, null);
      return new Map();
    }
  }

  #track(name: string): TrackedVm {
    const vm = this.#tracked.get(name) ?? new TrackedVm(name, this.#context);
    this.#tracked.set(name, vm);
    return vm;
  }

  /** Reports each warning at most once an hour. */
  #warn(error: Error, name: string | null): void {
    if (performance.now() - this.#warnedSince > HOUR_MS) {
      this.#warnedSince = performance.now();
      this.#warned.clear();
    }
    const key = `${name ?? ''}/${error.message}`;
    if (this.#isClosed || this.#warned.has(key) || this.#warned.size > MOST_WARNINGS) return;
    this.#warned.add(key);
    const isOneTooMany = this.#warned.size > MOST_WARNINGS;
    this.#listener.warning(isOneTooMany ? TOO_MANY : error, isOneTooMany ? null : name);
  }
}
