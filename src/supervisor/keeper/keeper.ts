// One idea: a keeper as its only client sees it: runs that begin and end, over one connection after
// another.
import { EventEmitter } from 'node:events';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { getSystemErrorMap } from 'node:util';

import { LATE, withDeadline } from '../../common/deadline.js';
import { emitSafely } from '../../common/emit-safely.js';
import { ExitwatchError } from '../../common/errors.js';
import { checkInteger, checkOptionNames, checkPath, invalidOption } from '../../common/options.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { signalNumber, type SignalName } from '../../events/wait-status.js';
import { StateFolder } from '../../memory/state-folder.js';
import { ExitMonitor } from '../../monitor/exit-monitor.js';
import type { ExitWatch } from '../../monitor/exit-watch.js';
import { removeStalePidfile, writePidfile } from '../../process/pidfile.js';

import { cgroupBase } from './cgroup-base.js';
import { type Answer, type KeeperConnection, keeperError } from './connection.js';
import { connectKeeper, keeperBinary } from './keeper-process.js';
import { type KeeperRun, runOf } from './keeper-run.js';
import type { Fields, Message } from './message.js';
import { rotateLog } from './rotate-log.js';
import { exitOf, joinExit } from './run-exit.js';
import { checkRunId, type RunOptions, toRequest } from './run-options.js';
import {
  checkSignalName,
  checkStopRunOptions,
  isOver,
  type RunMember,
  RunStop,
  type StoppedRun,
  type StopRunOptions,
} from './stop-run.js';

/**
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type KeeperOptions = {
  /** A folder that is this program's alone. Who opens it later finds the same processes. */
  stateDir: string;
  /**
   * A started monitor: it adds to each end who sent the signal, whether the OOM killer did it, and
   * the kernel's time.
   */
  monitor?: ExitMonitor;
};

/**
 * What {@link Keeper.open} found.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type KeeperReady = {
  /** The process of the keeper. */
  pid: number;
  /** The version of exitwatch that it comes from. */
  version: string;
  /** Runs whose keeper has died; this one is not their parent. */
  lost: KeeperRun[];
};

/** The events of a {@link Keeper}. */
export interface KeeperEvents {
  /** A command was executed. */
  started: [KeeperRun];
  /**
   * The process of a run has ended, with the status of waitpid(2). Comes again after a restart until
   * the run is forgotten, then with `isRepeated: true`.
   */
  ended: [ExitEvent, KeeperRun];
  /** Nothing of a run is left. Comes after `ended`, and alone if the run is of an earlier boot. */
  empty: [KeeperRun];
  /** It has sent something to its `NOTIFY_SOCKET`: lines as in sd_notify(3); untrusted. */
  notify: [KeeperRun, string];
  /** The keeper had died, and another one has taken its place; or it was upgraded. */
  restarted: [KeeperReady];
  /** There is no keeper any more, and none can be started. */
  error: [Error];
  close: [];
}

const SEEN_WITHIN_MS = 1000;
const RECONNECTS = 10;
/** The keeper may be upgraded, or die, again and again in the meantime. */
const LONGEST_REQUEST_MS = 10_000;
const FORGOTTEN_WITHIN_MS = 5000;
const FREEZE_MS = 10_000;
const WHILE_CONNECTED: Fields = [['whileConnected', '1']];

/**
 * The parent of processes that outlive this program: a small program of its own, one for each state
 * directory, which is started on demand. It starts what it is told to, and knows how each ended.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export class Keeper extends EventEmitter<KeeperEvents> {
  readonly #stateDir: string;
  readonly #monitor: ExitMonitor | null;
  readonly #runs = new Map<string, KeeperRun>();
  readonly #watches = new Map<string, ExitWatch>();
  readonly #stops = new Map<string, RunStop>();
  /** Who waits for another caller's start. */
  readonly #starting = new Map<string, ((run: KeeperRun) => void)[]>();
  /** Runs whose end was told, or is being joined with what the monitor saw. */
  readonly #ends = new Map<string, 'joining' | 'told'>();
  /** What relies on this keeper. */
  readonly #working = new Set<Promise<void>>();
  #folder: StateFolder | undefined;
  #connection: KeeperConnection | undefined;
  #connecting: Promise<KeeperReady> | undefined;
  #ready: KeeperReady | undefined;
  #cgroup: string | null | undefined;
  /** Older keepers do not; then we do. */
  #writesPidfiles = true;
  #isClosed = false;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(options: KeeperOptions) {
    super();
    const { stateDir, monitor } = checkOptionNames(options, ['stateDir', 'monitor']);
    const path = checkPath('stateDir', stateDir);
    if (path === undefined) throw invalidOption('stateDir is required');
    if (monitor !== undefined && !(monitor instanceof ExitMonitor)) {
      throw invalidOption('monitor must be an ExitMonitor');
    }
    this.#stateDir = path;
    this.#monitor = monitor ?? null;
  }

  /**
   * Connects to the keeper of the directory, or starts one. Runs of before that have ended are told
   * by `ended` soon after.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_IN_USE`, `…_STATE_DIR`, `…_NO_KEEPER`,
   * `…_KEEPER`, `…_CLOSED`.
   */
  async open(): Promise<KeeperReady> {
    if (this.#isClosed) throw closedError();
    if (this.#folder === undefined) {
      this.#folder = new StateFolder(this.#stateDir);
      try {
        this.#makeFolder();
      } catch (error) {
        const failure = this.#folder.error(error);
        this.#folder.close();
        this.#folder = undefined;
        throw failure;
      }
    }
    this.#connecting ??= this.#connect();
    try {
      return await this.#connecting;
    } catch (error) {
      this.#connecting = undefined;
      if (this.#ready === undefined) {
        this.#folder.close();
        this.#folder = undefined;
      }
      throw error;
    }
  }

  /** All runs that were not forgotten, the oldest first. */
  runs(): KeeperRun[] {
    return [...this.#runs.values()];
  }

  /** `null`: there is none of that id. */
  run(id: string): KeeperRun | null {
    return this.#runs.get(id) ?? null;
  }

  /**
   * Starts a run, and resolves when its command was executed. If a run of that id exists, resolves with
   * that instead: it is safe to call it again after a crash. A pidfile that cannot be written does not
   * keep it from starting: `readPidfile()` of `exitwatch/process` says what it has.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_INVALID_OPTION`; `…_START_FAILED` (see
   * `errno` and `step` in the message; the run is forgotten, so you may use the id again);
   * `…_KEEPER`, `…_CLOSED`.
   */
  async start(options: RunOptions): Promise<KeeperRun> {
    this.#cgroup ??= cgroupBase(this.#stateDir);
    const request = toRequest(options, this.#cgroup);
    await this.#connected();
    const { message } = await this.#request(
      this.#writesPidfiles ? request : request.filter(([key]) => key !== 'pidfile'),
    );
    // What it has told in the meantime is newer than the answer.
    this.#check(message, options.id);
    let run = this.#runs.get(options.id) ?? this.#take(message);
    if (run.state === 'starting') run = await this.#started(run.id);
    const { pidfile } = options;
    if (run.state !== 'failed') {
      if (pidfile !== undefined && !this.#writesPidfiles) await writeMissing(pidfile, run);
      return run;
    }
    if (pidfile !== undefined) await removeStalePidfile(pidfile).catch(() => undefined);
    await this.#forgetFailed(run.id);
    throw startError(options, run);
  }

  /**
   * The processes of a run that are alive, also those that it has left behind.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NO_RUN`, `…_KEEPER`, `…_CLOSED`.
   */
  async members(id: string): Promise<RunMember[]> {
    return membersIn((await this.#look(id)).all('member'));
  }

  /**
   * Sends a signal to the process of a run, or to all of it. Resolves with `false` if it is gone.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_INVALID_OPTION`, `…_NO_RUN`,
   * `…_NOT_PERMITTED`, `…_SYSTEM`, `…_KEEPER`, `…_CLOSED`.
   */
  signal(id: string, signal: SignalName, tree = false): Promise<boolean> {
    checkSignalName(signal);
    const number: [string, string] = ['signal', String(signalNumber(signal))];
    return this.#attempt('signal', id, tree ? [number, ['tree', '1']] : [number]);
  }

  /**
   * Stops a run: asks, waits, kills, and resolves when nothing of it is left, or that takes too long. A
   * second call joins the first, and may shorten its grace.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_INVALID_OPTION`, `…_NO_RUN`, `…_KEEPER`,
   * `…_CLOSED`.
   */
  async stop(id: string, options: StopRunOptions = {}): Promise<StoppedRun> {
    const checked = checkStopRunOptions(options);
    checkRunId(id);
    // Its start may not be answered yet.
    if (!this.#runs.has(id)) this.#take(await this.#look(id));
    const running = this.#stops.get(id);
    if (running !== undefined) {
      running.shorten(checked.signal === 'SIGKILL' ? 0 : checked.graceMs);
      return running.finished;
    }
    const stop = new RunStop(this.#stopHost, id, checked);
    this.#stops.set(id, stop);
    try {
      return await stop.finished;
    } finally {
      this.#stops.delete(id);
    }
  }

  /**
   * Stops all processes of a run where they are: by its cgroup, or with SIGSTOP. Resolves with `false`
   * if it is gone.
   */
  pause(id: string): Promise<boolean> {
    return this.#attempt('pause', id);
  }

  /** Lets them go on. */
  resume(id: string): Promise<boolean> {
    return this.#attempt('resume', id);
  }

  /**
   * Forgets a run that has ended. You have stored its end: it is not told again, and its id may be
   * used again.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_BUSY` while anything of it is alive,
   * `…_NO_RUN`, `…_KEEPER`, `…_CLOSED`.
   */
  async forget(id: string): Promise<void> {
    checkRunId(id);
    const wasThere = this.#runs.has(id);
    const { message } = await this.#request([
      ['op', 'forget'],
      ['run', id],
    ]);
    // It may have been forgotten when the connection was lost before the answer.
    if (!wasThere || message.text('error') !== 'no-run') this.#check(message, id);
    this.#drop(id);
  }

  /**
   * Resolves when the keeper has answered.
   *
   * Rejects with an {@link ExitwatchError}: `…_KEEPER`, `…_CLOSED`.
   */
  async ping(): Promise<void> {
    const { message } = await this.#request([['op', 'ping']]);
    // Older keepers answer that they do not know it.
    if (message.text('error') !== 'unsupported') this.#check(message, '');
  }

  /** What tried to become the command may take a moment to end, also under load. */
  async #forgetFailed(id: string): Promise<void> {
    const deadline = performance.now() + FORGOTTEN_WITHIN_MS;
    for (;;) {
      try {
        await this.forget(id);
        return;
      } catch (error) {
        const { code } = error as ExitwatchError;
        if (code === 'ERR_EXITWATCH_NO_RUN') return;
        if (code !== 'ERR_EXITWATCH_BUSY' || performance.now() > deadline) throw error;
        await sleep(2);
      }
    }
  }

  /**
   * Moves what a log file of a run has into `FILE.1`, while the run goes on; it is paused while the
   * last part is copied. Not for `logs.file`, which its log process rotates.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_BUSY` if it cannot be paused for 10
   * seconds, as a process that waits for a dead disk (then nothing was rotated), `…_NO_RUN`,
   * `…_KEEPER` (also if the keeper dies while the run is paused: then the log is left as it is),
   * `…_CLOSED`; and with the system's error if the file cannot be copied.
   *
   * @param keep how many rotated files are kept
   */
  async rotateLog(id: string, file: string, keep = 5): Promise<void> {
    checkRunId(id);
    checkInteger('keep', keep, 0, 1000);
    await rotateLog(file, keep, async (work) => {
      try {
        const connection = await this.#hold(id);
        if (this.#connection !== connection) throw keeperError('the keeper was lost');
        await this.#withoutAnother(work());
      } finally {
        await this.#attempt('resume', id, WHILE_CONNECTED);
      }
    });
  }

  /**
   * Has the keeper become another binary; default: the one of this package. It keeps its pid, its
   * processes and their statuses.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_SYSTEM` if that binary cannot take over;
   * then the old one goes on. `…_BUSY` while `rotateLog()` is under way; `…_KEEPER`, `…_CLOSED`.
   */
  async upgrade(binary: string = keeperBinary()): Promise<KeeperReady> {
    const connection = await this.#connected();
    let message;
    try {
      ({ message } = await connection.request([
        ['op', 'upgrade'],
        ['path', binary],
      ]));
    } catch {
      // It has dropped its clients, and is the new one now.
      this.#onLost(connection);
      await this.#connected();
      if (this.#ready !== undefined) return this.#ready;
      throw closedError();
    }
    throw this.#error(message, '');
  }

  /** Leaves everything running. A keeper without runs ends by itself. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const id of [...this.#watches.keys()]) this.#unwatch(id);
    const connection = this.#connection;
    if (connection !== undefined && this.#runs.size === 0) {
      await withDeadline(connection.request([['op', 'leave']]), SEEN_WITHIN_MS).catch(
        () => undefined,
      );
    }
    connection?.close();
    this.#folder?.close();
    process.nextTick(() => this.emit('close'));
  }

  // ---- the connection

  get #keeperFolder(): string {
    return join(this.#stateDir, 'keeper');
  }

  #makeFolder(): void {
    try {
      mkdirSync(this.#keeperFolder, { mode: 0o700 });
    } catch (error) {
      const isThere =
        (error as NodeJS.ErrnoException).code === 'EEXIST' &&
        statSync(this.#keeperFolder).isDirectory();
      if (!isThere) throw error;
    }
  }

  async #connect(): Promise<KeeperReady> {
    const { connection, hello } = await connectKeeper(this.#keeperFolder);
    connection.on('event', (message) => {
      this.#onEvent(message);
    });
    connection.once('close', () => {
      this.#onLost(connection);
    });
    // In this order: what happens while it lists is told as well.
    await connection.request([['op', 'watch']]);
    const { items } = await connection.request([['op', 'list']]);
    if (this.#isClosed) {
      connection.close();
      throw closedError();
    }
    this.#connection = connection;
    this.#writesPidfiles = hello.all('can').includes('pidfile');
    this.#takeList(items);
    this.#ready = {
      pid: hello.number('pid') ?? 0,
      version: hello.text('version') ?? '',
      lost: this.runs().filter(({ isLost, state }) => isLost && state === 'running'),
    };
    return this.#ready;
  }

  #onLost(connection: KeeperConnection): void {
    if (this.#connection !== connection || this.#isClosed) return;
    this.#connection = undefined;
    this.#connecting = this.#reconnect();
    this.#connecting.then(
      (ready) => {
        this.#tell(() => this.emit('restarted', ready));
      },
      (error: unknown) => {
        if (!this.#isClosed) process.nextTick(() => this.emit('error', error as Error));
      },
    );
  }

  /** The next keeper lets go on what this one has paused: it has to wait for this work. */
  async #withoutAnother(work: Promise<void>): Promise<void> {
    this.#working.add(work);
    try {
      await work;
    } finally {
      this.#working.delete(work);
    }
  }

  async #reconnect(): Promise<KeeperReady> {
    await Promise.allSettled(this.#working);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#connect();
      } catch (error) {
        if (attempt === RECONNECTS || this.#isClosed) throw error;
        await sleep(attempt * 20);
      }
    }
  }

  async #connected(): Promise<KeeperConnection> {
    if (this.#isClosed) throw closedError();
    if (this.#connection === undefined) await this.#connecting;
    if (this.#connection !== undefined) return this.#connection;
    throw keeperError('the keeper was not opened; call open() first');
  }

  /**
   * Asks again if the connection is lost: all requests but `signal` say what shall be, and not what
   * to do once more.
   */
  async #request(fields: Fields): Promise<Answer> {
    const deadline = performance.now() + LONGEST_REQUEST_MS;
    for (;;) {
      const connection = await this.#connected();
      try {
        return await connection.request(fields);
      } catch (error) {
        const isAgain = (fields[0]?.[1] ?? '') !== 'signal' && performance.now() < deadline;
        if (
          !isAgain ||
          !(error instanceof ExitwatchError) ||
          error.code !== 'ERR_EXITWATCH_KEEPER'
        ) {
          throw error;
        }
        this.#onLost(connection);
      }
    }
  }

  /** `false`: it is gone. */
  async #attempt(op: string, id: string, more: Fields = []): Promise<boolean> {
    checkRunId(id);
    const { message } = await this.#request([['op', op], ['run', id], ...more]);
    if (message.text('error') === 'gone') return false;
    this.#check(message, id);
    return true;
  }

  /**
   * Pauses a run for as long as we are connected, and waits until nothing of it can write: it is
   * frozen, or has ended in the meantime. Returns the connection.
   */
  async #hold(id: string): Promise<KeeperConnection> {
    const deadline = performance.now() + FREEZE_MS;
    const connection = await this.#connected();
    while (await this.#attempt('pause', id, WHILE_CONNECTED)) {
      if ((await this.#look(id)).has('frozen')) break;
      if (performance.now() > deadline) {
        throw new ExitwatchError(
          'ERR_EXITWATCH_BUSY',
          `run ${JSON.stringify(id)} cannot be paused`,
        );
      }
      await sleep(1);
    }
    return connection;
  }

  async #look(id: string): Promise<Message> {
    checkRunId(id);
    const { message } = await this.#request([
      ['op', 'look'],
      ['run', id],
    ]);
    this.#check(message, id);
    return message;
  }

  #check(message: Message, id: string): void {
    if (message.has('error')) throw this.#error(message, id);
  }

  #error(message: Message, id: string): ExitwatchError {
    const code = message.text('error') ?? '';
    const detail = message.text('detail') ?? '';
    const errno = message.number('errno') ?? 0;
    const reason = errnoText(errno);
    if (code === 'no-run') return noRun(id);
    if (code === 'busy') {
      return new ExitwatchError(
        'ERR_EXITWATCH_BUSY',
        id === '' ? 'a log is being rotated' : `something of run ${JSON.stringify(id)} is alive`,
      );
    }
    if (code === 'bad-request') return invalidOption(`the keeper refused ${detail}`);
    if (code === 'unsupported') {
      return keeperError(`this keeper does not support ${detail}; upgrade it`);
    }
    if (code === 'leaving') return keeperError('the keeper was told to end, and starts nothing');
    if (code === 'journal') return keeperError(`the keeper cannot write its journal: ${reason}`);
    const name = errno === 1 ? 'ERR_EXITWATCH_NOT_PERMITTED' : 'ERR_EXITWATCH_SYSTEM';
    return new ExitwatchError(name, `${detail === '' ? code : detail}: ${reason}`, { errno });
  }

  // ---- what it tells

  #takeList(items: readonly Message[]): void {
    const gone = new Set(this.#runs.keys());
    for (const message of items) {
      gone.delete(message.text('run') ?? '');
      const wasOver = isOver(this.run(message.text('run') ?? ''), false);
      const run = this.#take(message);
      if (run.state === 'running') this.#watch(run);
      if (run.state === 'ended' && !this.#ends.has(run.id)) this.#onEnded(run, true);
      else if (isOver(run) && !wasOver) this.#onEmpty(run);
    }
    for (const id of gone) this.#drop(id);
  }

  #take(message: Message): KeeperRun {
    this.#check(message, message.text('run') ?? '');
    const run = runOf(message, this.#runs.get(message.text('run') ?? ''));
    this.#runs.set(run.id, run);
    if (run.state !== 'starting') {
      for (const resolve of this.#starting.get(run.id) ?? []) resolve(run);
      this.#starting.delete(run.id);
    }
    return run;
  }

  #started(id: string): Promise<KeeperRun> {
    return new Promise((resolve) => {
      this.#starting.set(id, [...(this.#starting.get(id) ?? []), resolve]);
    });
  }

  #onEvent(message: Message): void {
    const run = this.#take(message);
    switch (message.text('event')) {
      case 'started':
        this.#watch(run);
        this.#tell(() => this.emit('started', run));
        break;
      case 'ended':
        if (run.state === 'ended') this.#onEnded(run, false);
        else this.#onEmpty(run);
        break;
      case 'empty':
        this.#onEmpty(run);
        break;
      case 'notify':
        this.#tell(() => this.emit('notify', run, message.text('notify') ?? ''));
        break;
      default: // of a newer keeper
    }
  }

  #onEnded(run: KeeperRun, isRepeated: boolean): void {
    const kept = exitOf(run, isRepeated);
    if (kept === null) {
      this.#ends.set(run.id, 'told');
      if (isOver(run)) this.#onEmpty(run);
      return;
    }
    this.#ends.set(run.id, 'joining');
    if (isOver(run)) this.#stops.get(run.id)?.noteGone();
    void this.#seen(run.id).then((seen) => {
      if (this.#ends.get(run.id) !== 'joining') return; // it was forgotten
      this.#ends.set(run.id, 'told');
      const exit = joinExit(kept, seen);
      this.#tell(() => this.emit('ended', exit, run));
      const now = this.#runs.get(run.id) ?? run;
      if (isOver(now)) this.#tell(() => this.emit('empty', now));
    });
  }

  #onEmpty(run: KeeperRun): void {
    this.#stops.get(run.id)?.noteGone();
    // Otherwise it follows `ended`, which may come with the list only.
    if (this.#ends.get(run.id) === 'told') this.#tell(() => this.emit('empty', run));
  }

  #watch(run: KeeperRun): void {
    if (this.#monitor === null || run.identity === null || this.#watches.has(run.id)) return;
    try {
      this.#watches.set(run.id, this.#monitor.watch(run.identity, { key: `run:${run.id}` }));
    } catch {
      // The monitor is closed, or has no room: the keeper's status remains.
    }
  }

  /** What the monitor saw of its end; it may come a moment after the keeper's message. */
  async #seen(id: string): Promise<ExitEvent | null> {
    const watch = this.#watches.get(id);
    if (watch === undefined) return null;
    const seen = await withDeadline(watch.exited, SEEN_WITHIN_MS).catch(() => null);
    this.#unwatch(id);
    return seen === LATE ? null : seen;
  }

  #drop(id: string): void {
    this.#runs.delete(id);
    this.#ends.delete(id);
    this.#unwatch(id);
  }

  #unwatch(id: string): void {
    this.#watches.get(id)?.close();
    this.#watches.delete(id);
  }

  #tell(emit: () => void): void {
    if (!this.#isClosed) emitSafely(emit);
  }

  readonly #stopHost = {
    signal: (id: string, signal: SignalName, tree: boolean) => this.signal(id, signal, tree),
    resume: (id: string) => this.resume(id),
    kill: async (id: string) => {
      await this.#attempt('kill', id);
    },
    look: async (id: string) => {
      const message = await this.#look(id);
      return { isOver: isOver(runOf(message, undefined)), left: membersIn(message.all('member')) };
    },
    run: (id: string) => this.run(id),
  };
}

async function writeMissing(pidfile: string, { identity }: KeeperRun): Promise<void> {
  if (identity !== null) await writePidfile(pidfile, identity).catch(() => undefined);
}

function membersIn(texts: readonly string[]): RunMember[] {
  return texts.map((text) => {
    const [pid = '', ticks = '', state = ''] = text.split(' ');
    return { pid: Number(pid), startTicks: Number(ticks), state };
  });
}

function errnoText(errno: number): string {
  return getSystemErrorMap().get(-errno)?.[1] ?? `error ${errno}`;
}

function startError({ id, command }: RunOptions, { failure }: KeeperRun): ExitwatchError {
  const { step, errno } = failure ?? { step: 'unknown', errno: 0 };
  const detail = `cannot start ${JSON.stringify(command)} (${id}): ${step}: ${errnoText(errno)}`;
  return new ExitwatchError('ERR_EXITWATCH_START_FAILED', detail, { errno, syscall: step });
}

function noRun(id: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_NO_RUN', `there is no run ${JSON.stringify(id)}`);
}

function closedError(): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the keeper was closed');
}
