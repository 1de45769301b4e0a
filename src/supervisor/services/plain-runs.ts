// One idea: processes without a keeper: children that are detached, and strangers once we have died.
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';

import { ExitwatchError, reasonOf } from '../../common/errors.js';
import { invalidOption } from '../../common/options.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { unknownExit } from '../../events/unknown-exit.js';
import { type SignalName, signalNumber } from '../../events/wait-status.js';
import { identify, type ProcessIdentity, startOf } from '../../identity/process-identity.js';
import { waitForExit } from '../../monitor/wait-for-exit.js';
import { isAlive } from '../../process/liveness.js';
import { PausableTree } from '../../process/pause-tree.js';
import { signalProcess } from '../../process/process-signal.js';
import { stop as stopProcess } from '../../process/stop.js';
import type { KeeperEvents, KeeperReady } from '../keeper/keeper-events.js';
import type { KeeperRun } from '../keeper/keeper-run.js';
import { ownEnvironment } from '../keeper/own-environment.js';
import type { RunOptions } from '../keeper/run-options.js';
import { isOver, type StoppedRun, type StopRunOptions } from '../keeper/stop-run.js';

import type { RunHost } from './run-host.js';

/** What is known of a run of before. */
export interface KnownRun {
  id: string;
  identity: ProcessIdentity;
}

/** What only a keeper can do. */
const KEEPER_ONLY = [
  ...(['envFile', 'umask', 'openFiles', 'user', 'group', 'logs', 'notify'] as const),
] satisfies (keyof RunOptions)[];

/**
 * Takes the place of a keeper where there is none. The processes outlive us as well, but nobody knows
 * how those end that we are not the parent of any more.
 */
export class PlainRuns extends EventEmitter<KeeperEvents> implements RunHost {
  readonly source = 'poll';
  readonly #runs = new Map<string, KeeperRun>();
  /** When it was started or found, by performance.now(), and how long it had lived by then. */
  readonly #seen = new Map<string, { atMs: number; livedMs: number }>();
  readonly #paused = new Map<string, PausableTree>();
  readonly #known: () => KnownRun[];
  readonly #aborted = new AbortController();

  /** @param known runs of before, which may still be alive */
  constructor(known: () => KnownRun[]) {
    super();
    this.#known = known;
  }

  open(): Promise<KeeperReady> {
    for (const { id, identity } of this.#known()) {
      if (isAlive(identity) === 'dead') continue;
      const found = newRun(id, identity, true);
      this.#runs.set(id, found);
      this.#seen.set(id, { atMs: performance.now(), livedMs: found.livedMs ?? 0 });
      void waitForExit(identity, { signal: this.#aborted.signal }).then(
        (exit) => {
          // A parent knows the status; we are not the parent of it.
          this.#onEnded(id, exit, null);
        },
        () => undefined,
      );
    }
    return Promise.resolve({ pid: process.pid, version: '', isGuard: false, lost: this.runs() });
  }

  runs(): KeeperRun[] {
    return [...this.#runs.values()];
  }

  run(id: string): KeeperRun | null {
    return this.#runs.get(id) ?? null;
  }

  async start(options: RunOptions): Promise<KeeperRun> {
    const { id, command, args = [], cwd = '/', env = ownEnvironment() } = options;
    const before = this.#runs.get(id);
    if (before !== undefined) return before;
    const needed = KEEPER_ONLY.find(
      (name) => options[name] !== undefined && options[name] !== false,
    );
    if (needed !== undefined) throw invalidOption(`${needed} requires a keeper`);
    if (options.allowRoot === false && process.geteuid?.() === 0) {
      throw startFailed(options, 'root: operation not permitted', 1);
    }
    const child = spawn(command, [...args], { cwd, env, stdio: 'ignore', detached: true });
    const { pid } = child;
    if (pid === undefined) {
      const [error] = (await once(child, 'error')) as [NodeJS.ErrnoException];
      throw startFailed(options, reasonOf(error), -(error.errno ?? 0));
    }
    // In one go from here: what is interrupted now would leave a process of which nobody knows.
    child.unref();
    const run = newRun(id, identifyChild(child, pid, options), false);
    this.#runs.set(id, run);
    this.#seen.set(id, { atMs: performance.now(), livedMs: 0 });
    this.#await(child, run);
    this.emit('started', run);
    return run;
  }

  async stop(id: string, options: StopRunOptions = {}): Promise<StoppedRun> {
    const run = this.#need(id);
    const { signal = 'SIGTERM', graceMs = 5000 } = options;
    if (isOver(run) || run.identity === null) {
      return { id, isGone: true, wasKilled: false, left: [] };
    }
    if (this.#paused.has(id)) await this.resume(id); // what is stopped cannot end by itself
    const { outcome, tree } = await stopProcess(run.identity, {
      killSignal: signal,
      forceKillAfterDelayMs: graceMs,
      tree: process.platform === 'linux',
    });
    const isGone = outcome !== 'timed-out';
    const members = tree?.members ?? [{ identity: run.identity, outcome }];
    const left = members
      .filter((member) => member.outcome === 'timed-out')
      .map(({ identity: { pid, startTicks } }) => ({ pid, startTicks, state: '?' }));
    return { id, isGone, wasKilled: outcome === 'forced', left };
  }

  signal(id: string, signal: SignalName): Promise<boolean> {
    const { identity } = this.#need(id);
    if (identity === null) return Promise.resolve(false);
    return Promise.resolve(signalProcess(identity, signal).liveness === 'alive');
  }

  async pause(id: string): Promise<boolean> {
    const { identity } = this.#need(id);
    if (identity === null || isAlive(identity) === 'dead') return false;
    const tree = new PausableTree(identity);
    this.#paused.set(id, tree);
    return tree.pause();
  }

  async resume(id: string): Promise<boolean> {
    const { identity } = this.#need(id);
    if (identity === null || isAlive(identity) === 'dead') return false;
    // If a supervisor of before paused it, only what is linked to it is found.
    const tree = this.#paused.get(id) ?? new PausableTree(identity);
    this.#paused.delete(id);
    return tree.resume();
  }

  /** There is nobody who could be silent. */
  ping(): Promise<void> {
    return Promise.resolve();
  }

  forget(id: string): Promise<void> {
    if (!isOver(this.#need(id))) {
      throw new ExitwatchError('ERR_EXITWATCH_BUSY', `run ${JSON.stringify(id)} is alive`);
    }
    this.#runs.delete(id);
    this.#seen.delete(id);
    this.#paused.delete(id);
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#aborted.abort();
    this.removeAllListeners();
    return Promise.resolve();
  }

  #await(child: ChildProcess, run: KeeperRun): void {
    child.once('exit', (code, signal) => {
      const status = signal === null ? (code ?? 0) << 8 : signalNumber(signal);
      const how =
        signal === null
          ? { how: 'exited', exitCode: code ?? 0, signal: null, coreDumped: false }
          : { how: 'killed', exitCode: null, signal, coreDumped: null };
      const exit = { ...endOf(run), ...how, unknownReason: null } as ExitEvent;
      this.#onEnded(run.id, exit, status);
    });
  }

  #onEnded(id: string, exit: ExitEvent, status: number | null): void {
    const run = this.#runs.get(id);
    if (run === undefined || run.state === 'ended') return;
    run.state = 'ended';
    run.endedAt = exit.exitedAt;
    run.waitStatus = status;
    // Not by the wall clock: a step of it would end every row of crashes, or none.
    const seen = this.#seen.get(id);
    run.livedMs = seen === undefined ? null : seen.livedMs + performance.now() - seen.atMs;
    this.emit('ended', exit, run);
    this.emit('empty', run);
  }

  #need(id: string): KeeperRun {
    const run = this.#runs.get(id);
    if (run !== undefined) return run;
    throw new ExitwatchError('ERR_EXITWATCH_NO_RUN', `there is no run ${JSON.stringify(id)}`);
  }
}

function newRun(id: string, identity: ProcessIdentity | null, isLost: boolean): KeeperRun {
  const startedAt = identity === null ? null : startOf(identity);
  return {
    id,
    state: 'running',
    pid: identity?.pid ?? null,
    identity,
    startedAt: startedAt ?? new Date(),
    cgroup: null,
    isLost,
    hasMembers: false,
    isReady: false,
    isStopping: false,
    statusText: null,
    aliveAgoMs: null,
    livedMs: startedAt === null ? null : Date.now() - startedAt.getTime(),
    endedAt: null,
    waitStatus: null,
    usage: null,
    failure: null,
    isStored: true,
  };
}

function endOf({ id, pid, identity, startedAt }: KeeperRun): ExitEvent {
  const known = { id: identity?.id ?? id, pid: pid ?? 0, startedAt, exitedAt: new Date() };
  return unknownExit({ ...known, uncertaintyMs: 0, source: 'poll' }, 'polled');
}

/** A child that cannot be identified could not be found again: it does not live on. */
function identifyChild(child: ChildProcess, pid: number, options: RunOptions): ProcessIdentity {
  try {
    const identity = identify(pid);
    if (identity !== null) return identity;
    throw new Error(`process ${pid} cannot be found`);
  } catch (error) {
    child.kill('SIGKILL');
    throw startFailed(options, reasonOf(error), (error as { errno?: number }).errno ?? 0);
  }
}

function startFailed({ id, command }: RunOptions, reason: string, errno: number): ExitwatchError {
  const detail = `cannot start ${JSON.stringify(command)} (${id}): ${reason}`;
  return new ExitwatchError('ERR_EXITWATCH_START_FAILED', detail, { errno });
}
