import { resolve } from 'node:path';

import { ExitwatchError } from '../../common/errors.js';
import { isSameProcess, type ProcessIdentity } from '../../identity/process-identity.js';

import { readControlDirectory, SUFFIXES, type ControlFiles } from './control-files.js';
import { DirectoryWatch } from './directory-watch.js';
import { Turns } from '../../common/semaphore.js';
import type { VmMonitor } from '../monitor/vm-monitor.js';
import { VmSlot, type SlotContext } from './tracked-vm.js';
import type { KnownStart, VmDirectoryListener } from './vm-start.js';

/** Of a directory in which much happens. */
const BETWEEN_SCANS_MS = 50;

/** In an hour. */
const MOST_WARNINGS = 1000;
const HOUR_MS = 3_600_000;

/** Ends that are remembered, so that another name does not have them told again. */
const MOST_ENDED = 10_000;

/** Names that are looked at at once. */
const MOST_LOOKING = 16;

const TOO_MANY = new ExitwatchError(
  'ERR_EXITWATCH_CONTROL_DIR',
  'more is wrong than is told; for an hour nothing more of that is',
);

/**
 * The virtual machines of a control directory: whichever appear in it are watched, once each, until they
 * end, whatever becomes of the directory meanwhile. Those that have come and gone between two looks are told
 * by their event logs.
 */
export class VmDirectory {
  readonly path: string;
  readonly #listener: VmDirectoryListener;
  readonly #context: SlotContext;
  readonly #slots = new Map<string, VmSlot>();
  readonly #told = new Set<string>();
  readonly #ended = new Set<string>();
  #toldSince = performance.now();
  #watch: DirectoryWatch | undefined;
  #isThere: boolean | undefined;
  #scanning: Promise<void> | undefined;
  #looks: Promise<void>[] = [];
  #isStale = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #scannedAt = -Infinity;

  /** `since`: nothing from before that is told. */
  constructor(path: string, monitor: VmMonitor, since: Date, listener: VmDirectoryListener) {
    this.path = resolve(path);
    this.#listener = listener;
    const noted: VmDirectoryListener = {
      recall: (name) => listener.recall(name),
      found: (start) => listener.found(start),
      logged: (start) => listener.logged(start),
      warning: (error, name) => {
        listener.warning(error, name);
      },
      presence: (isThere) => {
        listener.presence(isThere);
      },
      failed: (error) => {
        listener.failed(error);
      },
      ended: async (start, stop, until) => {
        this.#note(start.identity);
        await listener.ended(start, stop, until);
      },
    };
    this.#context = {
      ...{ path: this.path, since, monitor, listener: noted },
      namesakeOf: (identity, slot) => {
        const isSame = (each: VmSlot) =>
          each !== slot && each.watched != null && isSameProcess(each.watched, identity);
        return [...this.#slots.values()].find(isSame)?.name;
      },
      wasTold: ({ id }) => this.#ended.has(id),
      looks: new Turns(MOST_LOOKING),
      warn: (error, name) => {
        this.#warn(error, name);
      },
    };
  }

  /** Watches what was running before, too. Resolves when all that is there is under watch. */
  async open(known: readonly KnownStart[]): Promise<void> {
    const vms = await this.#read();
    const running = known.filter(({ isOver }) => !isOver);
    await Promise.all(
      running.map((start) => this.#slotOf(start.name).resume(start, vms.get(start.name) ?? null)),
    );
    if (this.#isClosed) return;
    this.#watch = new DirectoryWatch(this.path, {
      changed: (written) => {
        // Whoever is watched reads them himself.
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

  /** How many are under watch. */
  get watched(): number {
    return [...this.#slots.values()].filter(({ watched }) => watched !== null).length;
  }

  /** Leaves all of them alone. Resolves when all that is known was told. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch?.close();
    clearTimeout(this.#timer);
    await this.#scanning;
    await Promise.all([...this.#slots.values()].map((slot) => slot.close()));
  }

  #scanSoon(): void {
    if (this.#isClosed || this.#timer !== undefined) return;
    const waitMs = Math.max(0, BETWEEN_SCANS_MS - (performance.now() - this.#scannedAt));
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#scan();
    }, waitMs);
  }

  /** Whose end was told. */
  #note(identity: ProcessIdentity | null): void {
    if (identity === null) return;
    this.#ended.add(identity.id);
    const [oldest] = this.#ended;
    if (this.#ended.size > MOST_ENDED && oldest !== undefined) this.#ended.delete(oldest);
  }

  /** One at a time; whoever comes meanwhile has the next one. */
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
      for (const [name, slot] of this.#slots) {
        if (!vms.has(name)) void slot.setFiles(null);
        if (slot.isEmpty) this.#slots.delete(name);
      }
      // Whoever is slow does not keep the others from being found.
      this.#looks = [...vms.values()].map((files) => this.#slotOf(files.name).setFiles(files));
    }
  }

  /** What is there; nothing, where it cannot be read. */
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

  #slotOf(name: string): VmSlot {
    const slot = this.#slots.get(name) ?? new VmSlot(name, this.#context);
    this.#slots.set(name, slot);
    return slot;
  }

  /** Each thing once an hour. */
  #warn(error: Error, name: string | null): void {
    if (performance.now() - this.#toldSince > HOUR_MS) {
      this.#toldSince = performance.now();
      this.#told.clear();
    }
    const key = `${name ?? ''}/${error.message}`;
    if (this.#isClosed || this.#told.has(key) || this.#told.size > MOST_WARNINGS) return;
    this.#told.add(key);
    const isOneTooMany = this.#told.size > MOST_WARNINGS;
    this.#listener.warning(isOneTooMany ? TOO_MANY : error, isOneTooMany ? null : name);
  }
}
