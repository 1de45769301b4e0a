import { ExitwatchError } from '../../common/errors.js';
import { isAlive } from '../../process/liveness.js';
import { isSameProcess, type ProcessIdentity } from '../../identity/process-identity.js';
import { wordsOf, type Words } from '../evidence/vm-evidence.js';
import type { VmOptions } from '../monitor/vm-options.js';
import type { VmWatch } from '../monitor/vm-watch.js';
import { readQemuCommand } from '../qemu/qemu-command.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { accountedUntil, withLeftovers } from './accounting.js';
import type { ControlFiles } from './control-files.js';
import { ControlPaths } from './control-paths.js';
import { idOf } from './file-stamps.js';
import { FileTrust } from './file-trust.js';
import { isOld, laterStart } from './later-start.js';
import type { TrackingContext } from './tracking-context.js';
import { judgeUnseenEnd, unseenEndsOf, unseenRunsOf, type UnseenEnd } from './unseen-ends.js';
import { ownerOf, type VmOwner } from './vm-owner.js';
import type { KnownStart, VmStart } from './vm-start.js';

/** When to look again at files without a known owner: less and less often. */
const SOON_MS = 50;
const LATER_MS = 30_000;

/** After this many looks (1.5 s), a process that was about to own them does. */
const SETTLED_TRIES = 5;

type RunningStart = VmStart & { identity: ProcessIdentity };

/** One name of a control directory: which process has it, one start after the other. */
export class TrackedVm {
  readonly name: string;
  readonly #context: TrackingContext;
  readonly #paths: ControlPaths;
  #files: ControlFiles | null = null;
  /** The watch of its last start, until that has ended. */
  #watch: VmWatch | null = null;
  /** That start, once announced, until its event log appears. */
  #withoutLog: RunningStart | null = null;
  /** One task after the other. */
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

  /** Nothing is known about it, and nothing is going on. */
  get isEmpty(): boolean {
    return this.#files === null && this.#watch === null && this.#pending === 0;
  }

  /** The process under watch. */
  get watched(): ProcessIdentity | null {
    return this.#watch?.identity ?? null;
  }

  /** Sets the files that exist now; `null`: none. Resolves when they have been looked at. */
  async setFiles(files: ControlFiles | null): Promise<void> {
    if (this.#files?.signature === files?.signature) return this.#work;
    this.#files = files;
    this.#tries = 0;
    clearTimeout(this.#timer);
    if (files !== null) await this.#look();
  }

  /** Continues with a start that was found before and has no verdict yet. */
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

  /** Whether a later start than its last one that was reported is there; `null`: unknown. */
  async hasLaterStart(): Promise<boolean | null> {
    let isThere: boolean | null = null;
    await this.#enqueue(async () => {
      const trust = await this.#trustOf(this.#context.known(this.name));
      isThere = await this.#context.looks.run(() => laterStart(this.name, this.#context, trust));
    });
    return isThere;
  }

  /** Stops watching. Resolves when all that is known was reported. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#watch?.close();
    // What ends now is followed by a look.
    let work;
    do {
      work = this.#work;
      await work;
    } while (work !== this.#work);
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

  /** Finds out who owns the files, unless a process is under watch. */
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
        // No descriptor was free, or a disk failed: a later look may succeed.
        this.#warn(error as Error);
        // What was not read has yet to be: the files are not settled.
        this.#tries = Math.min(this.#tries, SETTLED_TRIES - 1);
        this.#lookLater();
      }
    });
  }

  /** The files belong to no living process: one may be about to own them. */
  #lookLater(): void {
    if (this.#isClosed || this.#files === null) return;
    // Without a pidfile and a socket, files have no owner; but either may be about to appear.
    const isOwnable = this.#files.pidfile !== null || this.#files.qmp !== null;
    if (!isOwnable && this.#tries > SETTLED_TRIES) return;
    clearTimeout(this.#timer);
    const delayMs = Math.min(SOON_MS * 2 ** this.#tries++, LATER_MS);
    this.#timer = setTimeout(() => void this.#look(), delayMs).unref();
  }

  /** Resolves with whether a process is under watch now. */
  async #identify(files: ControlFiles): Promise<boolean> {
    const known = this.#context.known(this.name);
    const trust = await this.#trustOf(known);
    const after = known?.judgedUntil ?? this.#context.since;
    // In this order: if nobody owns the files after the log was read, all runs in it are over.
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

  /** Reports a run that came and went unseen. */
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
      const detail = `process ${identity.pid} is already watched as ${JSON.stringify(other)}`;
      this.#warn(new ExitwatchError('ERR_EXITWATCH_CONTROL_DIR', detail));
      return false;
    }
    const isDead = isAlive(identity) === 'dead';
    if (isDead && (await isOld(identity, files, known, this.#context))) return false;
    const options = isDead
      ? await this.#paths.watchOptionsOfDead(identity, trust)
      : this.#paths.watchOptions(identity, files);
    if (known?.judgedUntil != null) options.eventsAfter = known.judgedUntil;
    const eventLog = await idOf(this.#paths.of('eventLog'));
    const command = isDead ? null : readQemuCommand(identity.pid);
    const start: VmStart = { name: this.name, identity, uid, eventLog, command };
    return this.#watchStart(start, options, () => this.#context.listener.found(start));
  }

  #trustOf(known: KnownStart | null): Promise<FileTrust> {
    return FileTrust.of(this.#context.path, known?.uid ?? null, (error) => {
      this.#warn(error);
    });
  }

  /** Watches first, and then announces. */
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

  /** QEMU opens its event log after its pidfile and its sockets: a start may be found before it. */
  async #noteLog(): Promise<void> {
    const start = this.#withoutLog;
    if (start === null) return;
    const eventLog = await idOf(this.#paths.of('eventLog'));
    // In this order: this process lives after the file was seen. Later, it may be the next one's.
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
      // If there is a next start, the files that exist by now are its own.
      const until = endedBefore === null ? await withLeftovers(seen, stop.exit, this.#files) : seen;
      await this.#context.listener.ended(start, stop, { firstWordAt: words.firstAt, until });
      this.#watch = null;
      this.#withoutLog = null;
      this.#tries = 0;
    });
    // It may have been started again while this process was about to exit.
    await this.#look();
  }

  #warn(error: Error): void {
    this.#context.warn(error, this.name);
  }
}
