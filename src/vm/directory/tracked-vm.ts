import { ExitwatchError } from '../../common/errors.js';
import { isAlive } from '../../process/liveness.js';
import { isSameProcess, startOf, type ProcessIdentity } from '../../identity/process-identity.js';
import { wordsOf, type Words } from '../evidence/vm-evidence.js';
import type { VmOptions } from '../monitor/vm-options.js';
import type { VmWatch } from '../monitor/vm-watch.js';
import { readQemuCommand } from '../qemu/qemu-command.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { accountedUntil, withLeftovers } from './accounting.js';
import type { ControlFiles } from './control-files.js';
import { ControlPaths } from './control-paths.js';
import { idOf, madeAtOf } from './file-stamps.js';
import { FileTrust } from './file-trust.js';
import type { TrackingContext } from './tracking-context.js';
import { judgeUnseenEnd, unseenEndsOf, unseenRunsOf, type UnseenEnd } from './unseen-ends.js';
import { ownerOf, type VmOwner } from './vm-owner.js';
import type { KnownStart, VmStart } from './vm-start.js';

/** When files are looked at again of which it is not known whose they are: ever more seldom. */
const SOON_MS = 50;
const LATER_MS = 30_000;

/** By then the process that was about to own them does: after 1.5 s. */
const SETTLED_TRIES = 5;

type RunningStart = VmStart & { identity: ProcessIdentity };

/** One name of a control directory: which process has it, one start after the other. */
export class TrackedVm {
  readonly name: string;
  readonly #context: TrackingContext;
  readonly #paths: ControlPaths;
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

  constructor(name: string, context: TrackingContext) {
    this.name = name;
    this.#context = context;
    this.#paths = new ControlPaths(context.path, name);
  }

  /** Nothing is known of it, and nothing is going on. */
  get isEmpty(): boolean {
    return this.#files === null && this.#watch === null && this.#pending === 0;
  }

  /** Which process is under watch. */
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
    const { identity, foundAt } = start;
    if (identity === null) return;
    const announce = () => Promise.resolve();
    if (isAlive(identity) !== 'dead') {
      this.#watchStart(start, this.#paths.resumeOptions(start, identity, files), announce);
      return;
    }
    await this.#enqueue(async () => {
      const owner = files === null ? null : await ownerOf(files);
      const trust = await this.#trustOf(start);
      const dead = await this.#paths.resumeOptionsOfDead(start, identity, owner, trust);
      this.#watchStart(start, dead.options, announce, dead.isLogReplaced ? foundAt : undefined);
    });
  }

  /** Leaves it alone. Resolves when all that is known was reported. */
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
        const isWatched = await this.#context.looks.run(() => this.#identify(files));
        if (!isWatched) this.#lookLater();
      } catch (error) {
        // A descriptor is lacking, or a disk: it may be there later.
        this.#warn(error as Error);
        // What was not read has yet to be.
        this.#tries = Math.min(this.#tries, SETTLED_TRIES - 1);
        this.#lookLater();
      }
    });
  }

  /** Files that belong to nobody who lives: somebody may be about to own them. */
  #lookLater(): void {
    if (this.#isClosed || this.#files === null) return;
    // Without either, nobody can own them; but they may be about to come.
    const isOwnable = this.#files.pidfile !== null || this.#files.qmp !== null;
    if (!isOwnable && this.#tries > SETTLED_TRIES) return;
    clearTimeout(this.#timer);
    const delayMs = Math.min(SOON_MS * 2 ** this.#tries++, LATER_MS);
    this.#timer = setTimeout(() => void this.#look(), delayMs).unref();
  }

  /** Whether a process is under watch now. */
  async #identify(files: ControlFiles): Promise<boolean> {
    const known = this.#context.known(this.name);
    const trust = await this.#trustOf(known);
    const after = known?.judgedUntil ?? this.#context.since;
    // In this order: one that is found to have ended has said before what its log has by now.
    const isSettled = this.#tries > SETTLED_TRIES; // and nothing has changed since
    const runs = isSettled ? [] : await unseenRunsOf(files, after, trust);
    const owner = await ownerOf(files);
    const before = known?.identity ?? null;
    const isNew =
      owner.state === 'found' && (before === null || !isSameProcess(owner.identity, before));
    const hasWaited = this.#tries >= SETTLED_TRIES;
    for (const end of unseenEndsOf(runs, owner, after, hasWaited)) {
      if (this.#isClosed) break;
      await this.#reportUnseen(end, files, trust);
    }
    if (owner.state === 'unknown' && owner.error !== null && hasWaited) this.#warn(owner.error);
    return isNew && (await this.#adopt(owner, files, known, trust));
  }

  /** One that has come and gone without having been seen. */
  async #reportUnseen(end: UnseenEnd, files: ControlFiles, trust: FileTrust): Promise<void> {
    const { listener } = this.#context;
    const { events, until } = end.run;
    const start: VmStart = {
      ...{ name: this.name, identity: null, uid: null, eventLog: null, command: null },
    };
    await listener.found(start);
    const stop = await judgeUnseenEnd(this.name, end, files, trust);
    const { firstAt: firstWordAt } = wordsOf(events);
    await listener.ended(start, stop, {
      firstWordAt,
      until: end.hasLeftFiles ? await withLeftovers(until, null, this.#files) : until,
    });
  }

  async #adopt(
    { identity, uid }: VmOwner & { state: 'found' },
    files: ControlFiles,
    known: KnownStart | null,
    trust: FileTrust,
  ): Promise<boolean> {
    const other = this.#context.namesakeOf(identity, this.name);
    if (other !== undefined) {
      const detail = `process ${identity.pid} is watched as ${JSON.stringify(other)} already`;
      this.#warn(new ExitwatchError('ERR_EXITWATCH_CONTROL_DIR', detail));
      return false;
    }
    const isDead = isAlive(identity) === 'dead';
    if (isDead && (await this.#isOld(identity, files, known))) return false;
    const options = isDead
      ? await this.#paths.watchOptionsOfDead(identity, trust)
      : this.#paths.watchOptions(identity, files);
    if (known?.judgedUntil != null) options.eventsAfter = known.judgedUntil;
    const eventLog = await idOf(this.#paths.of('eventLog'));
    const command = isDead ? null : readQemuCommand(identity.pid);
    const start: VmStart = { name: this.name, identity, uid, eventLog, command };
    return this.#watchStart(start, options, () => this.#context.listener.found(start));
  }

  /** It was reported before: under another name, by its event log alone, or to a daemon before us. */
  async #isOld(
    identity: ProcessIdentity,
    { pidfile }: ControlFiles,
    known: KnownStart | null,
  ): Promise<boolean> {
    if (this.#context.wasDelivered(identity)) return true;
    const startedAt = startOf(identity)?.getTime() ?? -Infinity;
    if (known?.judgedUntil != null && startedAt < known.judgedUntil.getTime()) return true;
    const madeAt = pidfile === null ? null : await madeAtOf(pidfile);
    return known === null && (madeAt?.getTime() ?? 0) < this.#context.since.getTime();
  }

  #trustOf(known: KnownStart | null): Promise<FileTrust> {
    return FileTrust.of(this.#context.path, known?.uid ?? null, (error) => {
      this.#warn(error);
    });
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
      this.#warn(error as Error);
      return false;
    }
    void this.#enqueue(async () => {
      await announce();
      const { identity, eventLog } = start;
      if (identity !== null && eventLog === null) this.#withoutLog = { ...start, identity };
      await this.#noteLog();
    });
    this.#watch.judged.then(
      ({ verdict, words }) => {
        const otherwise = judgedUntil ?? options.endedBefore ?? new Date();
        void this.#onEnd(start, verdict, words, otherwise, options.endedBefore ?? null);
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
    const eventLog = await idOf(this.#paths.of('eventLog'));
    // In this order: the file was there while this one lived. Later it may be the next one's.
    if (eventLog === null || isAlive(start.identity) !== 'alive') return;
    this.#withoutLog = null;
    void this.#watch?.catchUp();
    await this.#context.listener.logged({ ...start, eventLog });
  }

  async #onEnd(
    start: VmStart,
    stop: VmVerdict,
    words: Words,
    otherwise: Date,
    endedBefore: Date | null,
  ): Promise<void> {
    await this.#enqueue(async () => {
      const seen = accountedUntil(stop.exit, words) ?? otherwise;
      // What is there by now is the next one's, if there is one.
      const until = endedBefore === null ? await withLeftovers(seen, stop.exit, this.#files) : seen;
      await this.#context.listener.ended(start, stop, { firstWordAt: words.firstAt, until });
      this.#watch = null;
      this.#withoutLog = null;
      this.#tries = 0;
    });
    // It may have been started again, while this one was about to end.
    await this.#look();
  }

  #warn(error: Error): void {
    this.#context.warn(error, this.name);
  }
}
