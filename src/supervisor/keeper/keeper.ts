// One idea: what may be asked of a keeper.
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

import { emitSafely } from '../../common/emit-safely.js';
import { ExitwatchError } from '../../common/errors.js';
import { checkInteger, checkOptionNames, checkPath, invalidOption } from '../../common/options.js';
import { signalName, signalNumber, type SignalName } from '../../events/wait-status.js';
import { ExitMonitor } from '../../monitor/exit-monitor.js';
import { removeStalePidfile, writePidfile } from '../../process/pidfile.js';

import { cgroupBase } from './cgroup-base.js';
import { type KeeperConnection, keeperError } from './connection.js';
import { answerError, checkAnswer, closedError, startError } from './keeper-errors.js';
import type { KeeperEvents, KeeperReady } from './keeper-events.js';
import { KeeperLink } from './keeper-link.js';
import { keeperBinary } from './keeper-process.js';
import { type KeeperRun, runOf } from './keeper-run.js';
import type { Fields, Message } from './message.js';
import { rotateLog } from './rotate-log.js';
import { checkRunId, type RunOptions, toRequest } from './run-options.js';
import { RunTable, type Tell } from './run-table.js';
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

const FORGOTTEN_WITHIN_MS = 5000;
const FREEZE_MS = 10_000;
const AGAIN_AFTER_LOOKS = 20;
const WHILE_CONNECTED: Fields = [['whileConnected', '1']];

/**
 * The parent of processes that outlive this program: a small program of its own, one for each state
 * directory, which is started on demand. It starts what it is told to, and knows how each ended.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export class Keeper extends EventEmitter<KeeperEvents> {
  readonly #stateDir: string;
  readonly #runs: RunTable;
  readonly #link: KeeperLink;
  readonly #stops = new Map<string, RunStop>();
  #cgroup: string | null | undefined;
  #takesSignals = false;

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
    const tell: Tell = (name, ...args) => {
      const emit = this.emit.bind(this) as (name: string, ...args: unknown[]) => boolean;
      if (!this.#link.isClosed) emitSafely(() => emit(name, ...args));
    };
    this.#runs = new RunTable(monitor ?? null, tell, (id) => this.#stops.get(id)?.noteGone());
    this.#link = new KeeperLink(path, {
      onConnected: (hello, items) => {
        this.#runs.takeList(items);
        return {
          pid: hello.number('pid') ?? 0,
          version: hello.text('version') ?? '',
          lost: this.runs().filter(({ isLost, state }) => isLost && state === 'running'),
          isGuard: hello.all('can').includes('guard'),
        };
      },
      onEvent: (message) => {
        if (message.text('event') !== 'signal') this.#runs.onEvent(message);
        else this.#onSignal(message.number('signal') ?? 0, tell);
      },
      onRestarted: (ready) => {
        tell('restarted', ready);
        if (this.#takesSignals) this.takeSignals().catch(() => undefined);
      },
      onLost: (error) => {
        process.nextTick(() => this.emit('error', error));
      },
    });
  }

  /**
   * Connects to the keeper of the directory, or starts one. Runs of before that have ended are told
   * by `ended` soon after.
   *
   * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_IN_USE`, `…_STATE_DIR`, `…_NO_KEEPER`,
   * `…_KEEPER`, `…_CLOSED`.
   */
  async open(): Promise<KeeperReady> {
    return this.#link.open();
  }

  /** The keeper that we are, or were last, connected to; `null`: none yet. @internal */
  get ready(): KeeperReady | null {
    return this.#link.ready ?? null;
  }

  /** All runs that were not forgotten, the oldest first. */
  runs(): KeeperRun[] {
    return this.#runs.all();
  }

  /** `null`: there is none of that id. */
  run(id: string): KeeperRun | null {
    return this.#runs.get(id);
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
    const { message } = await this.#link.request(
      // An older keeper gives the highest limit of open files.
      request.filter(
        ([key]) => (key !== 'pidfile' && key !== 'openFiles') || this.#link.takes(key),
      ),
    );
    // What it has told in the meantime is newer than the answer.
    checkAnswer(message, options.id);
    let run = this.#runs.get(options.id) ?? this.#runs.take(message);
    if (run.state === 'starting') run = await this.#runs.started(run.id);
    const { pidfile } = options;
    if (run.state !== 'failed') {
      if (pidfile !== undefined && !this.#link.takes('pidfile')) await writeMissing(pidfile, run);
      return run;
    }
    // In this order: what tried to become the command may not be gone before.
    await this.#forgetFailed(run.id);
    if (pidfile !== undefined) await removeStalePidfile(pidfile).catch(() => undefined);
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
   * `…_CLOSED`; `…_NOT_PERMITTED` for what may not be signalled, and could not be killed by its cgroup either.
   */
  async stop(id: string, options: StopRunOptions = {}): Promise<StoppedRun> {
    const checked = checkStopRunOptions(options);
    checkRunId(id);
    // Its start may not be answered yet.
    if (this.run(id) === null) {
      const seen = await this.#look(id);
      // What was told in the meantime is newer.
      if (this.run(id) === null) this.#runs.take(seen);
    }
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
    const wasThere = this.run(id) !== null;
    const { message } = await this.#link.request(
      [
        ['op', 'forget'],
        ['run', id],
      ],
      // What is told after it is of the next run of this id.
      (answer) => {
        if (!answer.message.has('error')) this.#runs.drop(id);
      },
    );
    // It may have been forgotten when the connection was lost before the answer.
    if (!wasThere || message.text('error') !== 'no-run') checkAnswer(message, id);
    if (message.has('error')) this.#runs.drop(id);
  }

  /**
   * Resolves when the keeper has answered.
   *
   * Rejects with an {@link ExitwatchError}: `…_KEEPER`, `…_CLOSED`.
   */
  async ping(): Promise<void> {
    const { message } = await this.#link.request([['op', 'ping']]);
    // Older keepers answer that they do not know it.
    if (message.text('error') !== 'unsupported') checkAnswer(message, '');
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
        if (this.#link.connection !== connection) throw keeperError('the keeper was lost');
        await this.#link.withoutAnother(work());
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
    const connection = await this.#link.connected();
    let message;
    try {
      ({ message } = await connection.request([
        ['op', 'upgrade'],
        ['path', binary],
      ]));
    } catch {
      // It has dropped its clients, and is the new one now.
      this.#link.lost(connection);
      await this.#link.connected();
      const { ready } = this.#link;
      if (ready !== undefined) return ready;
      throw closedError();
    }
    throw answerError(message, '');
  }

  /**
   * From now on `signal` events have what the first process of a container is sent, also what it was sent
   * while nobody took it. To a request to end, `endWith()` is the answer.
   *
   * Rejects with an {@link ExitwatchError}: `…_KEEPER`, `…_CLOSED`.
   *
   * @internal
   */
  async takeSignals(): Promise<void> {
    this.#takesSignals = true;
    const { message } = await this.#link.request([['op', 'guard']]);
    checkAnswer(message, '');
  }

  /**
   * The container ends with this status when we have ended.
   *
   * @internal
   */
  async endWith(status: number): Promise<void> {
    const { message } = await this.#link.request([
      ['op', 'end'],
      ['status', String(status)],
    ]);
    checkAnswer(message, '');
  }

  #onSignal(number: number, tell: Tell): void {
    const name = signalName(number);
    if (name !== null) tell('signal', name);
  }

  /** Leaves everything running. A keeper without runs ends by itself. */
  async close(): Promise<void> {
    if (this.#link.isClosed) return;
    this.#runs.close();
    for (const stop of this.#stops.values()) stop.abandon(closedError());
    await this.#link.close(this.runs().length === 0);
    process.nextTick(() => this.emit('close'));
  }

  /** `false`: it is gone. */
  async #attempt(op: string, id: string, more: Fields = []): Promise<boolean> {
    checkRunId(id);
    const { message } = await this.#link.request([['op', op], ['run', id], ...more]);
    if (message.text('error') === 'gone') return false;
    checkAnswer(message, id);
    return true;
  }

  /**
   * Pauses a run for as long as we are connected, and waits until nothing of it can write: it is
   * frozen, or has ended in the meantime. Returns the connection.
   */
  async #hold(id: string): Promise<KeeperConnection> {
    const deadline = performance.now() + FREEZE_MS;
    const connection = await this.#link.connected();
    for (let looks = 1; await this.#attempt('pause', id, WHILE_CONNECTED); looks++) {
      if ((await this.#look(id)).has('frozen')) break;
      // Who waits for a child of vfork(2) that was stopped before its exec waits until that goes on.
      if (looks % AGAIN_AFTER_LOOKS === 0) await this.#attempt('resume', id, WHILE_CONNECTED);
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
    const { message } = await this.#link.request([
      ['op', 'look'],
      ['run', id],
    ]);
    checkAnswer(message, id);
    return message;
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
