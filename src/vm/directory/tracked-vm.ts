import { lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { ExitwatchError } from '../../errors.js';
import { isAlive } from '../../process/liveness.js';
import { isLeft } from '../../process/pidfile.js';
import { isSameProcess, startOf, type ProcessIdentity } from '../../process-identity.js';

import { claimantOf, type Claimant } from './vm-owner.js';
import { SUFFIXES, type ControlFiles } from './control-files.js';
import { GrowingFile } from '../evidence/growing-file.js';
import { readQemuCommand } from '../qemu/qemu-command.js';
import type { Turns } from '../../common/semaphore.js';
import { hasEnded, judgeUnseen, readRuns, type UnseenRun } from '../qemu/unseen-run.js';
import type { VmMonitor } from '../monitor/vm-monitor.js';
import type { VmOptions } from '../monitor/vm-options.js';
import type { KnownStart, VmDirectoryListener, VmStart } from './vm-start.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';
import type { VmWatch } from '../monitor/vm-watch.js';

/** What a {@link VmSlot} has of its directory. */
export interface SlotContext {
  path: string;
  /** What was before that is not told. */
  since: Date;
  monitor: VmMonitor;
  listener: VmDirectoryListener;
  /** Under which other name this process is watched. */
  namesakeOf(identity: ProcessIdentity, slot: VmSlot): string | undefined;
  /** Its end was told under whatever name. */
  wasTold(identity: ProcessIdentity): boolean;
  /** Some look at once; the others wait: each takes descriptors. */
  looks: Turns;
  /** Each thing once. */
  warn(error: Error, name: string): void;
}

/** When files are looked at again of which it cannot be told whose they are: ever more seldom. */
const SOON_MS = 50;
const LATER_MS = 30_000;

/** By then whoever was about to claim them has: after 1.5 s. */
const SETTLED_TRIES = 5;

type RunningStart = VmStart & { identity: ProcessIdentity };

/** Of a log; what it says of its end comes at its end. */
const MOST_LINES = 100;

/** Its sockets and its event log are there by then, if it has any. */
const STARTED_MS = 10_000;

/** One name of a control directory: who has it, one start after the other. */
export class VmSlot {
  readonly name: string;
  readonly #context: SlotContext;
  #files: ControlFiles | null = null;
  /** Its last start, while that is under watch. */
  #watch: VmWatch | null = null;
  /** The same, announced, while it is not known which file its event log is. */
  #withoutLog: RunningStart | null = null;
  /** One thing after the other. */
  #work: Promise<void> = Promise.resolve();
  #pending = 0;
  #isLookDue = false;
  #tries = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(name: string, context: SlotContext) {
    this.name = name;
    this.#context = context;
  }

  /** Nothing is known of it, and nothing is going on. */
  get isEmpty(): boolean {
    return this.#files === null && this.#watch === null && this.#pending === 0;
  }

  /** Who is under watch. */
  get watched(): ProcessIdentity | null {
    return this.#watch?.identity ?? null;
  }

  /** What there is of it now; `null`: nothing. Resolves when that was looked at. */
  async setFiles(files: ControlFiles | null): Promise<void> {
    if (this.#files?.signature === files?.signature) return this.#work;
    this.#files = files;
    this.#tries = 0;
    clearTimeout(this.#timer);
    if (files !== null) await this.#look();
  }

  /** Goes on with a start that was found before, and has no verdict yet. */
  async resume(start: KnownStart, files: ControlFiles | null): Promise<void> {
    const { identity, judgedUntil, foundAt } = start;
    if (identity === null) return;
    const known = {
      ...(judgedUntil === null ? {} : { eventsAfter: judgedUntil }),
      seenAt: foundAt,
      ...(start.command === null ? {} : { command: start.command }),
    };
    const announce = () => Promise.resolve();
    if (isAlive(identity) !== 'dead') {
      const options = { ...this.#optionsOf(identity, files), ...known };
      this.#watchStart(start, options, announce);
      return;
    }
    await this.#enqueue(async () => {
      const claimant = files === null ? null : await claimantOf(files);
      const options = {
        ...(await this.#optionsOfDead(identity, await this.#ownersOf(start))),
        ...known,
      };
      if (claimant?.state === 'found' && !isSameProcess(claimant.identity, identity)) {
        // What is there by now is the next one's.
        const startedAt = startOf(claimant.identity);
        if (startedAt !== null) options.endedBefore = startedAt;
        delete options.qmp;
        delete options.pidfile;
        delete options.log;
      }
      const log = this.#pathOf('eventLog');
      const isReplaced =
        start.eventLog === null
          ? ((await bornAtOf(log))?.getTime() ?? 0) > foundAt.getTime() + STARTED_MS
          : (await idOf(log)) !== start.eventLog;
      if (isReplaced) delete options.eventLog;
      this.#watchStart(start, options, announce, isReplaced ? foundAt : undefined);
    });
  }

  /** Leaves it alone. Resolves when all that is known was told. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#watch?.close();
    await this.#work;
  }

  #enqueue(task: () => Promise<void>): Promise<void> {
    this.#pending++;
    this.#work = this.#work.then(task).then(
      () => {
        this.#pending--;
      },
      (error: unknown) => {
        this.#pending--;
        this.#context.listener.failed(error as Error);
      },
    );
    return this.#work;
  }

  /** Finds out whose the files are, as long as nobody is being watched. */
  async #look(): Promise<void> {
    if (this.#isLookDue) return this.#work;
    this.#isLookDue = true;
    await this.#enqueue(async () => {
      this.#isLookDue = false;
      if (this.#files === null || this.#isClosed) return;
      if (this.#watch !== null) {
        await this.#noteLog();
        return;
      }
      const files = this.#files;
      try {
        const isWatched = await this.#context.looks.take(() => this.#identify(files));
        if (!isWatched) this.#lookLater();
      } catch (error) {
        // A descriptor is lacking, or a disk: it may be there later.
        this.#context.warn(error as Error, this.name);
        // What was not read has yet to be.
        this.#tries = Math.min(this.#tries, SETTLED_TRIES - 1);
        this.#lookLater();
      }
    });
  }

  /** Files that are not claimed by anybody who lives: they may be about to. */
  #lookLater(): void {
    if (this.#isClosed || this.#files === null) return;
    // Without either, nobody can claim them; but they may be about to come.
    const isClaimable = this.#files.pidfile !== null || this.#files.qmp !== null;
    if (!isClaimable && this.#tries > SETTLED_TRIES) return;
    clearTimeout(this.#timer);
    const delayMs = Math.min(SOON_MS * 2 ** this.#tries++, LATER_MS);
    this.#timer = setTimeout(() => void this.#look(), delayMs).unref();
  }

  /** Whether somebody is under watch now. */
  async #identify(files: ControlFiles): Promise<boolean> {
    const known = await this.#context.listener.recall(this.name);
    const owners = await this.#ownersOf(known);
    const after = known?.judgedUntil ?? this.#context.since;
    // In this order: whoever is found to have ended has said before what its log has by now.
    const isSettled = this.#tries > SETTLED_TRIES; // and nothing has changed since
    const lives = isSettled ? [] : await this.#livesOf(files, after, owners);
    const claimant = await claimantOf(files);
    const before = known?.identity ?? null;
    const isNew =
      claimant.state === 'found' && (before === null || !isSameProcess(claimant.identity, before));
    await this.#tellUnseen(files, lives, claimant, after, owners);
    if (claimant.state === 'unknown' && claimant.error !== null && this.#tries >= SETTLED_TRIES)
      this.#context.warn(claimant.error, this.name);
    return isNew && (await this.#adopt(claimant, files, known, owners));
  }

  async #livesOf(
    { eventLog }: ControlFiles,
    after: Date,
    owners: readonly number[],
  ): Promise<UnseenRun[]> {
    if (eventLog === null) return [];
    const { runs: lives, refusal } = await readRuns({ path: eventLog, trustedUids: owners, after });
    if (refusal !== null) this.#distrust(eventLog, refusal);
    return lives;
  }

  /** Those that have come and gone without having been seen. */
  async #tellUnseen(
    files: ControlFiles,
    lives: UnseenRun[],
    claimant: Claimant,
    after: Date,
    owners: readonly number[],
  ): Promise<void> {
    // Of an earlier one, what it has left says nothing.
    const hasLeft =
      claimant.state === 'ended' && claimant.madeAt > after && this.#tries >= SETTLED_TRIES;
    if (hasLeft && lives.length === 0) lives.push({ events: [], until: claimant.madeAt });
    const startedAt = claimant.state === 'found' ? startOf(claimant.identity) : null;
    // Whoever has ended may be about to be named.
    if (claimant.state !== 'found' && this.#tries < SETTLED_TRIES) return;
    for (const life of lives) {
      if (this.#isClosed) return;
      const isLast = life === lives.at(-1);
      const isOver =
        claimant.state === 'found'
          ? startedAt !== null && life.until < startedAt
          : !isLast || hasLeft || hasEnded(life);
      if (isOver) await this.#tell(files, life, isLast && claimant.state !== 'found', owners);
    }
  }

  async #tell(
    files: ControlFiles,
    life: UnseenRun,
    isLast: boolean,
    owners: readonly number[],
  ): Promise<void> {
    const { name } = this;
    const lines: string[] = [];
    if (isLast && files.log !== null) {
      const log = new GrowingFile(files.log, (line) => {
        lines.push(line);
        if (lines.length > MOST_LINES) lines.shift();
      });
      log.trustedUids = owners;
      await log.read();
      if (log.refusal !== null) this.#distrust(files.log, log.refusal);
    }
    const left = isLast
      ? { pidfile: isLeft(files.pidfile), socket: files.qmp !== null }
      : { pidfile: null, socket: null };
    const start: VmStart = { name, identity: null, uid: null, eventLog: null, command: null };
    await this.#context.listener.found(start);
    const stop = judgeUnseen(name, life, left, lines);
    const until = isLast ? await this.#withLeftovers(stop, life.until) : life.until;
    await this.#context.listener.ended(start, stop, until);
  }

  async #adopt(
    { identity, uid }: Claimant & { state: 'found' },
    files: ControlFiles,
    known: KnownStart | null,
    owners: readonly number[],
  ): Promise<boolean> {
    const other = this.#context.namesakeOf(identity, this);
    if (other !== undefined) {
      const detail = `process ${identity.pid} is watched as ${JSON.stringify(other)} already`;
      this.#warn('ERR_EXITWATCH_CONTROL_DIR', detail);
      return false;
    }
    const isDead = isAlive(identity) === 'dead';
    if (isDead && (await this.#isOld(identity, files, known))) return false;
    const options = isDead
      ? await this.#optionsOfDead(identity, owners)
      : this.#optionsOf(identity, files);
    if (known?.judgedUntil != null) options.eventsAfter = known.judgedUntil;
    const eventLog = await idOf(this.#pathOf('eventLog'));
    const command = isDead ? null : readQemuCommand(identity.pid);
    const start: VmStart = { name: this.name, identity, uid, eventLog, command };
    return this.#watchStart(start, options, () => this.#context.listener.found(start));
  }

  /** It was told before: under another name, by its event log alone, or to whoever came before us. */
  async #isOld(
    identity: ProcessIdentity,
    { pidfile }: ControlFiles,
    known: KnownStart | null,
  ): Promise<boolean> {
    if (this.#context.wasTold(identity)) return true;
    const startedAt = startOf(identity)?.getTime() ?? -Infinity;
    if (known?.judgedUntil != null && startedAt < known.judgedUntil.getTime()) return true;
    const madeAt = pidfile === null ? null : await madeAtOf(pidfile);
    return known === null && (madeAt?.getTime() ?? 0) < this.#context.since.getTime();
  }

  #optionsOf(identity: ProcessIdentity, files: ControlFiles | null): VmOptions {
    const { name } = this;
    const options: VmOptions = {
      ...{ name, identity, log: this.#pathOf('log') },
      ...{ eventLog: this.#pathOf('eventLog'), eventLogIsOptional: true },
    };
    if (files?.qmp !== null || isYoung(identity)) options.qmp = this.#pathOf('qmp');
    if (files?.pidfile !== null) options.pidfile = this.#pathOf('pidfile');
    return options;
  }

  /** Nobody can tell any more as whom it ran: who may have written its logs is for us to say. */
  async #optionsOfDead(identity: ProcessIdentity, owners: readonly number[]): Promise<VmOptions> {
    const { eventLog = '', log = '', ...options } = this.#optionsOf(identity, null);
    return {
      ...options,
      ...((await this.#isTrusted(eventLog, owners)) ? { eventLog } : {}),
      ...((await this.#isTrusted(log, owners)) ? { log } : {}),
    };
  }

  async #isTrusted(path: string, owners: readonly number[]): Promise<boolean> {
    const status = await stat(path).catch(() => null);
    if (status === null || owners.includes(status.uid)) return true;
    this.#distrust(path, `is user ${status.uid}'s`);
    return false;
  }

  #pathOf(kind: keyof typeof SUFFIXES): string {
    return join(this.#context.path, `${this.name}${SUFFIXES[kind]}`);
  }

  /** Whoever owns the directory can do anything in it. */
  async #ownersOf(known: KnownStart | null): Promise<number[]> {
    const directory = await stat(this.#context.path).catch(() => null);
    const owners = [0, process.geteuid?.() ?? 0, directory?.uid, known?.uid];
    return owners.filter((uid) => uid != null);
  }

  /** Under watch first, and then announced. */
  #watchStart(
    start: VmStart,
    options: VmOptions,
    announce: () => Promise<void>,
    judgedUntil?: Date,
  ): boolean {
    try {
      this.#watch = this.#context.monitor.watch(options);
    } catch (error) {
      this.#context.warn(error as Error, this.name);
      return false;
    }
    void this.#enqueue(async () => {
      await announce();
      const { identity, eventLog } = start;
      if (identity !== null && eventLog === null) this.#withoutLog = { ...start, identity };
      await this.#noteLog();
    });
    this.#watch.stopped.then(
      (stop) => {
        const otherwise = judgedUntil ?? options.endedBefore ?? new Date();
        void this.#onEnd(start, stop, otherwise, options.endedBefore ?? null);
      },
      (error: unknown) => {
        if (!this.#isClosed) this.#context.listener.failed(error as Error);
      },
    );
    return true;
  }

  /** QEMU opens its event log after its pidfile and its sockets, so that it may be found before. */
  async #noteLog(): Promise<void> {
    const start = this.#withoutLog;
    if (start === null) return;
    const eventLog = await idOf(this.#pathOf('eventLog'));
    // In this order: the file was there while this one lived. Later it may be the next one's.
    if (eventLog === null || isAlive(start.identity) !== 'alive') return;
    this.#withoutLog = null;
    void this.#watch?.catchUp();
    await this.#context.listener.logged({ ...start, eventLog });
  }

  async #onEnd(
    start: VmStart,
    stop: VmVerdict,
    otherwise: Date,
    endedBefore: Date | null,
  ): Promise<void> {
    await this.#enqueue(async () => {
      const seen = accountedFor(stop) ?? otherwise;
      // What is there by now is the next one's, if there is one.
      const until = endedBefore === null ? await this.#withLeftovers(stop, seen) : seen;
      await this.#context.listener.ended(start, stop, until);
      this.#watch = null;
      this.#withoutLog = null;
      this.#tries = 0;
    });
    // It may have been started again, while this one was about to end.
    await this.#look();
  }

  /** What one has left that nobody saw end is accounted for with it: it was made while it was there. */
  async #withLeftovers({ exit }: VmVerdict, until: Date): Promise<Date> {
    if (exit !== null && exit.how !== 'unknown') return until;
    const paths = [this.#files?.pidfile, this.#files?.qmp].filter((path) => path != null);
    const times = (await Promise.all(paths.map(madeAtOf))).map((at) => at?.getTime() ?? 0);
    return new Date(Math.max(until.getTime(), ...times));
  }

  #distrust(path: string, reason: string): void {
    const detail = `${JSON.stringify(path)} ${reason}: it is not believed`;
    this.#warn('ERR_EXITWATCH_UNTRUSTED_LOG', detail);
  }

  #warn(code: 'ERR_EXITWATCH_UNTRUSTED_LOG' | 'ERR_EXITWATCH_CONTROL_DIR', detail: string): void {
    this.#context.warn(new ExitwatchError(code, detail), this.name);
  }
}

/** When a file was made, or changed last; `null`: there is none. */
async function madeAtOf(path: string): Promise<Date | null> {
  const status = await lstat(path).catch(() => null);
  return status?.mtime ?? null;
}

/** When a file came to be; `null`: there is none, or nobody knows. */
async function bornAtOf(path: string): Promise<Date | null> {
  const status = await lstat(path).catch(() => null);
  return status === null || status.birthtimeMs === 0 ? null : status.birthtime;
}

/** Which file it is: an inode's number alone is soon another's. `null`: there is none. */
async function idOf(path: string): Promise<string | null> {
  const status = await lstat(path).catch(() => null);
  return status === null ? null : `${status.dev}:${status.ino}:${status.birthtimeMs}`;
}

function isYoung(identity: ProcessIdentity): boolean {
  const startedAt = startOf(identity);
  return startedAt === null || Date.now() - startedAt.getTime() < STARTED_MS;
}

/** The clock of an end that was seen is off by that, at most. */
const SEEN_MS = 1000;

/** Its last word, or its end; `null` where neither is known. */
function accountedFor({ evidence, exit }: VmVerdict): Date | null {
  const words = evidence.filter(({ source }) => source === 'event');
  const times = words.map(({ at }) => at?.getTime() ?? 0);
  const wasSeen = exit !== null && exit.how !== 'unknown' && exit.uncertaintyMs < SEEN_MS;
  const last = Math.max(wasSeen ? exit.exitedAt.getTime() : 0, ...times);
  return last === 0 ? null : new Date(last);
}
